#include "search/database/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>
#include <tuple>
#include <utility>

#include "search/database/damage.h"
#include "search/database/database_file.h"
#include "search/database/schema.h"
#include "search/database/sqlite.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

/// Returns the column of a field in `record`, joined with its program, target, host and libraries.
std::string column_of(std::string_view field) {
  constexpr std::pair<std::string_view, const char*> kElsewhere[] = {{"workload", "w.hash"},
                                                                     {"target", "t.text"},
                                                                     {"host", "h.text"},
                                                                     {"versions", "l.text"},
                                                                     {"index", "r.position"}};
  for (const auto& [name, column] : kElsewhere) {
    if (name == field) return column;
  }
  return fmt::format("r.{}", field);
}

constexpr const char* kOfProgramAndTarget =
    "#{} {} JOIN #workload w ON w.id = {}.workload_id JOIN #target t ON t.id = {}.target_id";

std::string joined(const char* table, const char* name) {
  return fmt::format(fmt::runtime(kOfProgramAndTarget), table, name, name, name);
}

/// Reads the columns of the fields in their order. Returns the first field that cannot be read, or an empty name.
template <class T>
std::string_view read_fields(const sql::Row& row, T& into) {
  size_t column = 0;
  std::string_view unread;
  for_each_field(into, [&](std::string_view name, auto& field) {
    if (!sql::read(row[column++], field) && unread.empty()) unread = name;
  });
  return unread;
}

Workload workload_of(const sql::Row& row) {
  Workload workload;
  read_fields(row, workload);
  for (std::string* text : {&workload.name, &workload.script, &workload.created, &workload.sizes}) {
    *text = readable(std::move(*text));
  }
  return workload;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Diagnostic missing(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error)
             ? resource_error("database/missing", fmt::format("{}: the file is empty, it holds no records", path),
                              "take a copy from before; tuning makes a new database of it")
             : resource_error("database/missing", fmt::format("{}: there is no such database", path), "check the path");
}

}  // namespace

double Record::median() const {
  const auto is_nan = [](double each) { return std::isnan(each); };
  if (seconds.empty() || any_of(seconds, is_nan)) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted = seconds;
  std::ranges::sort(sorted);
  const size_t middle = sorted.size() / 2;
  return host_factor() * (sorted.size() % 2 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]));
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, const DatabaseOptions& options) {
  TW_TRY(exists, recognize_database(path));
  if (!exists && options.read_only) return missing(path);
  if (!exists) TW_RETURN_IF_ERROR(create_database(path));

  sqlite::OpenOptions how;
  how.busy_timeout = options.busy_timeout;
  const auto folder = std::filesystem::path(path).parent_path().string();
  // Reading a database with a write-ahead log makes side files, which only a connection that may write removes again;
  // where the folder may not be written, the database cannot change under the reader.
  how.immutable =
      options.read_only && ::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK, AT_EACCESS) != 0;
  how.read_only = how.immutable;
  TW_TRY(connection, sqlite::open(path, how));
  TW_RETURN_IF_ERROR(connection->run("PRAGMA foreign_keys = ON"));
  const bool is_fixed = sqlite::is_read_only(*connection);
  TW_TRY(version, connection->find<int64_t>(sql::kSqlite.version));
  const int64_t current = std::ssize(migrations());
  if (!options.read_only) {
    if (is_fixed) {
      return resource_error("database/read-only", fmt::format("{}: the database cannot be written", path),
                            "change the permissions of the file and its folder, or choose another path");
    }
    TW_RETURN_IF_ERROR(connection->run("PRAGMA synchronous = NORMAL"));
    TW_RETURN_IF_ERROR(migrate(*connection, migrations()));
  } else if (*version < current && !is_fixed) {
    TW_RETURN_IF_ERROR(migrate(*connection, migrations()));
  } else if (*version != current) {
    return resource_error(
        "database/newer-version",
        fmt::format("{}: has schema {}, this version of Tilewright reads {}", path, *version, current),
        "open it for writing once with the later of the two versions");
  }
  if (options.read_only) TW_RETURN_IF_ERROR(connection->run("PRAGMA query_only = ON"));
  return std::unique_ptr<Database>(new Database(std::move(connection), path));
}

