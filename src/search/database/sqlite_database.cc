#include "search/database/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>
#include <mutex>
#include <tuple>
#include <utility>

#include "search/database/damage.h"
#include "search/database/database_file.h"
#include "search/database/schema.h"
#include "search/database/sqlite.h"

namespace tilewright::search {
namespace {

using sqlite::Connection;
using sqlite::Statement;
using sqlite::Transaction;

/// The columns of read_record(); what follows may use the tables r, w, t and f, and parameters from ?3.
std::string select_records(const char* seconds, const char* rest) {
  return fmt::format(
      "SELECT r.id, w.hash, t.text, r.trace, r.decisions, {}, r.outcome, r.error, r.verification, r.seed, r.round, "
      "r.position, h.text, l.text, r.created FROM record r JOIN workload w ON w.id = r.workload_id "
      "JOIN target t ON t.id = r.target_id "
      "LEFT JOIN host h ON h.id = r.host_id LEFT JOIN libraries l ON l.id = r.libraries_id "
      "LEFT JOIN finals f ON f.workload_id = r.workload_id AND f.target_id = r.target_id "
      "WHERE w.hash = ?1 AND (?2 = '' OR t.text = ?2) {}",
      seconds, rest);
}

std::array<unsigned char, 16> to_blob(const Hash128& hash) {
  std::array<unsigned char, 16> bytes;
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<unsigned char>(hash.hi >> (56 - 8 * i));
    bytes[8 + i] = static_cast<unsigned char>(hash.lo >> (56 - 8 * i));
  }
  return bytes;
}

Hash128 from_blob(const std::string& bytes) {
  Hash128 hash;
  if (bytes.size() != 16) return hash;
  for (int i = 0; i < 8; ++i) {
    hash.hi = hash.hi << 8 | static_cast<unsigned char>(bytes[i]);
    hash.lo = hash.lo << 8 | static_cast<unsigned char>(bytes[8 + i]);
  }
  return hash;
}

/// A JSON list with the shortest digits that read back the same.
std::string to_json(const std::vector<double>& values) { return fmt::format("[{}]", fmt::join(values, ",")); }

/// None where the text is no such list.
std::optional<std::vector<double>> from_json(const std::string& text) {
  std::vector<double> values;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at != end) {
    double value;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next != end && *next != ',')) return std::nullopt;
    values.push_back(value);
    at = next == end ? end : next + 1;
  }
  return values;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Record read_record(const Statement& row) {
  Record record;
  record.id = row.integer(0);
  record.workload = from_blob(row.blob(1));
  record.target = row.text(2);
  record.trace = row.text(3);
  record.decisions = row.text(4);
  const auto seconds = from_json(row.text(5));
  record.seconds = seconds.value_or(std::vector<double>());
  record.outcome = row.text(6);
  record.error = row.text(7);
  record.verification = row.text(8);
  record.seed = static_cast<uint64_t>(row.integer(9));
  record.round = row.integer(10);
  record.index = row.integer(11);
  record.host = row.text(12);
  record.versions = row.text(13);
  record.created = row.text(14);
  mark_damage(record, seconds ? nullptr : "times");
  return record;
}

/// Of the columns name, script, created, sizes, the first of which is `from`.
Workload read_workload(const Hash128& hash, const Statement& row, int from) {
  const auto text = [&](int column) { return readable(row.text(from + column)); };
  return {hash, text(0), text(1), text(2), text(3)};
}

/// The questions in SQL.
struct Tables {
  Tables(Database& of, Connection opened) : database(of), connection(std::move(opened)) {}

  Database& database;  ///< whose they are
  Connection connection;
  std::mutex mutex;  // the connection is opened without SQLite's own

  /// The one integer that a lookup finds, or none.
  Result<std::optional<int64_t>> find(Statement& statement) {
    TW_TRY(row, statement.step());
    if (!row) return std::optional<int64_t>();
    return std::optional<int64_t>(statement.integer(0));
  }

  Result<int64_t> workload_id(const Hash128& hash) {
    TW_TRY(statement, connection.prepare("SELECT id FROM workload WHERE hash = ?1"));
    statement.bind_blob(1, to_blob(hash));
    TW_TRY(id, find(statement));
    if (!id) {
      return resource_error("database/unknown-workload",
                            fmt::format("{}: workload {} was never committed", connection.path(), hash.hex()),
                            "commit the workload before its records");
    }
    return *id;
  }

