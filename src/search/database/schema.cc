#include "search/database/schema.h"

#include <fmt/format.h>

namespace tilewright::search {
namespace {

constexpr Migration kMigrations[] = {
    // 0 -> 1: a new file.
    {R"sql(
CREATE TABLE #meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE #workload (
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 16),
  name TEXT NOT NULL,
  script TEXT NOT NULL,
  created TEXT NOT NULL
);
CREATE TABLE #target (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE #session (
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES #workload (id),
  target_id INTEGER NOT NULL REFERENCES #target (id),
  space BLOB NOT NULL CHECK (length(space) = 16),
  seed INTEGER NOT NULL,
  state TEXT NOT NULL,
  updated TEXT NOT NULL,
  UNIQUE (workload_id, target_id, space, seed)
);
CREATE TABLE #record (
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES #workload (id),
  target_id INTEGER NOT NULL REFERENCES #target (id),
  session_id INTEGER REFERENCES #session (id) ON DELETE SET NULL,
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
CREATE INDEX #record_best ON #record (workload_id, target_id, median) WHERE median IS NOT NULL;
CREATE UNIQUE INDEX #record_trial ON #record (session_id, position) WHERE session_id IS NOT NULL;
)sql"},
    // 1 -> 2: what was found when the best were timed against one another.
    {R"sql(
CREATE TABLE #finals (
  workload_id INTEGER NOT NULL REFERENCES #workload (id),
  target_id INTEGER NOT NULL REFERENCES #target (id),
  winner INTEGER NOT NULL REFERENCES #record (id),
  seconds TEXT NOT NULL,
  median REAL NOT NULL,
  last_record INTEGER NOT NULL,
  created TEXT NOT NULL,
  PRIMARY KEY (workload_id, target_id)
) WITHOUT ROWID;
)sql"},
    // 2 -> 3: times of programs that leave sizes open are kept apart by the sizes of the calls.
    {R"sql(
ALTER TABLE #workload ADD COLUMN sizes TEXT NOT NULL DEFAULT '';
)sql"},
    // 3 -> 4: where a record was measured, and by which versions, are rows that records refer to. Until then each
    // record held one text: the versions, and among them the kind of machine.
    {R"sql(
CREATE TABLE #host (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE,
  processor TEXT AS (iif(json_valid(text), json_extract(text, '$.processor'), NULL)),
  machine TEXT AS (iif(json_valid(text), json_extract(text, '$.machine'), NULL)),
  cores INTEGER AS (iif(json_valid(text), json_extract(text, '$.cores'), NULL)),
  features TEXT AS (iif(json_valid(text), json_extract(text, '$.features'), NULL)),
  system TEXT AS (iif(json_valid(text), json_extract(text, '$.system'), NULL))
);
CREATE TABLE #libraries (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE,
  tilewright TEXT AS (iif(json_valid(text), json_extract(text, '$.tilewright'), NULL)),
  llvm TEXT AS (iif(json_valid(text), json_extract(text, '$.llvm'), NULL)),
  python TEXT AS (iif(json_valid(text), json_extract(text, '$.python'), NULL)),
  numpy TEXT AS (iif(json_valid(text), json_extract(text, '$.numpy'), NULL)),
  xgboost TEXT AS (iif(json_valid(text), json_extract(text, '$.xgboost'), NULL))
);
ALTER TABLE #record ADD COLUMN host_id INTEGER REFERENCES #host (id);
ALTER TABLE #record ADD COLUMN libraries_id INTEGER REFERENCES #libraries (id);
)sql",
     R"sql(
CREATE TEMP TABLE origin AS
  SELECT id, versions, machine IS NOT NULL AS has_machine, json_object('machine', machine) AS host FROM
  (SELECT id, versions, iif(json_valid(versions), json_extract(versions, '$.machine'), NULL) AS machine FROM record);
UPDATE origin SET versions = json_remove(versions, '$.machine') WHERE has_machine;
INSERT INTO host (text) SELECT DISTINCT host FROM origin WHERE has_machine;
INSERT INTO libraries (text) SELECT DISTINCT versions FROM origin WHERE versions <> '';
UPDATE record SET
  host_id = (SELECT h.id FROM origin o JOIN host h ON h.text = o.host WHERE o.id = record.id AND o.has_machine),
  libraries_id = (SELECT l.id FROM origin o JOIN libraries l ON l.text = o.versions WHERE o.id = record.id);