Result<std::unique_ptr<Database>> Database::in_memory(const std::string& path) {
  TW_TRY(connection, sqlite::open(":memory:", {.create = true}));
  TW_RETURN_IF_ERROR(connection->run("PRAGMA foreign_keys = ON"));
  TW_TRY(database, over(std::move(connection)));
  database->path_ = path;
  return std::move(database);
}

Result<std::unique_ptr<Database>> Database::over(std::unique_ptr<sql::Connection> connection) {
  TW_RETURN_IF_ERROR(migrate(*connection, migrations()));
  std::string path = connection->path;
  return std::unique_ptr<Database>(new Database(std::move(connection), std::move(path)));
}

Status Database::commit_workload(const Hash128& hash, const std::string& name, const std::string& script,
                                 const std::string& sizes) {
  const std::lock_guard lock(mutex_);
  TW_RETURN_IF_ERROR(
      connection_->run("INSERT INTO #workload (hash, name, script, created, sizes) VALUES (?1, ?2, ?3, ?4, ?5) "
                       "ON CONFLICT DO NOTHING",
                       hash, name, script, now_utc(), sizes));
  return Ok{};
}

Result<std::optional<Workload>> Database::workload(const Hash128& hash) {
  const std::lock_guard lock(mutex_);
  TW_TRY(rows, connection_->run("SELECT hash, name, script, created, sizes FROM #workload WHERE hash = ?1", hash));
  return rows.empty() ? std::optional<Workload>() : workload_of(rows[0]);
}

Result<std::vector<Workload>> Database::workloads() {
  const std::lock_guard lock(mutex_);
  TW_TRY(rows, connection_->run("SELECT hash, name, script, created, sizes FROM #workload ORDER BY id"));
  std::vector<Workload> all;
  for (const sql::Row& row : rows) all.push_back(workload_of(row));
  return all;
}

Result<std::vector<Record>> Database::select(const std::string& rest, const sql::Row& values, const char* seconds) {
  std::vector<std::string> columns;
  const Record none;
  for_each_field(none, [&](std::string_view name, const auto&) {
    columns.push_back(name == "seconds" ? seconds : column_of(name));
  });
  TW_TRY(rows, connection_->run_row(
                   fmt::format("SELECT {} FROM {} LEFT JOIN #host h ON h.id = r.host_id LEFT JOIN #libraries l ON l.id "
                               "= r.libraries_id LEFT JOIN #finals f ON f.workload_id = r.workload_id AND f.target_id "
                               "= r.target_id WHERE w.hash = ?1 AND (?2 = '' OR t.text = ?2) {}",
                               fmt::join(columns, ", "), joined("record", "r"), rest),
                   values));
  std::vector<Record> records;
  for (const sql::Row& row : rows) {
    Record& record = records.emplace_back();
    mark_damage(record, read_fields(row, record));
    if (record.outcome != kDamaged || !damaged_.insert(record.id).second) continue;
    warnings_.push_back(fmt::format(
        "{}: record {} of program {} is damaged ({}): it is ignored, and kept as it is\n  hint: take a copy of "
        "the database from before, or forget such records: tilewright db {} --forget-damaged",
        path_, record.id, record.workload.hex().substr(0, 12), record.error, path_));
  }
  return records;
}

std::vector<std::string> Database::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

Result<std::vector<Record>> Database::records(const Hash128& workload, const std::string& target) {
  const std::lock_guard lock(mutex_);
  return select("ORDER BY r.id", {sql::to_value(workload), target});
}