  /// Of the row with a text in target, host or libraries, made where there is none. Within the caller's transaction.
  Result<int64_t> text_id(const char* table, const std::string& text) {
    TW_TRY(insert, connection.prepare(fmt::format("INSERT INTO {} (text) VALUES (?1) ON CONFLICT DO NOTHING", table)));
    TW_RETURN_IF_ERROR(insert.bind(1, text).run());
    TW_TRY(select, connection.prepare(fmt::format("SELECT id FROM {} WHERE text = ?1", table)));
    select.bind(1, text);
    TW_TRY(id, find(select));
    return *id;
  }

  Result<int64_t> target_id(const std::string& target) { return text_id("target", target); }

  Result<int64_t> put_session(int64_t workload, int64_t target, const Hash128& space, uint64_t seed,
                              const std::string& state) {
    TW_TRY(statement,
           connection.prepare("INSERT INTO session (workload_id, target_id, space, seed, state, updated) VALUES "
                              "(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (workload_id, target_id, space, seed) DO UPDATE "
                              "SET state = excluded.state, updated = excluded.updated RETURNING id"));
    statement.bind(1, workload).bind(2, target).bind_blob(3, to_blob(space)).bind(4, static_cast<int64_t>(seed));
    statement.bind(5, state).bind(6, now_utc());
    TW_TRY(id, find(statement));
    TW_RETURN_IF_ERROR(statement.run());  // the statement's own change is complete only after its last row
    return *id;
  }

  Result<int64_t> put_record(const Record& record, int64_t workload, int64_t target, std::optional<int64_t> session) {
    TW_TRY(statement,
           connection.prepare(
               "INSERT INTO record (workload_id, target_id, session_id, seed, round, position, trace, decisions, "
               "seconds, median, outcome, error, verification, created, host_id, libraries_id) VALUES (?1, ?2, ?3, ?4, "
               "?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT (session_id, position) WHERE "
               "session_id IS NOT NULL DO NOTHING"));
    statement.bind(1, workload).bind(2, target);
    if (session) {
      statement.bind(3, *session);
    } else {
      statement.bind_null(3);
    }
    statement.bind(4, static_cast<int64_t>(record.seed)).bind(5, record.round).bind(6, record.index);
    statement.bind(7, record.trace).bind(8, record.decisions).bind(9, to_json(record.seconds));
    if (record.is_ok()) {
      statement.bind(10, record.median());
    } else {
      statement.bind_null(10);
    }
    statement.bind(11, record.outcome);
    if (record.error.empty()) {
      statement.bind_null(12);
    } else {
      statement.bind(12, record.error);
    }
    statement.bind(13, record.verification).bind(14, record.created.empty() ? now_utc() : record.created);
    for (const auto& [column, table, text] :
         {std::tuple(15, "host", &record.host), std::tuple(16, "libraries", &record.versions)}) {
      if (text->empty()) {
        statement.bind_null(column);
        continue;
      }
      TW_TRY(id, text_id(table, *text));
      statement.bind(column, id);
    }
    TW_RETURN_IF_ERROR(statement.run());
    if (connection.changes() == 1) return connection.last_insert_id();
    TW_TRY(present, read_records(record.workload, record.target,
                                 select_records("r.seconds", "AND r.session_id = ?3 ORDER BY r.position"), session));
    const auto same =
        std::find_if(present.begin(), present.end(), [&](const Record& other) { return other.index == record.index; });
    if (same != present.end() && same->outcome != kDamaged) return same->id;
    // It gives its place to the new one; so does one that was harmed in what it says of its program or its target.
    TW_TRY(leaving, connection.prepare("UPDATE record SET session_id = NULL WHERE session_id = ?1 AND position = ?2"));
    TW_RETURN_IF_ERROR(leaving.bind(1, *session).bind(2, record.index).run());
    return put_record(record, workload, target, session);
  }

  Result<int64_t> commit(const Record& record, const SessionStep* step) {
    const std::lock_guard lock(mutex);
    TW_TRY(transaction, Transaction::begin(connection));
    TW_TRY(workload, workload_id(record.workload));
    TW_TRY(target, target_id(record.target));
    std::optional<int64_t> session;
    if (step) {
      TW_TRY(id, put_session(workload, target, step->space, record.seed, step->state));
      session = id;
    }
    TW_TRY(id, put_record(record, workload, target, session));
    TW_RETURN_IF_ERROR(transaction.commit());
    return id;
  }

