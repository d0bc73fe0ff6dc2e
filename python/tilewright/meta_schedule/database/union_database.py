"""Query several databases as one."""

from __future__ import annotations

from typing import NoReturn

from tilewright import ir
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.database.database import Database
from tilewright.meta_schedule.database.tuning_record import (
    TuningRecord,
    Workload,
    best_in,
    best_of,
    is_in,
    record_in,
    records_in,
    schedule_in,
    workload_in,
)
from tilewright.schedule import Schedule
from tilewright.support import limits
from tilewright.support.machine import TargetLike

__all__ = ["OrderedUnionDatabase", "UnionDatabase"]


class UnionDatabase(Database):
    """A read-only database whose queries return the best result of several databases."""

    def __init__(self, *databases: Database) -> None:
        super().__init__()
        for database in databases:
            limits.kind("a database", database, Database, "an object of a class of tilewright.meta_schedule")
        self.databases = databases

    def has_workload(self, mod: ir.IRModule) -> bool:
        """Return whether one of the databases has the program."""
        return any(is_in(database, mod) for database in self.databases)

    def commit_workload(self, mod: ir.IRModule) -> Workload:
        """Raise ArgumentError: unions store no records."""
        _refuse()

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Raise ArgumentError: unions store no records."""
        _refuse()

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """Return the best valid records of all databases."""
        found = [
            record
            for database in self.databases
            if is_in(database, workload.mod)
            for record in best_in(database, workload_in(database, workload.mod), top_k)
        ]
        return best_of(found, top_k)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Return the records of all databases."""
        return [record for database in self.databases for record in records_in(database)]

    def store_for_search(self) -> NoReturn:
        """Raise ArgumentError: unions store no records."""
        _refuse()

    def __len__(self) -> int:
        return sum(len(database) for database in self.databases)

    def query_tuning_record(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> TuningRecord | None:
        """Return the best record of all databases."""
        answers = (record_in(database, mod, target, workload_name) for database in self.databases)
        return min((record for record in answers if record is not None), key=TuningRecord.mean, default=None)

    def query_schedule(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> Schedule | None:
        """Return the schedule from the database with the best record."""
        best = None
        for database in self.databases:
            record = record_in(database, mod, target, workload_name)
            if record is not None and (best is None or record.mean() < best[0]):
                best = record.mean(), database
        return None if best is None else schedule_in(best[1], mod, target, workload_name)


class OrderedUnionDatabase(UnionDatabase):
    """A read-only database whose queries return the result of the first database that has one."""

    def query_tuning_record(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> TuningRecord | None:
        """Return the first record."""
        answers = (record_in(database, mod, target, workload_name) for database in self.databases)
        return next((record for record in answers if record is not None), None)

    def query_schedule(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> Schedule | None:
        """Return the first schedule."""
        answers = (schedule_in(database, mod, target, workload_name) for database in self.databases)
        return next((schedule for schedule in answers if schedule is not None), None)


def _refuse() -> NoReturn:
    raise ArgumentError.of(
        "database/read-only", "nothing can be committed here", "commit to one of the databases that it asks"
    )
