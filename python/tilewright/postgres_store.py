"""Records in the tables of a PostgreSQL server, which a team shares: what the file of records is for one machine."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright import _core
from tilewright.errors import ResourceError
from tilewright.origins import HOST_FACTS, LIBRARIES, facts_of

__all__ = ["PostgresStore", "is_server", "without_password"]

_TABLES = """
CREATE TABLE IF NOT EXISTS tilewright_workload (
  hash text PRIMARY KEY, name text NOT NULL, script text NOT NULL, created timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE tilewright_workload ADD COLUMN IF NOT EXISTS sizes text NOT NULL DEFAULT '';
CREATE TABLE IF NOT EXISTS tilewright_session (
  id bigserial PRIMARY KEY,
  hash text NOT NULL REFERENCES tilewright_workload (hash),
  target text NOT NULL, space text NOT NULL, seed bigint NOT NULL, state text NOT NULL,
  UNIQUE (hash, target, space, seed)
);
CREATE TABLE IF NOT EXISTS tilewright_host (
  id bigserial PRIMARY KEY, text text NOT NULL UNIQUE,
  processor text, machine text, cores text, features text, system text
);
CREATE TABLE IF NOT EXISTS tilewright_libraries (
  id bigserial PRIMARY KEY, text text NOT NULL UNIQUE,
  tilewright text, llvm text, python text, numpy text, xgboost text
);
CREATE TABLE IF NOT EXISTS tilewright_record (
  id bigserial PRIMARY KEY,
  hash text NOT NULL REFERENCES tilewright_workload (hash),
  target text NOT NULL, trace text NOT NULL, seconds double precision[] NOT NULL,
  outcome text NOT NULL, error text NOT NULL, created timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE tilewright_record
  ADD COLUMN IF NOT EXISTS session bigint REFERENCES tilewright_session (id) ON DELETE SET NULL,
  ADD COLUMN IF NOT EXISTS decisions text NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS verification text NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS seed bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS round bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS position bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS host bigint REFERENCES tilewright_host (id),
  ADD COLUMN IF NOT EXISTS libraries bigint REFERENCES tilewright_libraries (id);
CREATE INDEX IF NOT EXISTS tilewright_record_of ON tilewright_record (hash, target);
CREATE UNIQUE INDEX IF NOT EXISTS tilewright_record_trial ON tilewright_record (session, position)
  WHERE session IS NOT NULL;
CREATE TABLE IF NOT EXISTS tilewright_finals (
  hash text NOT NULL REFERENCES tilewright_workload (hash),
  target text NOT NULL,
  winner bigint NOT NULL REFERENCES tilewright_record (id) ON DELETE CASCADE,
  seconds double precision[] NOT NULL, last_record bigint NOT NULL,
  PRIMARY KEY (hash, target)
);
CREATE TABLE IF NOT EXISTS tilewright_meta (key text PRIMARY KEY, value text NOT NULL);
"""
#: of the lock under which tables are made, so that two who begin at once do not disturb one another
_LOCK = 0x7465_6E73
_CREATED = """to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""
#: of a record, as the core names them -> what the tables say
_COLUMNS = {
    "id": "id",
    "workload": "hash",
    "target": "target",
    "trace": "trace",
    "decisions": "decisions",
    "seconds": "seconds",
    "outcome": "outcome",
    "error": "error",
    "verification": "verification",
    "seed": "seed",
    "round": "round",
    "index": "position",
    "host": "host",
    "versions": "libraries",
    "created": _CREATED,
}
#: of a record, what is a row of its own -> its table and the columns that are read off its text
_ORIGINS = {"host": ("tilewright_host", HOST_FACTS), "versions": ("tilewright_libraries", LIBRARIES)}
_SELECTED = _COLUMNS | {
    name: f"coalesce((SELECT o.text FROM {table} o WHERE o.id = {_COLUMNS[name]}), '')"
    for name, (table, _) in _ORIGINS.items()
}
_RECORDS = f"SELECT {', '.join(_SELECTED.values())} FROM tilewright_record "
#: those that a new record is given
_GIVEN = [name for name in _COLUMNS if name not in ("id", "created")]


def is_server(where: object) -> bool:
    """Whether this names a server and no file."""
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))