  /// All, or so many that are good, the first. The caller holds the mutex.
  Result<std::vector<Record>> read_records(const Hash128& workload, const std::string& target, const std::string& query,
                                           std::optional<int64_t> session = {}, std::optional<size_t> best = {}) {
    TW_TRY(statement, connection.prepare(query));
    statement.bind_blob(1, to_blob(workload)).bind(2, target);
    if (session) statement.bind(3, *session);
    std::vector<Record> records;
    while (!best || records.size() < *best) {
      TW_TRY(row, statement.step());
      if (!row) break;
      Record record = read_record(statement);
      database.examine(record);
      if (!best || record.is_ok()) records.push_back(std::move(record));
    }
    return records;
  }

  Result<std::optional<int64_t>> session_id(const SessionKey& key) {
    TW_TRY(statement,
           connection.prepare("SELECT s.id FROM session s JOIN workload w ON w.id = s.workload_id JOIN target "
                              "t ON t.id = s.target_id WHERE w.hash = ?1 AND t.text = ?2 AND s.space = ?3 "
                              "AND s.seed = ?4"));
    statement.bind_blob(1, to_blob(key.workload)).bind(2, key.target).bind_blob(3, to_blob(key.space));
    statement.bind(4, static_cast<int64_t>(key.seed));
    return find(statement);
  }
};

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(Connection opened, std::string path) : path_(std::move(path)), tables_(*this, std::move(opened)) {}
  using Database::commit_workload;
  std::string path() const override { return path_; }
  Status commit_workload(const Hash128& hash, const std::string& name, const std::string& script,
                         const std::string& sizes) override;
  Result<std::optional<Workload>> workload(const Hash128& hash) override;
  Result<std::vector<Workload>> workloads() override;
  Result<std::vector<Record>> top_k(const Hash128& workload, const std::string& target, size_t count) override;
  Result<std::vector<Record>> records(const Hash128& workload, const std::string& target) override;
  Result<int64_t> size() override;
  Status erase(const std::vector<int64_t>& ids) override;
  Status commit_finals(const Hash128& workload, const std::string& target, const Finals& finals) override;
  Result<std::optional<Finals>> finals(const Hash128& workload, const std::string& target) override;
  Result<std::optional<Session>> session(const SessionKey& key) override;
  Result<std::vector<Record>> session_records(const SessionKey& key) override;
  Status save_session(const SessionKey& key, const std::string& state) override;
  Status forget_session(const SessionKey& key) override;
  Status set_meta(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>> meta(const std::string& key) override;
  Status flush() override;

 private:
  Result<int64_t> store(const Record& record, const SessionStep* step) override { return tables_.commit(record, step); }
  std::string path_;
  Tables tables_;
};

Status SqliteDatabase::commit_workload(const Hash128& hash, const std::string& name, const std::string& script,
                                       const std::string& sizes) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(statement, tables_.connection.prepare("INSERT INTO workload (hash, name, script, created, sizes) VALUES (?1, "
                                               "?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING"));
  statement.bind_blob(1, to_blob(hash)).bind(2, name).bind(3, script).bind(4, now_utc()).bind(5, sizes);
  return statement.run();
}

Result<std::optional<Workload>> SqliteDatabase::workload(const Hash128& hash) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(statement, tables_.connection.prepare("SELECT name, script, created, sizes FROM workload WHERE hash = ?1"));
  statement.bind_blob(1, to_blob(hash));
  TW_TRY(row, statement.step());
  if (!row) return std::optional<Workload>();
  return std::optional<Workload>(read_workload(hash, statement, 0));
}

Result<std::vector<Workload>> SqliteDatabase::workloads() {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(statement, tables_.connection.prepare("SELECT hash, name, script, created, sizes FROM workload ORDER BY id"));
  std::vector<Workload> all;
  while (true) {
    TW_TRY(row, statement.step());
    if (!row) return all;
    all.push_back(read_workload(from_blob(statement.blob(0)), statement, 1));
  }
}

