#include "search/database/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tilewright::search::sqlite {
namespace {

/// One place that turns SQLite's result codes into our diagnostics: what, where, why, what to do.
Diagnostic describe(sqlite3* db, int code, const std::string& path) {
  const std::string why = db ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int system_error = db ? sqlite3_system_errno(db) : 0;
  const std::string system_why = system_error ? fmt::format(" ({})", std::strerror(system_error)) : "";
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return resource_error("database/locked", fmt::format("{}: another process keeps the database locked", path),
                            "close the program that has it open in a transaction, or wait and try again");
    case SQLITE_NOTADB:
      return resource_error("database/not-a-database", fmt::format("{}: is not a Tilewright database", path),
                            "choose another path; this file is left as it is");
    case SQLITE_CORRUPT:
      return resource_error("database/damaged", fmt::format("{}: the database is damaged: {}", path, why),
                            "keep a copy of the file; `sqlite3 FILE .recover` saves what can be read");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return resource_error("database/read-only", fmt::format("{}: the database cannot be written{}", path, system_why),
                            "change the permissions of the file and its folder, or choose another path");
    case SQLITE_CANTOPEN:
      // The log beside the file cannot be made, of which the system says that it is not there.
      if (std::error_code unknown; std::filesystem::exists(path, unknown)) {
        const std::filesystem::path folder = std::filesystem::absolute(path, unknown).parent_path();
        if (access(folder.c_str(), W_OK) != 0) {
          return resource_error("database/read-only",
                                fmt::format("{}: the database cannot be written: its folder is read-only ({})", path,
                                            std::strerror(errno)),
                                "choose another path, or copy the file to a folder that can be written");
        }
      }
      return resource_error(
          "database/cannot-open", fmt::format("{}: cannot be opened{}", path, system_why),
          "check that the folder exists and may be written: the write-ahead log lies beside the file");
    case SQLITE_FULL:
      return resource_error("database/full", fmt::format("{}: no space left for the database", path),
                            "free some space and run again; the records committed so far are kept");
    case SQLITE_IOERR:
      // SQLite tells only ENOSPC apart, not a quota or a limit on file sizes.
      if (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE) {
        return resource_error(
            "database/full",
            fmt::format("{}: a write failed: no space left, or a limit on the size of files{}", path, system_why),
            "free some space and run again; the records committed so far are kept");
      }
      [[fallthrough]];
    default:
      return resource_error("database/failed", fmt::format("{}: {} (SQLite error {}){}", path, why, code, system_why));
  }
}

Diagnostic not_opened(sqlite3* db, int code, const std::string& path) {
  Diagnostic diagnostic = describe(db, code, path);
  sqlite3_close(db);
  return diagnostic;
}

}  // namespace

Result<std::string> read_start(const std::string& path, size_t count) {
  sqlite3* db = nullptr;
  int code =
      sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READONLY, nullptr);
  sqlite3_file* file = nullptr;
  std::string bytes(count, '\0');
  if (code == SQLITE_OK) code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code == SQLITE_OK) code = file->pMethods->xRead(file, bytes.data(), static_cast<int>(count), 0);
  if (code == SQLITE_IOERR_SHORT_READ) code = SQLITE_OK;
  if (code != SQLITE_OK) return not_opened(db, code, path);
  sqlite3_close(db);
  return bytes;
}

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_),
      statement_(std::exchange(other.statement_, nullptr)),
      path_(std::move(other.path_)),
      bind_error_(other.bind_error_) {}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(int index, int64_t value) {
  if (int code = sqlite3_bind_int64(statement_, index, value)) bind_error_ = code;
  return *this;
}

Statement& Statement::bind(int index, double value) {
  if (int code = sqlite3_bind_double(statement_, index, value)) bind_error_ = code;
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  if (int code = sqlite3_bind_text64(statement_, index, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                                     SQLITE_UTF8))
    bind_error_ = code;
  return *this;
}

Statement& Statement::bind_blob(int index, std::span<const unsigned char> bytes) {
  if (int code = sqlite3_bind_blob64(statement_, index, bytes.data(), bytes.size(), SQLITE_TRANSIENT))
    bind_error_ = code;
  return *this;
}

Statement& Statement::bind_null(int index) {
  if (int code = sqlite3_bind_null(statement_, index)) bind_error_ = code;
  return *this;
}

Result<bool> Statement::step() {
  if (bind_error_) return describe(db_, bind_error_, path_);
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return describe(db_, code, path_);
}

Status Statement::run() {
  TW_TRY(row, step());
  (void)row;
  return Ok{};
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }

std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return data ? std::string(data, sqlite3_column_bytes(statement_, column)) : std::string();
}

std::string Statement::blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return data ? std::string(data, sqlite3_column_bytes(statement_, column)) : std::string();
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

Result<Connection> Connection::open(const std::string& path, const OpenOptions& options) {
  std::string uri = path;
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  flags |= options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (options.create) flags |= SQLITE_OPEN_CREATE;
  if (options.immutable) {
    // URI syntax reserves these characters.
    uri = "file:";
    for (char c : path) {
      if (c == '%' || c == '?' || c == '#')
        uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
      else
        uri += c;
    }
    uri += "?immutable=1";
    flags |= SQLITE_OPEN_URI;
  }
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(uri.c_str(), &db, flags, nullptr);
  if (code != SQLITE_OK) return not_opened(db, code, path);
  sqlite3_busy_timeout(db, static_cast<int>(options.busy_timeout.count()));
  return Connection(db, path);
}

Connection::Connection(Connection&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)), path_(std::move(other.path_)) {}

// close_v2 waits for statements that are still alive instead of failing.
Connection::~Connection() { sqlite3_close_v2(db_); }

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return describe(db_, code, path_);
  return Statement(db_, statement, path_);
}

Status Connection::execute(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return describe(db_, code, path_);
  return Ok{};
}

Result<int64_t> Connection::integer(std::string_view sql) {
  TW_TRY(statement, prepare(sql));
  TW_TRY(row, statement.step());
  if (!row) return resource_error("database/failed", fmt::format("{}: no row from {}", path_, sql));
  return statement.integer(0);
}

bool Connection::is_read_only() const { return sqlite3_db_readonly(db_, "main") == 1; }
int64_t Connection::last_insert_id() const { return sqlite3_last_insert_rowid(db_); }
int Connection::changes() const { return sqlite3_changes(db_); }

Result<Transaction> Transaction::begin(Connection& connection, const char* sql) {
  TW_RETURN_IF_ERROR(connection.execute(sql));
  return Transaction(&connection);
}

Transaction::Transaction(Transaction&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}

Transaction::~Transaction() {
  if (!connection_) return;
  // Some errors (a full disk) have rolled back already; then there is nothing left to do, and nobody to tell.
  Status ignored = connection_->execute("ROLLBACK");
  (void)ignored;
}

Status Transaction::commit() {
  TW_RETURN_IF_ERROR(connection_->execute("COMMIT"));
  connection_ = nullptr;
  return Ok{};
}

}  // namespace tilewright::search::sqlite
