"""Files of records: what was measured, and the schedules that it belongs to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright import _core, ir
from tilewright.errors import Error, ResourceError
from tilewright.machine import TargetLike
from tilewright.schedule import Schedule, Trace
from tilewright.task import task_of


def open_database(path: str | os.PathLike[str] | None) -> Any:
    """Opens a file of records, making it and its folder if they are not there; None is one in memory.

    Raises:
        tilewright.ResourceError: it cannot be opened, is not a database of ours, is locked, damaged or read-only.
    """
    if path is None:
        return _core.Database.in_memory()
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(
            f"{file.parent}: the folder for the database cannot be made: {error.strerror}\n"
            "  hint: choose another place with database=... (or --out on the command line)"
        ) from None
    return _core.Database.open(str(file))


#: sessions whose times a file keeps
KEPT_TIMES = 200


def keep_times(store: Any, session: str, seconds: Mapping[str, float]) -> None:
    """Notes in a file of records where the time of a session went."""
    times = [*kept_times(store), (session, dict(seconds))][-KEPT_TIMES:]
    store.set_meta("times", json.dumps(times))


def kept_times(store: Any) -> tuple[tuple[str, dict[str, float]], ...]:
    """What :func:`keep_times` noted, the oldest first: the session, and seconds by what they were spent on."""
    return tuple((session, dict(seconds)) for session, seconds in json.loads(store.meta("times") or "[]"))


def keep_refusals(store: Any, workload: str, target: str, refusals: Mapping[str, tuple[int, str]]) -> None:
    """Notes in a file of records what the latest search of a program refused to measure, and why."""
    store.set_meta(f"refusals/{workload}/{target}", json.dumps(dict(refusals)))


def kept_refusals(store: Any, workload: str, target: str) -> dict[str, tuple[int, str]]:
    """What :func:`keep_refusals` noted: by code, how often and the first message."""
    known = json.loads(store.meta(f"refusals/{workload}/{target}") or "{}")
    return {code: (count, message) for code, (count, message) in known.items()}


def schedule_of(module: ir.Module, trace: str) -> Schedule:
    """The program with the steps of a recorded trace applied."""
    schedule = Schedule(module)
    Trace.from_json(trace).apply_to_schedule(schedule)
    return schedule


def best_schedule(program: Any, database: str | os.PathLike[str], target: TargetLike = "native") -> Any:
    """The fastest recorded schedule of a program for a target, applied to it.

    A record is one for the target if it was measured on the same processor, with at most as many threads as the target
    has cores.

    Raises:
        ResourceError: The database cannot be read, or holds no correct record of this program for this target.
    """
    path = os.fspath(database)
    if not Path(path).exists():
        raise ResourceError(f"{path}: no such database\n  hint: tw.tune(..., database={path!r}) makes it")
    task = task_of(program)
    store = _core.Database.open(path, read_only=True)
    rows = store.top_k(_core.structural_hash(task.module), "", sys.maxsize)
    if not rows:
        raise ResourceError(
            f"{path} holds no record of this program\n  hint: records belong to the exact program; tune it first"
        )
    wanted = _core.Target(target)
    for row in rows:
        if _text_serves(row["target"], wanted):
            return schedule_of(task.module, row["trace"])
    others = ", ".join(sorted({row["target"] for row in rows}))
    raise ResourceError(
        f"{path} holds no record of this program for {wanted}, only for {others}\n"
        "  hint: tune it for this target, or compile it for one of those"
    )


def _text_serves(recorded: str, target: _core.Target) -> bool:
    try:
        return serves(_core.Target(recorded), target)
    except Error:  # of a version that knows more processors
        return False


def serves(measured: _core.Target, target: _core.Target) -> bool:
    """Whether what was measured for one target counts for another one: the same processor, and as many threads."""
    return measured.num_cores <= target.num_cores and measured.with_num_cores(1) == target.with_num_cores(1)