Result<std::vector<Record>> SqliteDatabase::top_k(const Hash128& workload, const std::string& target, size_t count) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(found, tables_.read_records(workload, target,
                                     select_records("CASE WHEN r.id = f.winner THEN f.seconds ELSE r.seconds END",
                                                    "AND r.median IS NOT NULL "
                                                    "ORDER BY f.winner IS NOT NULL AND r.id <> f.winner AND "
                                                    "(r.id <= f.last_record OR r.median >= f.median), "
                                                    "CASE WHEN r.id = f.winner THEN f.median ELSE r.median END, r.id"),
                                     {}, count));
  return found;
}

Result<std::vector<Record>> SqliteDatabase::records(const Hash128& workload, const std::string& target) {
  const std::lock_guard lock(tables_.mutex);
  return tables_.read_records(workload, target, select_records("r.seconds", "ORDER BY r.id"));
}

Result<int64_t> SqliteDatabase::size() {
  const std::lock_guard lock(tables_.mutex);
  return tables_.connection.integer("SELECT count(*) FROM record");
}

Status SqliteDatabase::erase(const std::vector<int64_t>& ids) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(transaction, Transaction::begin(tables_.connection));
  for (int64_t id : ids) {
    TW_TRY(finals, tables_.connection.prepare("DELETE FROM finals WHERE winner = ?1"));
    TW_RETURN_IF_ERROR(finals.bind(1, id).run());
    TW_TRY(record, tables_.connection.prepare("DELETE FROM record WHERE id = ?1"));
    TW_RETURN_IF_ERROR(record.bind(1, id).run());
  }
  return transaction.commit();
}

Status SqliteDatabase::commit_finals(const Hash128& workload, const std::string& target, const Finals& finals) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(transaction, Transaction::begin(tables_.connection));
  TW_TRY(workload_id, tables_.workload_id(workload));
  TW_TRY(target_id, tables_.target_id(target));
  TW_TRY(statement,
         tables_.connection.prepare("INSERT OR REPLACE INTO finals (workload_id, target_id, winner, seconds, "
                                    "median, last_record, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
  Record winner;
  winner.seconds = finals.seconds;
  statement.bind(1, workload_id).bind(2, target_id).bind(3, finals.winner).bind(4, to_json(finals.seconds));
  statement.bind(5, winner.median()).bind(6, finals.last_record).bind(7, now_utc());
  TW_RETURN_IF_ERROR(statement.run());
  return transaction.commit();
}

Result<std::optional<Finals>> SqliteDatabase::finals(const Hash128& workload, const std::string& target) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(statement, tables_.connection.prepare(
                        "SELECT f.winner, f.seconds, f.last_record FROM finals f JOIN workload w ON w.id = "
                        "f.workload_id JOIN target t ON t.id = f.target_id WHERE w.hash = ?1 AND t.text = ?2"));
  TW_TRY(row, statement.bind_blob(1, to_blob(workload)).bind(2, target).step());
  if (!row) return std::optional<Finals>();
  return std::optional<Finals>(
      {statement.integer(0), from_json(statement.text(1)).value_or(std::vector<double>()), statement.integer(2)});
}

Result<std::vector<Record>> SqliteDatabase::session_records(const SessionKey& key) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(id, tables_.session_id(key));
  if (!id) return std::vector<Record>();
  return tables_.read_records(key.workload, key.target,
                              select_records("r.seconds", "AND r.session_id = ?3 ORDER BY r.position"), *id);
}

Result<std::optional<Session>> SqliteDatabase::session(const SessionKey& key) {
  const std::lock_guard lock(tables_.mutex);
  // One transaction, so that state and records belong together.
  TW_TRY(reading, Transaction::begin(tables_.connection, "BEGIN"));
  (void)reading;
  TW_TRY(id, tables_.session_id(key));
  if (!id) return std::optional<Session>();
  Session session;
  TW_TRY(state, tables_.connection.prepare("SELECT state FROM session WHERE id = ?1"));
  TW_TRY(found, state.bind(1, *id).step());
  if (found) session.state = state.text(0);
  TW_TRY(statement, tables_.connection.prepare("SELECT position FROM record WHERE session_id = ?1 ORDER BY position"));
  statement.bind(1, *id);
  while (true) {
    TW_TRY(row, statement.step());
    if (!row) break;
    session.indices.push_back(statement.integer(0));
  }
  session.trials = static_cast<int64_t>(session.indices.size());
  return std::optional<Session>(std::move(session));
}

