#include "search/database/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
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
          "check that the folder exists and may be written: the write-ahead log is created beside the file");
    case SQLITE_FULL:
      return resource_error("database/full", fmt::format("{}: no space left for the database", path),
                            "free some space and run again; the records committed so far are kept");
    case SQLITE_IOERR:
      // SQLite reports only ENOSPC as such, not a quota or a limit on file sizes.
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

/// A connection to SQLite. The caller holds a mutex, since the connection is opened without one.
class SqliteFile final : public sql::Connection {
 public:
  SqliteFile(sqlite3* opened, std::string path) : Connection(sql::kSqlite, std::move(path)), db(opened) {}
  ~SqliteFile() override { sqlite3_close(db); }
  sqlite3* const db;

 private:
  Result<std::vector<sql::Row>> run_here(const std::string& text, const sql::Row& values) override;
};

int bind(sqlite3_stmt* statement, int index, const sql::Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return sqlite3_bind_int64(statement, index, *number);
  if (const auto* number = std::get_if<double>(&value)) return sqlite3_bind_double(statement, index, *number);
  if (const auto* text = std::get_if<std::string>(&value)) {
    return sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  if (const auto* blob = std::get_if<sql::Blob>(&value)) {
    return sqlite3_bind_blob64(statement, index, blob->bytes.data(), blob->bytes.size(), SQLITE_TRANSIENT);
  }
  return sqlite3_bind_null(statement, index);
}

sql::Value column(sqlite3_stmt* statement, int index) {
  const auto bytes = [&](const void* data) {
    return std::string(static_cast<const char*>(data), sqlite3_column_bytes(statement, index));
  };
  switch (sqlite3_column_type(statement, index)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement, index);
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, index);
    case SQLITE_TEXT:
      return bytes(sqlite3_column_text(statement, index));
    case SQLITE_BLOB:
      return sql::Blob{bytes(sqlite3_column_blob(statement, index))};
    default:
      return {};
  }
}

Result<std::vector<sql::Row>> SqliteFile::run_here(const std::string& text, const sql::Row& values) {
  std::vector<sql::Row> rows;
  const char* rest = text.c_str();
  while (*rest) {
    sqlite3_stmt* made = nullptr;
    int code = sqlite3_prepare_v2(db, rest, -1, &made, &rest);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, &sqlite3_finalize);
    if (code == SQLITE_OK && !made) continue;  // blanks behind the last one
    rows.clear();
    for (size_t i = 0; i < values.size() && code == SQLITE_OK; ++i)
      code = bind(made, static_cast<int>(i) + 1, values[i]);
    if (code == SQLITE_OK) code = sqlite3_step(made);
    for (; code == SQLITE_ROW; code = sqlite3_step(made)) {
      sql::Row& row = rows.emplace_back();
      for (int i = 0; i < sqlite3_column_count(made); ++i) row.push_back(column(made, i));
    }
    if (code != SQLITE_DONE) return describe(db, code, path);
  }
  return rows;
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

Result<std::unique_ptr<sql::Connection>> open(const std::string& path, const OpenOptions& options) {
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
  return std::unique_ptr<sql::Connection>(new SqliteFile(db, path));
}

bool is_read_only(const sql::Connection& connection) {
  return sqlite3_db_readonly(static_cast<const SqliteFile&>(connection).db, "main") == 1;
}

}  // namespace tilewright::search::sqlite