/// Pruning keeps the first records of this order.
Result<std::vector<Record>> Database::top_k(const Hash128& workload, const std::string& target, size_t count) {
  const std::lock_guard lock(mutex_);
  std::vector<Record> best;
  // Read more rows in place of damaged ones.
  for (int64_t offset = 0; best.size() < count;) {
    const auto wanted = static_cast<int64_t>(std::min<size_t>(count - best.size(), INT64_MAX));
    TW_TRY(found, select("AND r.median IS NOT NULL ORDER BY f.winner IS NOT NULL AND r.id <> f.winner AND "
                         "(r.id <= f.last_record OR r.median >= f.median), "
                         "CASE WHEN r.id = f.winner THEN f.median ELSE r.median END, r.id LIMIT ?3 OFFSET ?4",
                         {sql::to_value(workload), target, wanted, offset},
                         "CASE WHEN r.id = f.winner THEN f.seconds ELSE r.seconds END"));
    offset += std::ssize(found);
    const bool is_last = std::ssize(found) < wanted;
    std::erase_if(found, [](const Record& record) { return !record.is_ok(); });
    std::ranges::move(found, std::back_inserter(best));
    if (is_last) break;
  }
  return best;
}

Result<std::optional<Record>> Database::best(const Hash128& workload, const std::string& target) {
  TW_TRY(records, top_k(workload, target, 1));
  return records.empty() ? std::optional<Record>() : std::optional<Record>(std::move(records.front()));
}

Result<int64_t> Database::size() {
  const std::lock_guard lock(mutex_);
  TW_TRY(count, connection_->find<int64_t>("SELECT count(*) FROM #record"));
  return *count;
}

Result<sql::Row> Database::ids(const Hash128& workload, const std::string& target, const std::string& host,
                               const std::string& libraries) {
  TW_TRY(found, connection_->run("SELECT (SELECT id FROM #workload WHERE hash = ?1), "
                                 "(SELECT id FROM #target WHERE text = ?2), (SELECT id FROM #host WHERE text = ?3), "
                                 "(SELECT id FROM #libraries WHERE text = ?4)",
                                 workload, target, host, libraries));
  sql::Row& ids = found[0];
  const auto is_missing = [&](int column) { return std::holds_alternative<std::monostate>(ids[column]); };
  if (is_missing(0)) {
    return resource_error("database/unknown-workload",
                          fmt::format("{}: workload {} was never committed", path_, workload.hex()),
                          "commit the workload before its records");
  }
  for (const auto& [column, table, text] :
       {std::tuple(1, "target", &target), std::tuple(2, "host", &host), std::tuple(3, "libraries", &libraries)}) {
    if (!is_missing(column) || (column > 1 && !is_json(*text))) continue;
    TW_RETURN_IF_ERROR(
        connection_->run(fmt::format("INSERT INTO #{} (text) VALUES (?1) ON CONFLICT DO NOTHING", table), *text));
    TW_TRY(id, connection_->find<int64_t>(fmt::format("SELECT id FROM #{} WHERE text = ?1", table), *text));
    ids[column] = *id;
  }
  return std::move(ids);
}

Result<int64_t> Database::put_session(const sql::Row& ids, const Hash128& space, uint64_t seed,
                                      const std::string& state) {
  TW_TRY(id, connection_->find<int64_t>(
                 "INSERT INTO #session (workload_id, target_id, space, seed, state, updated) VALUES (?1, ?2, ?3, ?4, "
                 "?5, ?6) ON CONFLICT (workload_id, target_id, space, seed) DO UPDATE SET state = excluded.state, "
                 "updated = excluded.updated RETURNING id",
                 ids[0], ids[1], space, seed, state, now_utc()));
  return *id;
}