DROP TABLE origin;
)sql",
     R"sql(
ALTER TABLE #record DROP COLUMN versions;
)sql"},
    // 4 -> 5: times of several hosts are compared by the ratio to an incumbent, timed on the same host.
    {R"sql(
ALTER TABLE #record ADD COLUMN incumbent_seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE #record ADD COLUMN incumbent_reference REAL NOT NULL DEFAULT 0;
)sql"},
};

// Until schema 4, servers had tables of their own: programs by the hexadecimal digits of their hash, times as lists, no
// rows for targets, and one text for where a record comes from, later two rows. What is missing there is made first.
constexpr const char* kServerBefore = R"sql(
CREATE TABLE IF NOT EXISTS #workload (hash text PRIMARY KEY, name text, script text, created timestamptz);
ALTER TABLE #workload ADD COLUMN IF NOT EXISTS sizes text NOT NULL DEFAULT '';
CREATE TABLE IF NOT EXISTS #session (id bigint, hash text, target text, space text, seed bigint, state text);
CREATE TABLE IF NOT EXISTS #host (id bigint, text text);
CREATE TABLE IF NOT EXISTS #libraries (id bigint, text text);
CREATE TABLE IF NOT EXISTS #record (id bigint, hash text, target text, trace text, seconds double precision[],
  outcome text, error text, created timestamptz);
ALTER TABLE #record
  ADD COLUMN IF NOT EXISTS session bigint,
  ADD COLUMN IF NOT EXISTS decisions text NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS verification text NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS seed bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS round bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS position bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS versions text NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS host bigint,
  ADD COLUMN IF NOT EXISTS libraries bigint;
CREATE TABLE IF NOT EXISTS #finals (hash text, target text, winner bigint, seconds double precision[],
  last_record bigint);
CREATE TABLE IF NOT EXISTS #meta (key text, value text);
DROP INDEX IF EXISTS #record_trial;
ALTER TABLE #workload RENAME TO #before_workload;
ALTER TABLE #session RENAME TO #before_session;
ALTER TABLE #host RENAME TO #before_host;
ALTER TABLE #libraries RENAME TO #before_libraries;
ALTER TABLE #record RENAME TO #before_record;
ALTER TABLE #finals RENAME TO #before_finals;
ALTER TABLE #meta RENAME TO #before_meta;
)sql";
constexpr const char* kServerAfter = R"sql(
CREATE FUNCTION pg_temp.utc(timestamptz) RETURNS text LANGUAGE sql AS
  $$ SELECT to_char($1 AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') $$;
CREATE FUNCTION pg_temp.kind(text) RETURNS text LANGUAGE plpgsql AS
  $$ BEGIN RETURN json_typeof($1::json); EXCEPTION WHEN others THEN RETURN ''; END $$;
CREATE FUNCTION pg_temp.median(double precision[]) RETURNS double precision LANGUAGE sql AS
  $$ SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY s) FROM unnest($1) s $$;
INSERT INTO #meta SELECT key, value FROM #before_meta;
INSERT INTO #workload (hash, name, script, created, sizes)
  SELECT decode(b.hash, 'hex'), b.name, b.script, pg_temp.utc(b.created), b.sizes FROM #before_workload b
  ORDER BY b.created, b.hash;
INSERT INTO #target (text)
  SELECT target FROM #before_record UNION SELECT target FROM #before_session UNION SELECT target FROM #before_finals;
INSERT INTO #session (id, workload_id, target_id, space, seed, state, updated)
  SELECT b.id, w.id, t.id, decode(b.space, 'hex'), b.seed, b.state, pg_temp.utc(now()) FROM #before_session b
  JOIN #workload w ON w.hash = decode(b.hash, 'hex') JOIN #target t ON t.text = b.target;
