"""Databases of programs and measurement records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.support.lazy_names import lazy

if TYPE_CHECKING:
    from tilewright.meta_schedule.database.database import Database, PyDatabase
    from tilewright.meta_schedule.database.json_database import JSONDatabase
    from tilewright.meta_schedule.database.kinds import create
    from tilewright.meta_schedule.database.memory_database import MemoryDatabase
    from tilewright.meta_schedule.database.postgres_database import PostgresDatabase
    from tilewright.meta_schedule.database.schedule_fn_database import ScheduleFnDatabase
    from tilewright.meta_schedule.database.sqlite_database import SQLiteDatabase
    from tilewright.meta_schedule.database.tuning_record import FAILED, TuningRecord, Workload
    from tilewright.meta_schedule.database.union_database import OrderedUnionDatabase, UnionDatabase

#: public name -> the module of this package that defines it
_NAMES = {
    "Database": "database",
    "JSONDatabase": "json_database",
    "create": "kinds",
    "MemoryDatabase": "memory_database",
    "PostgresDatabase": "postgres_database",
    "ScheduleFnDatabase": "schedule_fn_database",
    "SQLiteDatabase": "sqlite_database",
    "FAILED": "tuning_record",
    "TuningRecord": "tuning_record",
    "Workload": "tuning_record",
    "OrderedUnionDatabase": "union_database",
    "UnionDatabase": "union_database",
    "PyDatabase": "database",
}

__all__ = [
    "FAILED",
    "Database",
    "JSONDatabase",
    "MemoryDatabase",
    "OrderedUnionDatabase",
    "PostgresDatabase",
    "PyDatabase",
    "SQLiteDatabase",
    "ScheduleFnDatabase",
    "TuningRecord",
    "UnionDatabase",
    "Workload",
    "create",
]

__getattr__ = lazy(__name__, _NAMES)