Status SqliteDatabase::save_session(const SessionKey& key, const std::string& state) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(transaction, Transaction::begin(tables_.connection));
  TW_TRY(workload, tables_.workload_id(key.workload));
  TW_TRY(target, tables_.target_id(key.target));
  TW_TRY(id, tables_.put_session(workload, target, key.space, key.seed, state));
  (void)id;
  return transaction.commit();
}

Status SqliteDatabase::forget_session(const SessionKey& key) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(transaction, Transaction::begin(tables_.connection));
  TW_TRY(id, tables_.session_id(key));
  if (id) {
    TW_TRY(statement, tables_.connection.prepare("DELETE FROM session WHERE id = ?1"));
    TW_RETURN_IF_ERROR(statement.bind(1, *id).run());
  }
  return transaction.commit();
}

Status SqliteDatabase::set_meta(const std::string& key, const std::string& value) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(statement, tables_.connection.prepare("INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO "
                                               "UPDATE SET value = excluded.value"));
  return statement.bind(1, key).bind(2, value).run();
}

Result<std::optional<std::string>> SqliteDatabase::meta(const std::string& key) {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(statement, tables_.connection.prepare("SELECT value FROM meta WHERE key = ?1"));
  TW_TRY(row, statement.bind(1, key).step());
  return row ? std::optional<std::string>(readable(statement.text(0))) : std::optional<std::string>();
}

Status SqliteDatabase::flush() {
  const std::lock_guard lock(tables_.mutex);
  TW_TRY(statement, tables_.connection.prepare("PRAGMA wal_checkpoint(PASSIVE)"));
  // Its row says whether all was moved.
  while (true) {
    TW_TRY(row, statement.step());
    if (!row) return Ok{};
  }
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::string& path, const DatabaseOptions& options) {
  TW_TRY(exists, recognize_database(path));
  if (!exists && options.read_only) {
    std::error_code error;
    return std::filesystem::exists(path, error)
               ? resource_error("database/missing", fmt::format("{}: the file is empty, it holds no records", path),
                                "take a copy from before; tuning makes a new database of it")
               : resource_error("database/missing", fmt::format("{}: there is no such database", path),
                                "check the path");
  }
  if (!exists) TW_RETURN_IF_ERROR(create_database(path));

  sqlite::OpenOptions how;
  how.busy_timeout = options.busy_timeout;
  const auto folder = std::filesystem::path(path).parent_path().string();
  // Reading a database with a write-ahead log makes side files, which only a connection that may write removes again;
  // where the folder may not be written, the database cannot change under the reader.
  how.immutable =
      options.read_only && ::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK, AT_EACCESS) != 0;
  how.read_only = how.immutable;
  TW_TRY(connection, Connection::open(path, how));
  TW_RETURN_IF_ERROR(connection.execute("PRAGMA foreign_keys = ON"));
  TW_TRY(version, connection.integer("PRAGMA user_version"));
  if (!options.read_only) {
    if (connection.is_read_only()) {
      return resource_error("database/read-only", fmt::format("{}: the database cannot be written", path),
                            "change the permissions of the file and its folder, or choose another path");
    }
    TW_RETURN_IF_ERROR(connection.execute("PRAGMA synchronous = NORMAL"));
    TW_RETURN_IF_ERROR(migrate(connection, migrations()));
  } else if (version < static_cast<int64_t>(migrations().size()) && !connection.is_read_only()) {
    TW_RETURN_IF_ERROR(migrate(connection, migrations()));
  } else if (version != static_cast<int64_t>(migrations().size())) {
    return resource_error(
        "database/newer-version",
        fmt::format("{}: has schema {}, this version of Tilewright reads {}", path, version, migrations().size()),
        "open it for writing once with the later of the two versions");
  }
  if (options.read_only) TW_RETURN_IF_ERROR(connection.execute("PRAGMA query_only = ON"));
  return std::unique_ptr<Database>(new SqliteDatabase(std::move(connection), path));
}

Result<std::unique_ptr<Database>> Database::in_memory(const std::string& path) {
  sqlite::OpenOptions how;
  how.create = true;
  TW_TRY(connection, Connection::open(":memory:", how));
  TW_RETURN_IF_ERROR(connection.execute("PRAGMA foreign_keys = ON"));
  TW_RETURN_IF_ERROR(migrate(connection, migrations()));
  return std::unique_ptr<Database>(new SqliteDatabase(std::move(connection), path));
}

}  // namespace tilewright::search
