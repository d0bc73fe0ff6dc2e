"""Programs and records, and validated queries to databases of any kind, including those of users."""

from __future__ import annotations

import copy
import json
import math
import operator
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tilewright import _core, ir
from tilewright.database.origins import Origin
from tilewright.database.record_lines import FAILED, fields_of_entry
from tilewright.database.records import as_named_in, serves
from tilewright.database.workload_lines import line_of, read_line
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.arg_info import ArgInfo, as_arg_info
from tilewright.meta_schedule.module_equality import Structural
from tilewright.schedule import Schedule, Trace
from tilewright.support import limits
from tilewright.support.machine import TargetLike
from tilewright.support.wrong_arguments import explained

if TYPE_CHECKING:
    from tilewright.meta_schedule.database.database import Database

__all__ = ["FAILED", "TuningRecord", "Workload"]


class Workload:
    """A program, and its hash."""

    def __init__(self, mod: ir.IRModule, shash: int | None = None) -> None:
        limits.kind("mod", mod, ir.IRModule, "the program")
        self.mod = mod
        self.shash = int(_core.structural_hash(mod), 16) if shash is None else shash

    def as_json(self) -> Any:
        """Return the hash as a decimal text, and the program as base64 of its JSON text.

        The JSON format is Tilewright's own; TVM's format, which changes between releases, is not written.
        """
        return line_of(self.mod, self.shash)

    @staticmethod
    def from_json(json_obj: Any) -> Workload:
        """Return the workload from the value of :meth:`as_json`, or from a line of an export, which may have further
        entries, or the program as a script.

        The hash is computed again.

        Raises:
            tilewright.ArgumentError: the value does not have this form, or has a program in TVM's own format.
        """
        return Workload(read_line(json_obj).module)

    def __repr__(self) -> str:
        return f"Workload({', '.join(self.mod.functions)}, {self.shash:#x})"


class TuningRecord:
    """The measurement of one schedule of a program.

    Attributes:
        trace: the schedule.
        workload: the program.
        run_secs: seconds per call, one number for each sample; ``[1e10]`` for a failure, None if not measured.
        target: target of the measured kernel.
        args_info: descriptions of its arguments.
        error: error of a failure; not part of the JSON form.
        origin: machine and versions that measured; not part of the JSON form.
        columns: other fields of databases, by column; copies of the record have them, too.
    """

    columns: Mapping[str, Any] = MappingProxyType({})

    @explained
    def __init__(
        self,
        trace: Trace,
        workload: Workload,
        run_secs: Sequence[Any] | None = None,
        target: TargetLike | None = None,
        args_info: Sequence[ArgInfo] | None = None,
        *,
        error: str = "",
        origin: Origin | None = None,
    ) -> None:
        self.error, self.origin = error, origin or Origin()
        self.trace, self.workload = trace, workload
        self.run_secs = None if run_secs is None else [float(getattr(s, "value", s)) for s in run_secs]
        self.target = None if target is None else _core.Target(target)
        self.args_info = None if args_info is None else [as_arg_info(info) for info in args_info]

    def as_json(self) -> Any:
        """Return ``[trace, seconds, target, arguments]``."""
        return [
            self.trace.as_json(remove_postproc=False),
            self.run_secs,
            None if self.target is None else json.loads(self.target.json()),
            None if self.args_info is None else [info.as_json() for info in self.args_info],
        ]

    @staticmethod
    def from_json(json_obj: Any, workload: Workload) -> TuningRecord:
        """Return the record from the value of :meth:`as_json`. The trace is applied only when the schedule is needed.

        Raises:
            tilewright.ArgumentError: the value does not have this form, or has unknown steps.
        """
        match json_obj:
            case [trace, list() | None as seconds, target, infos, *more]:
                extra = more[0] if more and isinstance(more[0], dict) else {}
                record = TuningRecord(
                    Trace.from_json(trace if isinstance(trace, str) else json.dumps(trace)),
                    workload,
                    None if seconds is None else [float(s) for s in seconds],
                    target,
                    None if infos is None else [ArgInfo.from_json(info) for info in infos],
                    error=str(extra.get("error", "")),
                    origin=Origin(*(_text(extra.get(name, "")) for name in Origin._fields)),
                )
                record.columns = fields_of_entry(extra)
                try:
                    _core.Record(**record.columns)
                except TypeError as error:
                    hint = "the fifth entry should have the fields that `tilewright db --export` writes"
                    raise ArgumentError.of("database/record", f"{str(extra)[:80]}: {error}", hint) from None
                return record
        raise ArgumentError.of(
            "database/record",
            f"{str(json_obj)[:80]} is not a record",
            "it should be [trace, seconds, target, arguments]",
        )

    def schedule(self) -> Schedule:
        """Return a schedule of the program with the trace applied."""
        schedule = Schedule(self.workload.mod)
        self.trace.apply_to_schedule(schedule)
        return schedule

    def as_measure_candidate(self) -> Any:
        """Return the measured candidate."""
        from tilewright.meta_schedule.search_strategy import MeasureCandidate

        return MeasureCandidate(self.schedule(), self.args_info or [])

    def mean(self) -> float:
        """Return the seconds per call; 1e10 if not measured."""
        return math.fsum(self.run_secs) / len(self.run_secs) if self.run_secs else FAILED

    def is_valid(self) -> bool:
        """Return whether the record was measured and its trace has steps."""
        steps = self.trace.insts
        seconds = self.run_secs or [FAILED]
        measured = any(s != FAILED for s in seconds) and all(s >= 0 and math.isfinite(s) for s in seconds)
        return measured and bool(steps and steps[0].kind.name != "EnterPostproc")

    def serves(self, target: TargetLike | None) -> bool:
        """Return whether the record applies to a target: the same processor, with at most as many threads."""
        return target is None or self.target is None or serves(self.target, _core.Target(target))

    def __repr__(self) -> str:
        return f"TuningRecord({len(self.trace)} steps, {self.run_secs} s, {self.target})"


