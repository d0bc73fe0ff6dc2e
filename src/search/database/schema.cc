#include "search/database/schema.h"

#include <fmt/format.h>

namespace tilewright::search {
namespace {

constexpr const char* kMigrations[] = {
    // 0 -> 1: a new file.
    R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE workload (
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 16),
  name TEXT NOT NULL,
  script TEXT NOT NULL,
  created TEXT NOT NULL
);
CREATE TABLE target (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workload (id),
  target_id INTEGER NOT NULL REFERENCES target (id),
  space BLOB NOT NULL CHECK (length(space) = 16),
  seed INTEGER NOT NULL,
  state TEXT NOT NULL,
  updated TEXT NOT NULL,
  UNIQUE (workload_id, target_id, space, seed)
);
CREATE TABLE record (
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workload (id),
  target_id INTEGER NOT NULL REFERENCES target (id),
  session_id INTEGER REFERENCES session (id) ON DELETE SET NULL,
  seed INTEGER NOT NULL,
  round INTEGER NOT NULL,
  position INTEGER NOT NULL,
  trace TEXT NOT NULL,
  decisions TEXT NOT NULL,
  seconds TEXT NOT NULL,
  median REAL,
  outcome TEXT NOT NULL,
  error TEXT,
  verification TEXT NOT NULL,
  versions TEXT NOT NULL,
  created TEXT NOT NULL
);
CREATE INDEX record_best ON record (workload_id, target_id, median) WHERE median IS NOT NULL;
CREATE UNIQUE INDEX record_trial ON record (session_id, position) WHERE session_id IS NOT NULL;
)sql",
    // 1 -> 2: what was found when the best were timed against one another.
    R"sql(
CREATE TABLE finals (
  workload_id INTEGER NOT NULL REFERENCES workload (id),
  target_id INTEGER NOT NULL REFERENCES target (id),
  winner INTEGER NOT NULL REFERENCES record (id),
  seconds TEXT NOT NULL,
  median REAL NOT NULL,
  last_record INTEGER NOT NULL,
  created TEXT NOT NULL,
  PRIMARY KEY (workload_id, target_id)
) WITHOUT ROWID;
)sql",
    // 2 -> 3: times of programs that leave sizes open are kept apart by the sizes of the calls.
    R"sql(
ALTER TABLE workload ADD COLUMN sizes TEXT NOT NULL DEFAULT '';
)sql",
    // 3 -> 4: where a record was measured, and by which versions, are rows that records refer to. Until then each
    // record held one text: the versions, and among them the kind of machine.
    R"sql(
CREATE TABLE host (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE,
  processor TEXT AS (iif(json_valid(text), json_extract(text, '$.processor'), NULL)),
  machine TEXT AS (iif(json_valid(text), json_extract(text, '$.machine'), NULL)),
  cores INTEGER AS (iif(json_valid(text), json_extract(text, '$.cores'), NULL)),
  features TEXT AS (iif(json_valid(text), json_extract(text, '$.features'), NULL)),
  system TEXT AS (iif(json_valid(text), json_extract(text, '$.system'), NULL))
);
CREATE TABLE libraries (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE,
  tilewright TEXT AS (iif(json_valid(text), json_extract(text, '$.tilewright'), NULL)),
  llvm TEXT AS (iif(json_valid(text), json_extract(text, '$.llvm'), NULL)),
  python TEXT AS (iif(json_valid(text), json_extract(text, '$.python'), NULL)),
  numpy TEXT AS (iif(json_valid(text), json_extract(text, '$.numpy'), NULL)),
  xgboost TEXT AS (iif(json_valid(text), json_extract(text, '$.xgboost'), NULL))
);
CREATE TEMP TABLE origin AS SELECT id, versions, machine IS NOT NULL AS told, json_object('machine', machine) AS host FROM
  (SELECT id, versions, iif(json_valid(versions), json_extract(versions, '$.machine'), NULL) AS machine FROM record);
UPDATE origin SET versions = json_remove(versions, '$.machine') WHERE told;
INSERT INTO host (text) SELECT DISTINCT host FROM origin WHERE told;
INSERT INTO libraries (text) SELECT DISTINCT versions FROM origin WHERE versions <> '';
ALTER TABLE record ADD COLUMN host_id INTEGER REFERENCES host (id);
ALTER TABLE record ADD COLUMN libraries_id INTEGER REFERENCES libraries (id);
UPDATE record SET
  host_id = (SELECT h.id FROM origin o JOIN host h ON h.text = o.host WHERE o.id = record.id AND o.told),
  libraries_id = (SELECT l.id FROM origin o JOIN libraries l ON l.text = o.versions WHERE o.id = record.id);
DROP TABLE origin;
ALTER TABLE record DROP COLUMN versions;
)sql",
};

}  // namespace

std::span<const char* const> migrations() { return kMigrations; }

Status migrate(sqlite::Connection& connection, std::span<const char* const> steps) {
  // Under the write lock, since another process may be migrating the same file.
  TW_TRY(transaction, sqlite::Transaction::begin(connection));
  TW_TRY(version, connection.integer("PRAGMA user_version"));
  const auto current = static_cast<int64_t>(steps.size());
  if (version > current) {
    return resource_error(
        "database/newer-version",
        fmt::format("{}: was written by a later version of Tilewright (schema {}, this one reads up to {})",
                    connection.path(), version, current),
        "update Tilewright, or choose another path; this file is left as it is");
  }
  for (int64_t step = version; step < current; ++step) TW_RETURN_IF_ERROR(connection.execute(steps[step]));
  if (version < current) TW_RETURN_IF_ERROR(connection.execute(fmt::format("PRAGMA user_version = {}", current)));
  return transaction.commit();
}

}  // namespace tilewright::search
