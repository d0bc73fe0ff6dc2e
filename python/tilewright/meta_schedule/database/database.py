"""The base class of databases of programs and measurement records."""

from __future__ import annotations

import itertools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

from tilewright import _core, ir
from tilewright.errors import Error, ResourceError
from tilewright.meta_schedule.database.tuning_record import (
    TuningRecord,
    Workload,
    best_in,
    is_in,
    record_in,
    record_of_entry,
    records_in,
    schedule_in,
    workload_in,
)
from tilewright.meta_schedule.module_equality import ModuleEquality, module_equality_of
from tilewright.schedule import Schedule
from tilewright.support import limits
from tilewright.support.machine import TargetLike
from tilewright.support.thread_stack import ThreadStack
from tilewright.support.user_lines import users_level
from tilewright.support.wrong_arguments import explained
from tilewright.task.task import module_of

__all__ = ["Database"]

_ACTIVE: ThreadStack[Database] = ThreadStack()


class Database(ABC):
    """A database of programs and records. Inside a ``with``, it is the current one of the thread.

    Subclasses define the first six methods. Queries are for records of a program on a target.
    """

    @staticmethod
    def create(kind: Any = "json", *args: Any, **kwargs: Any) -> Database:
        """Return a database of a kind, see :func:`tilewright.meta_schedule.database.create`."""
        from tilewright.meta_schedule.database import create

        return create(kind, *args, **kwargs)

    def __init__(self, module_equality: str = "structural") -> None:
        self.module_equality = module_equality_of(module_equality).name

    @abstractmethod
    def has_workload(self, mod: ir.IRModule) -> bool:
        """Return whether the program was committed."""

    @abstractmethod
    def commit_workload(self, mod: ir.IRModule) -> Workload:
        """Return the entry of the program, which is created if missing."""

    @abstractmethod
    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record of a committed program."""

    @abstractmethod
    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """Return the best valid records of a program, best first, at most `top_k`."""

    @abstractmethod
    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Return all records, including failures."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records."""

    def flush(self) -> None:  # noqa: B027 (most need not define it)
        """Make all commits durable; called at the end of a session. Does nothing if each commit is durable, as here."""

    def query_tuning_record(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> TuningRecord | None:
        """Return the best record of the program on the target; None if there is none."""
        return next(self._records_for(mod, target), None)

    def _records_for(self, mod: ir.IRModule, target: TargetLike | None) -> Iterator[TuningRecord]:
        """Yield the records of the program on the target, the best first."""
        if not is_in(self, mod):
            return
        workload, seen, count = workload_in(self, mod), 0, 1
        while True:
            records = best_in(self, workload, count)
            yield from (record for record in records[seen:] if record.serves(target))
            if len(records) < count:
                return
            seen, count = len(records), 4 * count

    def query_schedule(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> Schedule | None:
        """Return a schedule of the program with the best record applied; None if there is none. A record whose steps
        cannot be applied, as one that was damaged, is passed over with a warning.

        Raises:
            tilewright.Error: no record can be applied.
        """
        best = record_in(self, mod, target, workload_name)
        if best is None:
            return None
        failed: Error | None = None
        for record in itertools.chain([best], self._records_for(mod, target)):
            if failed is not None and record is best:
                continue
            try:
                return equality_of(self).schedule(mod, record, target)
            except Error as error:
                failed = failed or error
                reason = str(error).partition("\n")[0]
                text = f"a record of {record.mean():.3g} s cannot be applied ({reason}): it is passed over"
                warnings.warn(text, stacklevel=users_level())
        assert failed is not None
        raise failed

    def query_ir_module(
        self, mod: ir.IRModule, target: TargetLike | None, workload_name: str | None = None
    ) -> ir.IRModule | None:
        """Return the program scheduled by the best record; None if there is none."""
        schedule = schedule_in(self, mod, target, workload_name)
        return None if schedule is None else schedule.mod

    def query(
        self, mod: ir.IRModule, target: TargetLike | None, *, workload_name: str = "main", kind: str = "schedule"
    ) -> Any:
        """Return the best result as "schedule", "record" or "ir_module"; None if there is none.

        Raises:
            tilewright.ArgumentError: the kind does not exist.
        """
        kinds: dict[str, Callable[..., Any]] = {
            "schedule": self.query_schedule,
            "record": self.query_tuning_record,
            "ir_module": self.query_ir_module,
        }
        return limits.of_kind("query", kind, kinds, "database/query-kind")(mod, target, workload_name)

    @explained
    def best_schedule(self, program: ir.PrimFunc | ir.IRModule, target: TargetLike) -> Schedule:
        """Return the schedule that ``tw.compile(program, target, database=self)`` uses.

        Raises:
            tilewright.ResourceError: there is no record of the program for the target.
        """
        from tilewright.meta_schedule.tune_context import normalize_module

        # A user-defined database may know only the normalized module of a function.
        for form in (module_of(program), normalize_module(program)):
            found = schedule_in(self, form, target, "main")
            if found is not None:
                return found
        raise ResourceError.of(
            "database/no-record",
            f"the {type(self).__name__} holds no record of this program for {_core.Target(target)}",
            "tune it first: tw.tune(program, database=...) keeps records there",
        )

    def store_for_search(self) -> _core.Database:
        """Return the store in which ``tw.tune(program, database=self)`` records its measurements: this database, record
        by record. It starts with the records of this database. Such a search cannot be resumed, since its state is not
        stored.

        Raises:
            tilewright.ArgumentError: the database cannot store records.
        """
        from tilewright.meta_schedule.database.session_store import session_store

        return session_store(self)

    def dump_pruned(self, destination: Database) -> None:
        """Commit the best record of each program and target to another database."""
        best: dict[tuple[int, str], TuningRecord] = {}
        for record in records_in(self):
            if not record.is_valid():
                continue
            key = (id(record.workload), str(record.target))
            if key not in best or record.mean() < best[key].mean():
                best[key] = record
        for record in best.values():
            workload = workload_in(destination, record.workload.mod)
            destination.commit_tuning_record(record_of_entry(record, workload))

    def __enter__(self) -> Self:
        _ACTIVE.items.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _ACTIVE.items.pop()

    @staticmethod
    def current() -> Database | None:
        """Return the innermost database whose ``with`` block this thread is in."""
        return _ACTIVE.current()


PyDatabase = Database


def equality_of(database: Database) -> ModuleEquality:
    """Return how the database compares programs, also for subclasses that do not call the base constructor."""
    return module_equality_of(getattr(database, "module_equality", "structural"))
