"""Create databases from their kind, the path of a file, or a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tilewright.database.postgres_store import is_server
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.database.database import Database
from tilewright.meta_schedule.database.json_database import JSONDatabase
from tilewright.meta_schedule.database.memory_database import MemoryDatabase
from tilewright.meta_schedule.database.postgres_database import PostgresDatabase
from tilewright.meta_schedule.database.schedule_fn_database import ScheduleFnDatabase
from tilewright.meta_schedule.database.sqlite_database import SQLiteDatabase
from tilewright.meta_schedule.database.union_database import OrderedUnionDatabase, UnionDatabase
from tilewright.support import limits

__all__ = ["check_place", "create", "database_in", "database_of_session"]

_KINDS: dict[str, type[Database]] = {
    "json": JSONDatabase,
    "memory": MemoryDatabase,
    "ordered_union": OrderedUnionDatabase,
    "postgres": PostgresDatabase,
    "sqlite": SQLiteDatabase,
    "union": UnionDatabase,
}
#: endings of files, in addition to paths of folders
_ENDINGS = (".db", ".sqlite", ".sqlite3")
#: description of valid database arguments
_PLACES = 'the kind of a database ("sqlite", "json", "memory"), the path of a file, "postgresql://...", or an object'


def create(kind: Any = "json", *args: Any, **kwargs: Any) -> Database:
    """Return a database of a kind: "json", "memory", "sqlite", "postgres", "union", "ordered_union". The path of a file
    or of a session's folder, and "postgresql://...", open the database there; a function that schedules makes a
    :class:`ScheduleFnDatabase`. An existing database is returned unchanged.

    Raises:
        tilewright.ArgumentError: the kind does not exist.
    """
    if isinstance(kind, Database):
        return kind
    if callable(kind):
        return ScheduleFnDatabase(kind, *args, **kwargs)
    if isinstance(kind, str) and kind in _KINDS:
        if kind == "postgres" and not args and "server" not in kwargs:
            raise _without_server('Database.create("postgres", "postgresql://user@host/name")')
        return _KINDS[kind](*args, **kwargs)
    if is_server(kind):
        return PostgresDatabase(kind, *args, **kwargs)
    if _is_path(kind):
        return database_in(kind, **kwargs) if Path(kind).is_dir() else SQLiteDatabase(kind, *args, **kwargs)
    known = ", ".join(f'"{each}"' for each in _KINDS)
    raise ArgumentError.of(
        "database/database-kind",
        f"there are no databases of the kind {kind!r}",
        f'there are {known}; a file has a path such as "records.db"',
    )


def database_in(folder: str | os.PathLike[str], *, module_equality: str = "structural") -> Database:
    """Open the database in the folder of a session: the two files of a :class:`JSONDatabase`, or the file of a
    :class:`SQLiteDatabase`; if there are both, the one that was written last.

    Raises:
        tilewright.ResourceError: the folder has neither.
    """
    lines, tables = Path(folder) / "database_tuning_record.json", Path(folder) / "database.db"
    ages = [file.stat().st_mtime if file.is_file() else 0.0 for file in (lines, tables)]
    if ages[1] > ages[0]:
        return SQLiteDatabase(tables, module_equality=module_equality)
    return JSONDatabase(work_dir=folder, allow_missing=False, module_equality=module_equality)


def database_of_session(place: Any, work_dir: str | os.PathLike[str], module_equality: str) -> Database:
    """Return the database of a session; files without a path of their own are in its folder."""
    in_folder = {"work_dir": work_dir} if place in ("json", "sqlite") else {}
    return create(place, module_equality=module_equality, **in_folder)


def check_place(place: Any) -> None:
    """Check that a session can store records in a database, before anything is written.

    Raises:
        tilewright.ArgumentError: the database cannot store records.
    """
    if isinstance(place, Database) or hasattr(place, "commit_tuning_record"):
        return
    if not isinstance(place, str | os.PathLike):
        raise limits.wrong_kind("database", place, _PLACES)
    if place == "postgres":
        raise _without_server('database="postgresql://user@host/name"')
    if place in ("union", "ordered_union"):
        raise ArgumentError.of(
            "database/read-only",
            f"database={place!r}: unions store no records",
            'tune with database="sqlite", and query UnionDatabase(that, others...) afterwards',
        )
    if place not in _KINDS and not is_server(place) and not _is_path(place):
        hint = limits.closest(str(place), _KINDS, 'kinds such as "sqlite", and paths such as "records.db"')
        raise ArgumentError.of("database/database-kind", f"database is {place!r}; it is {_PLACES}", hint)


def _is_path(place: Any) -> bool:
    """Return whether a value is the path of a file or a folder, and not a misspelled kind."""
    if not isinstance(place, str):
        return isinstance(place, os.PathLike)
    return place.endswith(_ENDINGS) or any(mark in place for mark in (os.sep, ".")) or Path(place).exists()


def _without_server(example: str) -> ArgumentError:
    return ArgumentError.of("database/server-address", "no PostgreSQL server was given", f"pass its address: {example}")
