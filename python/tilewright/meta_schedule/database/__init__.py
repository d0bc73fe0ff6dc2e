"""Databases of programs and measurement records."""

from tilewright.meta_schedule.database.database import Database
from tilewright.meta_schedule.database.json_database import JSONDatabase
from tilewright.meta_schedule.database.kinds import create
from tilewright.meta_schedule.database.memory_database import MemoryDatabase
from tilewright.meta_schedule.database.postgres_database import PostgresDatabase
from tilewright.meta_schedule.database.schedule_fn_database import ScheduleFnDatabase
from tilewright.meta_schedule.database.sqlite_database import SQLiteDatabase
from tilewright.meta_schedule.database.tuning_record import FAILED, TuningRecord, Workload
from tilewright.meta_schedule.database.union_database import OrderedUnionDatabase, UnionDatabase

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

PyDatabase = Database