def _text(value: Any) -> str:
    """Return a text that is JSON or that represents a JSON value."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def workload_in(database: Database, module: ir.IRModule) -> Workload:
    """Return the workload of a program in a database of any kind.

    Raises:
        tilewright.ArgumentError: the database returns something else.
    """
    given: Workload = _answer(database, "commit_workload", database.commit_workload(module), ("mod",), "the Workload")
    return given


def records_in(database: Database) -> list[TuningRecord]:
    """Return all records of a database of any kind.

    Raises:
        tilewright.ArgumentError: the database returns something else.
    """
    asked = "get_all_tuning_records"
    given = _answer(database, asked, database.get_all_tuning_records(), ("__iter__",), _RECORDS)
    return [_answer(database, asked, record, _OF_RECORDS, _RECORDS) for record in given]


def best_in(database: Database, workload: Workload, top_k: int) -> list[TuningRecord]:
    """Return the best records of a program in a database of any kind.

    Raises:
        tilewright.ArgumentError: the database returns something else.
    """
    given = _answer(database, "get_top_k", database.get_top_k(workload, top_k), ("__iter__",), _RECORDS)
    return [_answer(database, "get_top_k", record, _OF_RECORDS, _RECORDS) for record in given]


def is_in(database: Database, module: ir.IRModule) -> bool:
    """Return whether a database of any kind knows a program.

    Raises:
        tilewright.ArgumentError: the database's result is neither true nor false.
    """
    given = database.has_workload(module)
    try:
        return bool(given)
    except Exception:  # as for an array
        raise _wrong(database, "has_workload", given, "True or False") from None


def record_in(
    database: Database, module: ir.IRModule, target: TargetLike | None, name: str | None = None
) -> TuningRecord | None:
    """Return the best record of a program on a target in a database of any kind; None if there is none.

    Raises:
        tilewright.ArgumentError: the database returns something else.
    """
    given = database.query_tuning_record(module, target, name)
    hint = "a TuningRecord, or None where there is none"
    return None if given is None else _answer(database, "query_tuning_record", given, _OF_RECORDS, hint)


def schedule_in(
    database: Database, module: ir.IRModule, target: TargetLike | None, name: str | None = None
) -> Schedule | None:
    """Return a schedule of the program with the best record of a database of any kind; None if there is none.

    Raises:
        tilewright.ArgumentError: the database returns something else.
    """
    given = database.query_schedule(module, target, name)
    if given is not None and not isinstance(given, Schedule):
        raise _wrong(database, "query_schedule", given, "a Schedule, or None where there is none")
    return given


_RECORDS = "a list of TuningRecord"
_OF_RECORDS = ("trace", "workload", "run_secs", "serves")


def _answer(database: Database, method: str, given: Any, has: Sequence[str], hint: str) -> Any:
    if all(hasattr(given, name) for name in has):
        return given
    raise _wrong(database, method, given, hint)


def _wrong(database: Database, method: str, given: Any, hint: str) -> ArgumentError:
    return ArgumentError.of(
        "database/answer",
        f"{method}() of a '{type(database).__name__}' gave a '{type(given).__name__}'",
        f"it gives {hint}",
    )


def trace_in(workload: Workload, mod: ir.IRModule, trace: Trace) -> Trace:
    """Return the trace of a program as a database's entry of it stores the trace: with the names of the entry's blocks.
    If the entry's program only counts as equal, the trace keeps its names."""
    if workload.mod is mod or not Structural().equal(workload.mod, mod):
        return trace
    return as_named_in(workload.mod, mod, trace)


def record_of_entry(record: TuningRecord, workload: Workload) -> TuningRecord:
    """Return the record as one of a database's own entry of its program."""
    if record.workload is workload:
        return record
    own = copy.copy(record)
    own.trace, own.workload = trace_in(workload, record.workload.mod, record.trace), workload
    return own


def check_record(record: Any) -> None:
    """Refuse values that are not records.

    Raises:
        tilewright.ArgumentError: the value is not a record.
    """
    if not all(hasattr(record, name) for name in _OF_RECORDS):
        raise limits.wrong_kind("record", record, "a TuningRecord")


def best_of(records: Sequence[TuningRecord], top_k: int) -> list[TuningRecord]:
    """Return the best valid records; equal ones keep their order.

    Raises:
        tilewright.ArgumentError: `top_k` is negative or not an integer.
    """
    count = check_count(top_k)
    return sorted((record for record in records if record.is_valid()), key=TuningRecord.mean)[:count]


def check_count(top_k: Any) -> int:
    """Return a validated number of records.

    Raises:
        tilewright.ArgumentError: the number is negative or not an integer.
    """
    try:
        count = operator.index(top_k)
    except TypeError:
        raise limits.wrong_kind("top_k", top_k, "a whole number, at least 0") from None
    if count < 0:
        raise ArgumentError.of("database/top-k", f"top_k is {count}", "ask for at least 0 records")
    return count