Result<int64_t> Database::put(const Record& record, const sql::Row& ids, const sql::Value& session) {
  const auto or_null = [](bool is_known, sql::Value value) { return is_known ? std::move(value) : sql::Value(); };
  std::vector<std::string> columns{"workload_id", "target_id", "host_id", "libraries_id", "session_id", "median"};
  sql::Row values = ids;
  values.push_back(session);
  // Records from other programs may contain anything, so only finite positive times count.
  const double median = record.median();
  values.push_back(or_null(record.is_ok() && std::isfinite(median) && median > 0, median));
  for_each_field(record, [&](std::string_view name, const auto& field) {
    const std::string column = column_of(name);
    if (!column.starts_with("r.") || name == "id") return;
    columns.push_back(column.substr(2));
    values.push_back(or_null(name != "error" || !record.error.empty(), sql::to_value(field)));
  });
  std::vector<std::string> marks;
  for (size_t i = 1; i <= values.size(); ++i) marks.push_back(fmt::format("?{}", i));
  TW_TRY(made,
         connection_->run_row(fmt::format("INSERT INTO #record ({}) VALUES ({}) ON CONFLICT (session_id, position) "
                                          "WHERE session_id IS NOT NULL DO NOTHING RETURNING id",
                                          fmt::join(columns, ", "), fmt::join(marks, ", ")),
                              values));
  if (!made.empty()) return std::get<int64_t>(made[0][0]);
  TW_TRY(present, select("AND r.session_id = ?3 AND r.position = ?4",
                         {sql::to_value(record.workload), record.target, session, record.index}));
  if (!present.empty() && present[0].outcome != kDamaged) return present[0].id;
  // It gives its place to the new one; so does one that was harmed in what it says of its program or its target.
  TW_RETURN_IF_ERROR(connection_->run("UPDATE #record SET session_id = NULL WHERE session_id = ?1 AND position = ?2",
                                      session, record.index));
  return put(record, ids, session);
}

Result<int64_t> Database::store(const Record& record, const SessionStep* step) {
  const auto stored = [&]() -> Result<int64_t> {
    const std::lock_guard lock(mutex_);
    Record kept = record;
    if (kept.created.empty()) kept.created = now_utc();
    TW_TRY(transaction, sql::Transaction::begin(*connection_));
    TW_TRY(ids, this->ids(record.workload, record.target, record.host, record.versions));
    sql::Value session;
    if (step) {
      TW_TRY(known, put_session(ids, step->space, record.seed, step->state));
      session = known;
    }
    TW_TRY(id, put(kept, ids, session));
    TW_RETURN_IF_ERROR(transaction.commit());
    return id;
  }();
  if (!stored.ok() || !on_commit) return stored;
  TW_TRY(program, workload(record.workload));
  TW_RETURN_IF_ERROR(on_commit(*program, record));
  return stored;
}

Status Database::erase(const std::vector<int64_t>& ids) {
  const std::lock_guard lock(mutex_);
  TW_TRY(transaction, sql::Transaction::begin(*connection_));
  for (const int64_t id : ids) {
    TW_RETURN_IF_ERROR(connection_->run("DELETE FROM #finals WHERE winner = ?1", id));
    TW_RETURN_IF_ERROR(connection_->run("DELETE FROM #record WHERE id = ?1", id));
  }
  return transaction.commit();
}

Status Database::commit_finals(const Hash128& workload, const std::string& target, const Finals& finals) {
  const std::lock_guard lock(mutex_);
  TW_TRY(transaction, sql::Transaction::begin(*connection_));
  TW_TRY(ids, this->ids(workload, target));
  Record winner;
  winner.seconds = finals.seconds;
  TW_RETURN_IF_ERROR(connection_->run(
      "INSERT INTO #finals (workload_id, target_id, winner, seconds, median, last_record, created) VALUES (?1, ?2, ?3, "
      "?4, ?5, ?6, ?7) ON CONFLICT (workload_id, target_id) DO UPDATE SET winner = excluded.winner, seconds = "
      "excluded.seconds, median = excluded.median, last_record = excluded.last_record, created = excluded.created",
      ids[0], ids[1], finals.winner, finals.seconds, winner.median(), finals.last_record, now_utc()));
  return transaction.commit();
}