CREATE TEMP TABLE #before_origin ON COMMIT DROP AS SELECT b.id,
  coalesce(h.text, CASE WHEN parts.machine IS NOT NULL THEN '{"machine":' || parts.machine || '}' END) AS host,
  coalesce(l.text, CASE WHEN parts.machine IS NULL THEN nullif(b.versions, '') ELSE '{' || parts.others || '}' END)
    AS libraries
  FROM #before_record b LEFT JOIN #before_host h ON h.id = b.host LEFT JOIN #before_libraries l ON l.id = b.libraries
  CROSS JOIN LATERAL (
    SELECT min(value::text) FILTER (WHERE key = 'machine') AS machine,
      coalesce(string_agg(to_json(key)::text || ':' || value::text, ',' ORDER BY n) FILTER (WHERE key <> 'machine'), '')
        AS others
    FROM json_each(CASE WHEN pg_temp.kind(b.versions) = 'object' THEN b.versions::json ELSE '{}' END)
      WITH ORDINALITY AS fact (key, value, n)) AS parts;
INSERT INTO #host (text) SELECT DISTINCT host FROM #before_origin WHERE pg_temp.kind(host) <> '';
INSERT INTO #libraries (text) SELECT DISTINCT libraries FROM #before_origin WHERE pg_temp.kind(libraries) <> '';
INSERT INTO #record (id, workload_id, target_id, session_id, seed, round, position, trace, decisions, seconds, median,
    outcome, error, verification, created, host_id, libraries_id)
  SELECT b.id, w.id, t.id, b.session, b.seed, b.round, b.position, b.trace, b.decisions, array_to_json(b.seconds)::text,
    CASE WHEN b.outcome = 'ok' THEN pg_temp.median(b.seconds) END, b.outcome, nullif(b.error, ''), b.verification,
    pg_temp.utc(b.created), h.id, l.id
  FROM #before_record b JOIN #before_origin o ON o.id = b.id
  JOIN #workload w ON w.hash = decode(b.hash, 'hex') JOIN #target t ON t.text = b.target
  LEFT JOIN #host h ON h.text = o.host LEFT JOIN #libraries l ON l.text = o.libraries;
INSERT INTO #finals (workload_id, target_id, winner, seconds, median, last_record, created)
  SELECT w.id, t.id, b.winner, array_to_json(b.seconds)::text, pg_temp.median(b.seconds), b.last_record,
    pg_temp.utc(now())
  FROM #before_finals b JOIN #workload w ON w.hash = decode(b.hash, 'hex') JOIN #target t ON t.text = b.target;
SELECT setval(pg_get_serial_sequence('#session', 'id'), max(id)) FROM #session HAVING max(id) > 0;
SELECT setval(pg_get_serial_sequence('#record', 'id'), max(id)) FROM #record HAVING max(id) > 0;
DROP TABLE #before_finals, #before_record, #before_session, #before_host, #before_libraries, #before_workload, #before_meta;
)sql";

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

Status migrate(sql::Connection& connection, std::span<const Migration> steps) {
  // Alone, since another process may be migrating the same tables.
  TW_TRY(transaction, sql::Transaction::begin(connection));
  TW_RETURN_IF_ERROR(connection.run(connection.dialect.lock_schema));
  TW_TRY(found, connection.find<int64_t>(connection.dialect.version));
  const int64_t version = found.value_or(0), current = std::ssize(steps);
  if (version > current) {
    return resource_error(
        "database/newer-version",
        fmt::format("{}: was written by a later version of Tilewright (schema {}, this one reads up to {})",
                    connection.path, version, current),
        "update Tilewright, or choose another path; this file is left as it is");
  }
  const bool is_file = &connection.dialect == &sql::kSqlite;
  if (!is_file && version == 0) TW_RETURN_IF_ERROR(connection.run(kServerBefore));
  for (const Migration& step : steps.subspan(version)) {
    TW_RETURN_IF_ERROR(connection.run(step.tables));
    if (is_file) TW_RETURN_IF_ERROR(connection.run(step.rows_of_files));
    TW_RETURN_IF_ERROR(connection.run(step.then));
  }
  if (!is_file && version == 0) TW_RETURN_IF_ERROR(connection.run(kServerAfter));
  if (version < current) {
    TW_RETURN_IF_ERROR(connection.run(fmt::format(fmt::runtime(connection.dialect.set_version), current)));
  }
  return transaction.commit();
}

}  // namespace tilewright::search
