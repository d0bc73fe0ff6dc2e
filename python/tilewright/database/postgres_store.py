"""Records in tables of a PostgreSQL server, which several machines share, as a database file is shared on one
machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright import _core
from tilewright.errors import ResourceError

__all__ = ["is_server", "open_server", "without_password"]


#: parameters of a connection that are not shown
_SECRET = ("password", "sslpassword")


def is_server(where: object) -> bool:
    """Return whether a location is a server and not a file."""
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))


def without_password(where: str) -> str:
    """Return the connection string of a server without its password, for reports and messages."""
    if not is_server(where):  # "host=/tmp password='a b'"
        return re.sub(rf"(?<!\S)(?:{'|'.join(_SECRET)})\s*=\s*('(?:[^'\\]|\\.)*'|(?:\\.|\S)*)\s*", "", where)
    place, _, query = re.sub(r"(//[^/@:]*):[^@]*@", r"\1@", where).partition("?")
    kept = [part for part in query.split("&") if part and part.partition("=")[0] not in _SECRET]
    return f"{place}?{'&'.join(kept)}" if kept else place


class _Driver:
    """psycopg as a callable, which the core calls with a statement and its values.

    Args:
        server: a connection string.
    """

    def __init__(self, server: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise ResourceError.of(
                "database/driver", f"psycopg cannot be imported: {error}", "pip install tilewright[postgres]"
            ) from None
        self._error = psycopg.Error
        with self._as_our_errors():
            # RawCursor keeps the numbered parameters ($1) of the core's statements.
            self._connection = psycopg.connect(server, autocommit=True, cursor_factory=psycopg.RawCursor)

    def __call__(self, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with self._as_our_errors():
            cursor = self._connection.execute(text, values or None)
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _as_our_errors(self) -> Iterator[None]:
        """Raise errors of the server as tilewright.ResourceError."""
        try:
            yield
        except self._error as error:
            text = str(error).strip() or type(error).__name__
            raise ResourceError.of(
                "database/server", f"the PostgreSQL server: {text}", "is it running, and may you write there?"
            ) from error


def open_server(server: str) -> _core.Database:
    """Open the records on a PostgreSQL server, for any number of machines at once. Needs ``psycopg``.

    Args:
        server: a connection string, such as "postgresql://user@host/database".

    Raises:
        tilewright.ResourceError: psycopg is missing, or the server cannot be reached or refuses the connection.
    """
    return _core.Database.on_server(without_password(server), _Driver(server))
