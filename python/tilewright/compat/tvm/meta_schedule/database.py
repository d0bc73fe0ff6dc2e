"""tvm.meta_schedule.database."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.meta_schedule.as_tvm import as_tvm, register_subclass
from tilewright.compat.tvm.meta_schedule.delegation import delegates_to, delegating_class
from tilewright.meta_schedule import database as own
from tilewright.meta_schedule.database import (
    Database,
    Workload,
    json_database,
    memory_database,
    schedule_fn_database,
    sqlite_database,
    union_database,
)

__all__ = [
    "Database",
    "JSONDatabase",
    "MemoryDatabase",
    "OrderedUnionDatabase",
    "PyDatabase",
    "SQLiteDatabase",
    "ScheduleFnDatabase",
    "TuningRecord",
    "UnionDatabase",
    "Workload",
    "create",
]


class Seconds(float):
    """A number that has its value under TVM's name, too."""

    @property
    def value(self) -> float:
        """Return the number."""
        return float(self)


class TuningRecord(own.TuningRecord):
    """A tuning record whose seconds are numbers with an attribute `value`."""

    @property
    def run_secs(self) -> Any:
        """Return the seconds per call, as numbers that have a ``value``."""
        seconds = self.__dict__["run_secs"]
        return None if seconds is None else [Seconds(s) for s in seconds]

    @run_secs.setter
    def run_secs(self, seconds: Any) -> None:
        self.__dict__["run_secs"] = seconds

    @staticmethod
    def from_json(json_obj: Any, workload: Workload) -> Any:
        """Return the record from the result of as_json()."""
        return as_tvm(own.TuningRecord.from_json(json_obj, workload))


register_subclass(own.TuningRecord, TuningRecord)


def _gives_records(native: type[Database]) -> Any:
    """Return the class of a kind of database whose records have TVM's attributes."""

    def get_top_k(self: Any, workload: Workload, top_k: int) -> Any:
        return as_tvm(native.get_top_k(self, workload, top_k))

    def get_all_tuning_records(self: Any) -> Any:
        return as_tvm(native.get_all_tuning_records(self))

    def query_tuning_record(self: Any, mod: Any, target: Any, workload_name: str | None = None) -> Any:
        return as_tvm(native.query_tuning_record(self, mod, target, workload_name))

    def query_schedule(self: Any, mod: Any, target: Any, workload_name: str | None = None) -> Any:
        return as_tvm(native.query_schedule(self, mod, target, workload_name))

    methods = {f.__name__: f for f in (get_top_k, get_all_tuning_records, query_tuning_record, query_schedule)}
    made = type(native.__name__, (native,), {"__doc__": native.__doc__, "__module__": __name__, **methods})
    register_subclass(native, made)
    return made


JSONDatabase = _gives_records(json_database.JSONDatabase)
MemoryDatabase = _gives_records(memory_database.MemoryDatabase)
OrderedUnionDatabase = _gives_records(union_database.OrderedUnionDatabase)
SQLiteDatabase = _gives_records(sqlite_database.SQLiteDatabase)
ScheduleFnDatabase = _gives_records(schedule_fn_database.ScheduleFnDatabase)
UnionDatabase = _gives_records(union_database.UnionDatabase)


def create(kind: Any = "json", *args: Any, **kwargs: Any) -> Any:
    """Return a database of this kind."""
    return as_tvm(Database.create(kind, *args, **kwargs))


_DELEGATED = (
    "has_workload",
    "commit_workload",
    "commit_tuning_record",
    "get_top_k",
    "get_all_tuning_records",
    "__len__",
)


class _PyDatabase(delegating_class(Database, *_DELEGATED)):  # type: ignore[misc]
    """The database that a decorated subclass of PyDatabase becomes."""

    def __init__(self) -> None:
        if not hasattr(self, "module_equality"):
            super().__init__()

    def _query(self, name: str, *args: Any) -> Any:
        own = self._methods.get(name)
        return own(*args) if own else getattr(Database, name)(self, *args)

    def query_tuning_record(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
        return self._query("query_tuning_record", mod, target, workload_name)

    def query_schedule(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
        return self._query("query_schedule", mod, target, workload_name)

    def query_ir_module(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
        return self._query("query_ir_module", mod, target, workload_name)


@delegates_to(_PyDatabase)
class PyDatabase:
    """The base of databases in Python, which ``derived_object`` decorates."""

    _outer: Any

    def has_workload(self, mod: Any) -> bool:
        """Return whether the program was committed."""
        raise NotImplementedError

    def commit_workload(self, mod: Any) -> Any:
        """Return the entry of the program."""
        raise NotImplementedError

    def commit_tuning_record(self, record: Any) -> None:
        """Store a record."""
        raise NotImplementedError

    def get_top_k(self, workload: Any, top_k: int) -> Any:
        """Return the best records of a program."""
        raise NotImplementedError

    def get_all_tuning_records(self) -> Any:
        """Return all records."""
        raise NotImplementedError

    def query_tuning_record(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
        """Return the best record, found by the other methods."""
        return Database.query_tuning_record(self._outer(), mod, target, workload_name)

    def query_schedule(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
        """Return the best schedule, found by the other methods."""
        return Database.query_schedule(self._outer(), mod, target, workload_name)

    def query_ir_module(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
        """Return the best scheduled program, found by the other methods."""
        return Database.query_ir_module(self._outer(), mod, target, workload_name)

    def __len__(self) -> int:
        raise NotImplementedError
