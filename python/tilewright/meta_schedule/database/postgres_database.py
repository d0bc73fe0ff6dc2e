"""The database on a PostgreSQL server, which several machines share."""

from __future__ import annotations

from tilewright.database.postgres_store import open_server
from tilewright.meta_schedule.database.sqlite_database import TablesDatabase
from tilewright.support import limits
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["PostgresDatabase"]


class PostgresDatabase(TablesDatabase):
    """A database of programs and records on a PostgreSQL server, for any number of machines at once; it has the same
    tables as ``tw.tune(..., database="postgresql://...")``. Needs ``psycopg`` (``pip install tilewright[postgres]``).

    Args:
        server: a connection string, such as "postgresql://user@host/database" or "host=/tmp dbname=tuning".
        module_equality: "structural", "ignore-ndarray" or "anchor-block".

    Raises:
        tilewright.ResourceError: psycopg is missing, or the server cannot be reached or refuses the connection.
    """

    @suggests_keywords
    def __init__(self, server: str, *, module_equality: str = "structural") -> None:
        limits.kind("server", server, str, 'a text such as "postgresql://user@host/database"')
        super().__init__(open_server(server), module_equality)

    def close(self) -> None:
        """Close the connection."""
        self._store.close()