def without_password(where: str) -> str:
    """A server as reports and messages name it."""
    return re.sub(r"(//[^/@:]*):[^@]*@", r"\1@", where)


class PostgresStore(_core.Database):
    """Records on a PostgreSQL server, for any number of machines at once. Needs ``psycopg``.

    Args:
        server: a connection string, such as "postgresql://user@host/database".

    Raises:
        tilewright.ResourceError: psycopg is missing, or the server is not to be reached or refuses.
    """

    def __init__(self, server: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError as error:
            raise ResourceError.of(
                "database/driver", f"psycopg cannot be imported: {error}", "pip install tilewright[postgres]"
            ) from None
        self._driver = psycopg
        self._path = without_password(server)
        with self._told():
            self._connection = psycopg.connect(server, autocommit=True)
            with self._connection.transaction():
                self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                self._connection.execute(_TABLES)
                self._migrate()

    def _migrate(self) -> None:
        """Records of earlier versions each held one text: the versions, and among them the kind of machine."""
        known = self._connection.execute(
            "SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema() "
            "AND table_name = 'tilewright_record' AND column_name = 'versions'"
        ).fetchall()
        if not known:
            return
        for (text,) in self._connection.execute("SELECT DISTINCT versions FROM tilewright_record").fetchall():
            versions = facts_of(text)
            machine = versions.pop("machine", None)
            host = "" if machine is None else _text({"machine": machine})
            libraries = text if machine is None else _text(versions)
            self._connection.execute(
                "UPDATE tilewright_record SET host = %s, libraries = %s WHERE versions = %s",
                [self._origin_id("host", host), self._origin_id("versions", libraries), text],
            )
        self._connection.execute("ALTER TABLE tilewright_record DROP COLUMN versions")

    def _origin_id(self, name: str, text: str) -> int | None:
        """Of the row with the text, made where there is none; None for no text."""
        if not text:
            return None
        (table, columns), facts = _ORIGINS[name], facts_of(text)
        asked = f"SELECT id FROM {table} WHERE text = %s"
        found = self._connection.execute(asked, [text]).fetchall()
        if not found:
            self._connection.execute(
                f"INSERT INTO {table} (text, {', '.join(columns)}) VALUES (%s{', %s' * len(columns)}) "
                "ON CONFLICT (text) DO NOTHING",
                [text, *(str(facts[each]) if each in facts else None for each in columns)],
            )
            found = self._connection.execute(asked, [text]).fetchall()
        return int(found[0][0])

    @property
    def path(self) -> str:
        """The server, without a password."""
        return self._path

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong with the server is one of our errors."""
        try:
            yield
        except self._driver.Error as error:
            text = str(error).strip() or type(error).__name__
            raise ResourceError.of(
                "database/server", f"the PostgreSQL server: {text}", "is it running, and may you write there?"
            ) from error

    def _rows(self, question: str, *values: Any) -> list[Any]:
        with self._told():
            found: list[Any] = self._connection.execute(question, values).fetchall()
            return found

    def _do(self, order: str, *values: Any) -> None:
        with self._told():
            self._connection.execute(order, values)

    def commit_workload(self, hash: str, name: str, script: str, sizes: str = "") -> None:
        """Does nothing when the program is known already."""
        self._do(
            "INSERT INTO tilewright_workload (hash, name, script, sizes) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            hash,
            name,
            script,
            sizes,
        )

    def workloads(self) -> list[dict[str, Any]]:
        """All programs, the oldest first."""
        rows = self._rows(
            f"SELECT hash, name, script, {_CREATED}, sizes FROM tilewright_workload w ORDER BY w.created, hash"
        )
        return [dict(zip(("hash", "name", "script", "created", "sizes"), row, strict=True)) for row in rows]

    def _records(self, rest: str, *values: Any) -> list[dict[str, Any]]:
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in self._rows(_RECORDS + rest, *values)]
        return self.examined([row | {"median": _median(row["seconds"])} for row in rows])

    def records(self, hash: str, target: str) -> list[dict[str, Any]]:
        """All of a program in the order of their commits; an empty target means any."""
        return self._records("WHERE hash = %s AND %s IN ('', target) ORDER BY id", hash, target)

    def store(self, record: dict[str, Any], space: str | None, state: str) -> int:
        """Keeps a record, and the state of its session where it has one; gives its number, or that of the one that has
        its place in the session already."""
        with self._told(), self._connection.transaction():
            session = None
            if space is not None:
                session = self._put_session(record["workload"], record["target"], space, record["seed"], state)
            names = [_COLUMNS[name] for name in _GIVEN]
            said = record | {name: self._origin_id(name, record.get(name, "")) for name in _ORIGINS}
            values = [list(said[name]) if name == "seconds" else said[name] for name in _GIVEN]
            found = self._connection.execute(
                f"INSERT INTO tilewright_record (session, {', '.join(names)}) "
                f"VALUES ({', '.join(['%s'] * (1 + len(names)))}) "
                "ON CONFLICT (session, position) WHERE session IS NOT NULL DO NOTHING RETURNING id",
                [session, *values],
            ).fetchall()
            if not found:
                (there,) = self._records("WHERE session = %s AND position = %s", session, record["index"])
                if there["outcome"] != "damaged":
                    return int(there["id"])
                # It gives its place to the new one.
                self._connection.execute("UPDATE tilewright_record SET session = NULL WHERE id = %s", [there["id"]])
                return self.store(record, space, state)
            return int(found[0][0])

    def erase(self, ids: Sequence[int]) -> None:
        """Forgets records."""
        self._do("DELETE FROM tilewright_record WHERE id = ANY(%s)", list(ids))

    def commit_finals(self, hash: str, target: str, winner: int, seconds: Sequence[float], last_record: int) -> None:
        """Replaces what was found when the best were timed in turn."""
        self._do(
            "INSERT INTO tilewright_finals (hash, target, winner, seconds, last_record) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (hash, target) DO UPDATE SET winner = excluded.winner, seconds = excluded.seconds, "
            "last_record = excluded.last_record",
            hash,
            target,
            winner,
            list(seconds),
            last_record,
        )

    def finals(self, hash: str, target: str) -> dict[str, Any] | None:
        """What that was; None where it was not done."""
        rows = self._rows(
            "SELECT winner, seconds, last_record FROM tilewright_finals WHERE hash = %s AND target = %s", hash, target
        )
        return dict(zip(("winner", "seconds", "last_record"), rows[0], strict=True)) if rows else None

    def _put_session(self, hash: str, target: str, space: str, seed: int, state: str) -> int:
        (row,) = self._connection.execute(
            "INSERT INTO tilewright_session (hash, target, space, seed, state) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (hash, target, space, seed) DO UPDATE SET state = excluded.state RETURNING id",
            [hash, target, space, seed, state],
        ).fetchall()
        return int(row[0])

    def session(self, hash: str, target: str, space: str, seed: int) -> str | None:
        """The state of a session; None without one."""
        rows = self._rows(
            "SELECT state FROM tilewright_session WHERE hash = %s AND target = %s AND space = %s AND seed = %s",
            hash,
            target,
            space,
            seed,
        )
        return str(rows[0][0]) if rows else None

    def session_records(self, hash: str, target: str, space: str, seed: int) -> list[dict[str, Any]]:
        """The records of a session by their place in it."""
        return self._records(
            "WHERE session = (SELECT id FROM tilewright_session WHERE hash = %s AND target = %s AND space = %s AND "
            "seed = %s) ORDER BY position",
            hash,
            target,
            space,
            seed,
        )

    def save_session(self, hash: str, target: str, space: str, seed: int, state: str) -> None:
        """Keeps the state of a session."""
        with self._told():
            self._put_session(hash, target, space, seed, state)

    def forget_session(self, hash: str, target: str, space: str, seed: int) -> None:
        """The session is gone, its records stay."""
        self._do(
            "DELETE FROM tilewright_session WHERE hash = %s AND target = %s AND space = %s AND seed = %s",
            hash,
            target,
            space,
            seed,
        )

    def set_meta(self, key: str, value: str) -> None:
        """Keeps a fact."""
        self._do(
            "INSERT INTO tilewright_meta (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE "
            "SET value = excluded.value",
            key,
            value,
        )

    def meta(self, key: str) -> str | None:
        """A fact; None where there is none."""
        rows = self._rows("SELECT value FROM tilewright_meta WHERE key = %s", key)
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


def _text(facts: dict[str, Any]) -> str:
    return json.dumps(facts, separators=(",", ":"))


def _median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) if seconds else float("inf")
