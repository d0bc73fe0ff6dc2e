"""Convert records to rows of tables, and back."""

from __future__ import annotations

import json

from tilewright import _core
from tilewright.database.origins import Origin
from tilewright.database.record_lines import FAILED, UNMEASURED, fields_of_entry, fifth_entry
from tilewright.errors import ArgumentError, Error
from tilewright.meta_schedule.arg_info import ArgInfo
from tilewright.meta_schedule.database.tuning_record import TuningRecord, Workload
from tilewright.schedule import Trace

__all__ = ["record_of", "row_of"]

#: part of an error message of builders and runners -> outcome in tables
_OUTCOMES = {
    "LocalBuilder: Timeout": "build_timeout",
    "LocalBuilder: An exception occurred\nthe worker process died": "build_crash",
    "LocalBuilder:": "build_error",
    "LocalRunner: Timeout": "run_timeout",
    "LocalRunner: An exception occurred\nthe worker process died": "run_crash",
    "computes something else": "wrong_result",
    "MemoryError": "out_of_memory",
}
#: outcomes that the measuring pipeline itself reports
_OUTCOME_NAMES = {
    "build_error",
    "build_timeout",
    "build_crash",
    "run_error",
    "run_timeout",
    "run_crash",
    "wrong_result",
}
_OUTCOME_NAMES |= {"out_of_memory", "slow_stopped"}


def _has_failed(record: TuningRecord) -> bool:
    return not record.run_secs or all(seconds == FAILED for seconds in record.run_secs)


def _outcome_of(record: TuningRecord) -> tuple[str, str]:
    if not _has_failed(record):
        return "ok", ""
    if record.run_secs is None and not record.error:
        return UNMEASURED, ""
    return _outcome(record.error), _first_line(record.error) or "not measured"


def _outcome(error: str) -> str:
    if (name := error.partition(":")[0]) in _OUTCOME_NAMES:
        return name
    return next((outcome for part, outcome in _OUTCOMES.items() if part in error), "run_error")


def _first_line(error: str) -> str:
    """Return the last line of a traceback, or the first line of another error."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if not lines or "An exception occurred" not in lines[0]:
        return lines[0] if lines else ""
    return next((line for line in reversed(lines[1:]) if not line.startswith("hint:")), lines[0])


def row_of(record: TuningRecord, key: str, trace: Trace | None = None) -> _core.Record:
    """Return a record as a row of a table.

    Args:
        record: the record.
        key: key of its program in the tables.
        trace: its trace, if the program in the tables has other names.
    """
    outcome, error = _outcome_of(record)
    fields = {
        "workload": key,
        "target": "" if record.target is None else str(record.target),
        "trace": json.dumps((trace or record.trace).as_json(), separators=(",", ":")),
        "seconds": [] if _has_failed(record) else record.run_secs,
        "outcome": outcome,
        "error": error,
        **record.origin._asdict(),
    }
    return _core.Record(**{**getattr(record, "columns", {}), **fields})


def _arguments_of(workload: Workload) -> list[ArgInfo] | None:
    """Return the descriptions of a program's arguments; None if it takes numbers, or tensors with symbolic sizes."""
    try:
        return ArgInfo.from_entry_func(workload.mod)
    except ArgumentError:
        return None


def record_of(row: _core.Record, workload: Workload) -> TuningRecord | None:
    """Return the record of a row; None if this version does not know its steps or its target."""
    outcome, error = row.outcome, row.error
    if error and not error.startswith(outcome):
        error = f"{outcome}: {error}"
    seconds = row.seconds if outcome == "ok" else [FAILED]
    try:
        record = TuningRecord(
            Trace.from_json(row.trace),
            workload,
            None if outcome == UNMEASURED else seconds,
            row.target or None,
            _arguments_of(workload),
            error=error,
            origin=Origin(row.host, row.versions),
        )
    except Error:
        return None
    record.columns = fields_of_entry(fifth_entry(row))
    return record