Result<std::optional<Finals>> Database::finals(const Hash128& workload, const std::string& target) {
  const std::lock_guard lock(mutex_);
  TW_TRY(rows, connection_->run(fmt::format("SELECT f.winner, f.seconds, f.last_record FROM {} WHERE w.hash = ?1 AND "
                                            "t.text = ?2",
                                            joined("finals", "f")),
                                workload, target));
  std::optional<Finals> found;
  if (!rows.empty()) read_fields(rows[0], found.emplace());
  return found;
}

Result<std::optional<int64_t>> Database::session_id(const SessionKey& key) {
  return connection_->find<int64_t>(
      fmt::format("SELECT s.id FROM {} WHERE w.hash = ?1 AND t.text = ?2 AND s.space = ?3 AND s.seed = ?4",
                  joined("session", "s")),
      key.workload, key.target, key.space, key.seed);
}

Result<std::vector<Record>> Database::session_records(const SessionKey& key) {
  const std::lock_guard lock(mutex_);
  TW_TRY(id, session_id(key));
  if (!id) return std::vector<Record>();
  return select("AND r.session_id = ?3 ORDER BY r.position", {sql::to_value(key.workload), key.target, *id});
}

Result<std::optional<Session>> Database::session(const SessionKey& key) {
  const std::lock_guard lock(mutex_);
  // One transaction, so that state and records belong together.
  TW_TRY(reading, sql::Transaction::begin(*connection_, "BEGIN"));
  (void)reading;
  TW_TRY(id, session_id(key));
  if (!id) return std::optional<Session>();
  Session session;
  TW_TRY(state, connection_->find<std::string>("SELECT state FROM #session WHERE id = ?1", *id));
  session.state = state.value_or("");
  TW_TRY(rows, connection_->run("SELECT position FROM #record WHERE session_id = ?1 ORDER BY position", *id));
  for (const sql::Row& row : rows) sql::read(row[0], session.indices.emplace_back());
  session.trials = std::ssize(rows);
  return std::optional<Session>(std::move(session));
}

Status Database::save_session(const SessionKey& key, const std::string& state) {
  const std::lock_guard lock(mutex_);
  TW_TRY(transaction, sql::Transaction::begin(*connection_));
  TW_TRY(ids, this->ids(key.workload, key.target));
  TW_RETURN_IF_ERROR(put_session(ids, key.space, key.seed, state));
  return transaction.commit();
}

Status Database::forget_session(const SessionKey& key) {
  const std::lock_guard lock(mutex_);
  TW_TRY(transaction, sql::Transaction::begin(*connection_));
  TW_TRY(id, session_id(key));
  if (id) TW_RETURN_IF_ERROR(connection_->run("DELETE FROM #session WHERE id = ?1", *id));
  return transaction.commit();
}

Status Database::set_meta(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  TW_RETURN_IF_ERROR(
      connection_->run("INSERT INTO #meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE "
                       "SET value = excluded.value",
                       key, value));
  return Ok{};
}

Result<bool> Database::replace_meta(const std::string& key, const std::optional<std::string>& before,
                                    const std::string& value) {
  const std::lock_guard lock(mutex_);
  TW_TRY(changed, before ? connection_->run("UPDATE #meta SET value = ?2 WHERE key = ?1 AND value = ?3 RETURNING key",
                                            key, value, *before)
                         : connection_->run("INSERT INTO #meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) "
                                            "DO NOTHING RETURNING key",
                                            key, value));
  return !changed.empty();
}

Result<std::optional<std::string>> Database::meta(const std::string& key) {
  const std::lock_guard lock(mutex_);
  TW_TRY(value, connection_->find<std::string>("SELECT value FROM #meta WHERE key = ?1", key));
  if (value) *value = readable(std::move(*value));
  return std::move(value);
}

Status Database::flush() {
  const std::lock_guard lock(mutex_);
  TW_RETURN_IF_ERROR(connection_->run(connection_->dialect.flush));
  return Ok{};
}

}  // namespace tilewright::search
