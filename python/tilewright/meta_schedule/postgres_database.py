"""The database that a team shares: tables of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.errors import ResourceError
from tilewright.meta_schedule.sqlite_database import TablesDatabase

__all__ = ["PostgresDatabase"]

_TABLES = """
CREATE TABLE IF NOT EXISTS tilewright_workload (
  hash text PRIMARY KEY, name text NOT NULL, script text NOT NULL, created timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS tilewright_record (
  id bigserial PRIMARY KEY,
  hash text NOT NULL REFERENCES tilewright_workload (hash),
  target text NOT NULL, trace text NOT NULL, seconds double precision[] NOT NULL,
  outcome text NOT NULL, error text NOT NULL, created timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS tilewright_record_of ON tilewright_record (hash, target);
"""
#: of the lock under which tables are made, so that two who begin at once do not disturb one another
_LOCK = 0x7465_6E73


class PostgresDatabase(TablesDatabase):
    """Keeps programs and records on a PostgreSQL server, for any number of machines at once. Needs ``psycopg``
    (``pip install tilewright[postgres]``).

    Args:
        server: a connection string, such as "postgresql://user@host/database" or "host=/tmp dbname=tuning".
        module_equality: "structural"; tables know no other.

    Raises:
        tilewright.ResourceError: psycopg is missing, or the server is not to be reached or refuses.
    """

    def __init__(self, server: str, *, module_equality: str = "structural") -> None:
        super().__init__(_Store(server), module_equality)

    def close(self) -> None:
        """Ends the connection."""
        self._store.close()


class _Store:
    def __init__(self, server: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise ResourceError.of(
                "database/driver", f"psycopg cannot be imported: {error}", "pip install tilewright[postgres]"
            ) from None
        self._driver = psycopg
        with self._told():
            self._connection = psycopg.connect(server, autocommit=True)
            with self._connection.transaction():
                self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                self._connection.execute(_TABLES)

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
            return self._connection.execute(question, values).fetchall()

    def commit_workload(self, key: str, name: str, script: str) -> None:
        with self._told():
            self._connection.execute(
                "INSERT INTO tilewright_workload (hash, name, script) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [key, name, script],
            )

    def workloads(self) -> list[dict[str, Any]]:
        rows = self._rows("SELECT hash, name, script FROM tilewright_workload ORDER BY created, hash")
        return [dict(zip(("hash", "name", "script"), row, strict=True)) for row in rows]

    def commit(self, key: str, target: str, trace: str, seconds: Any, outcome: str, error: str) -> None:
        with self._told():
            self._connection.execute(
                "INSERT INTO tilewright_record (hash, target, trace, seconds, outcome, error) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                [key, target, trace, [float(each) for each in seconds], outcome, error],
            )

    def records(self, key: str, target: str) -> list[dict[str, Any]]:
        names = ("trace", "seconds", "outcome", "error", "target")
        rows = self._rows(
            f"SELECT {', '.join(names)} FROM tilewright_record WHERE hash = %s AND %s IN ('', target) ORDER BY id",
            key,
            target,
        )
        return [dict(zip(names, row, strict=True)) for row in rows]

    def close(self) -> None:
        self._connection.close()
