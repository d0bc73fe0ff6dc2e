"""The database that schedules by a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from tilewright import ir
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.arg_info import ArgInfo
from tilewright.meta_schedule.database.database import Database
from tilewright.meta_schedule.database.tuning_record import TuningRecord, Workload
from tilewright.schedule import Schedule
from tilewright.support.machine import TargetLike
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["ScheduleFnDatabase"]


class ScheduleFnDatabase(Database):
    """A database whose queries call a function that schedules the program.

    Args:
        schedule_fn: schedules in place; returns false if it cannot. The attribute `task_name` of its module is the name
            of the workload.
        module_equality: as in other databases.
    """

    @suggests_keywords
    def __init__(self, schedule_fn: Callable[[Schedule], bool], module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self.schedule_fn = schedule_fn

    def has_workload(self, mod: ir.IRModule) -> bool:
        """Raise ArgumentError: only queries are supported."""
        _refuse()

    def commit_workload(self, mod: ir.IRModule) -> Workload:
        """Raise ArgumentError: only queries are supported."""
        _refuse()

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Raise ArgumentError: only queries are supported."""
        _refuse()

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """Raise ArgumentError: only queries are supported."""
        _refuse()

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Raise ArgumentError: only queries are supported."""
        _refuse()

    def store_for_search(self) -> NoReturn:
        """Raise ArgumentError: only queries are supported."""
        _refuse()

    def __len__(self) -> int:
        _refuse()

    def query_tuning_record(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> TuningRecord | None:
        """Return a record of the function's schedule, unmeasured, with 0 seconds."""
        schedule = self.query_schedule(mod, target, workload_name)
        if schedule is None:
            return None
        return TuningRecord(schedule.trace, Workload(mod), [0.0], target, ArgInfo.from_entry_func(mod))

    def query_schedule(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> Schedule | None:
        """Return the function's schedule of the program."""
        schedule = Schedule(mod if workload_name is None else mod.with_attr("task_name", workload_name))
        return schedule if self.schedule_fn(schedule) else None


def _refuse() -> NoReturn:
    raise ArgumentError.of(
        "database/only-queries",
        "a database that schedules by a function stores no records",
        "use query_schedule, query_tuning_record or query_ir_module",
    )
