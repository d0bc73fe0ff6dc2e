"""Files of records: what was measured, and the schedules that it belongs to."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright import _core, ir
from tilewright.errors import Error, ResourceError
from tilewright.machine import TargetLike
from tilewright.postgres_store import PostgresStore, is_server
from tilewright.schedule import Schedule, Trace
from tilewright.task import module_of


def open_database(path: str | os.PathLike[str] | None) -> Any:
    """Opens a file of records, making it and its folder if they are not there, or "postgresql://..."; None is one in
    memory.

    Raises:
        tilewright.ResourceError: it cannot be opened, is not a database of ours, is locked, damaged or read-only.
    """
    if path is None:
        return _core.Database.in_memory()
    if is_server(path):
        return PostgresStore(str(path))
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(
            f"{file.parent}: the folder for the database cannot be made: {error.strerror}\n"
            "  hint: choose another place with database=... (or --out on the command line)"
        ) from None
    # A file that cannot be made is said to be missing by SQLite, which then tries to read it.
    if not file.exists() and not os.access(file.parent, os.W_OK | os.X_OK):
        raise ResourceError.of(
            "database/no-permission",
            f"{file}: the database cannot be made: no permission to write to the folder {file.parent.absolute()}",
            "choose another place with database=... (or --out on the command line)",
        )
    return _core.Database.open(str(file))


def read_database(path: str | os.PathLike[str]) -> Any:
    """Opens records to read them: a file, which stays as it is, or a server.

    Raises:
        tilewright.ResourceError: there is no such file, or it is no database of ours; the server is not to be reached.
    """
    if is_server(path):
        return PostgresStore(str(path))
    if not Path(path).exists():
        raise ResourceError.of(
            "report/missing-file",
            f"{os.fspath(path)}: no such file",
            "`tilewright tune` makes out/tilewright.db; tw.tune(..., database=...) makes any",
        )
    return _core.Database.open(os.fspath(path), read_only=True)


def workload_key(module: ir.Module, sizes: Mapping[str, int]) -> str:
    """The name that a program has in databases: with the sizes of its calls, where it leaves some open."""
    return _key_of(_core.structural_hash(module), sizes_text(sizes))


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Sizes as databases hold them."""
    return json.dumps(dict(sorted(sizes.items()))) if sizes else ""


def _key_of(program: str, sizes: str) -> str:
    return hashlib.blake2b((program + sizes).encode(), digest_size=16).hexdigest() if sizes else program


def sizes_of(workload: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the calls of a program that leaves some open.

    Raises:
        tilewright.ResourceError: the database does not tell any more.
    """
    text = workload["sizes"] or "{}"
    try:
        sizes = json.loads(text)
    except ValueError:
        sizes = None
    if not isinstance(sizes, dict):
        raise ResourceError.of(
            "database/sizes",
            f"the sizes of program {workload['hash'][:12]} ({workload['name']}) are damaged: {text[:40]!r}",
            "take a copy of the database from before, or tune the program for these sizes again",
        )
    return sizes


def title_of(workload: Mapping[str, Any]) -> str:
    """What a program is called in reports: "double (n=1000)"."""
    try:
        sizes = ", ".join(f"{name}={size}" for name, size in sizes_of(workload).items())
    except ResourceError:
        sizes = "of damaged sizes"
    name = workload["name"] or workload["hash"][:12]
    return f"{name} ({sizes})" if sizes else str(name)


#: sessions whose times a file keeps
KEPT_TIMES = 200


def keep_times(store: Any, session: str, seconds: Mapping[str, float]) -> None:
    """Notes in a file of records where the time of a session went."""
    times = [*kept_times(store), (session, dict(seconds))][-KEPT_TIMES:]
    store.set_meta("times", json.dumps(times))


def kept_times(store: Any) -> tuple[tuple[str, dict[str, float]], ...]:
    """What :func:`keep_times` noted, the oldest first: the session, and seconds by what they were spent on."""
    try:
        return tuple((session, dict(seconds)) for session, seconds in json.loads(store.meta("times") or "[]"))
    except (ValueError, TypeError):
        _tell_damage(store, "where the time of its sessions went")
        return ()


def keep_refusals(store: Any, workload: str, target: str, refusals: Mapping[str, tuple[int, str]]) -> None:
    """Notes in a file of records what the latest search of a program refused to measure, and why."""
    store.set_meta(f"refusals/{workload}/{target}", json.dumps(dict(refusals)))


def kept_refusals(store: Any, workload: str, target: str) -> dict[str, tuple[int, str]]:
    """What :func:`keep_refusals` noted: by code, how often and the first message."""
    try:
        known = json.loads(store.meta(f"refusals/{workload}/{target}") or "{}")
        return {code: (count, message) for code, (count, message) in known.items()}
    except (ValueError, TypeError, AttributeError):
        _tell_damage(store, f"what was refused in the search of program {workload[:12]}")
        return {}


def _tell_damage(store: Any, what: str) -> None:
    warnings.warn(f"{store.path}: {what} is damaged and left out; the next session notes it anew", stacklevel=4)


def schedule_of(module: ir.Module, trace: str) -> Schedule:
    """The program with the steps of a recorded trace applied."""
    schedule = Schedule(module)
    Trace.from_json(trace).apply_to_schedule(schedule)
    return schedule


def best_schedule(program: Any, database: str | os.PathLike[str], target: TargetLike = "native") -> Any:
    """The fastest recorded schedule of a program for a target, applied to it.

    Of a program that leaves sizes open, the records of the sizes that it was tuned for last come first. A record is one
    for the target if it was measured on the same processor, with at most as many threads as the target
    has cores.

    Raises:
        ResourceError: The database cannot be read, or holds no correct record of this program for this target.
    """
    if not is_server(database) and not Path(database).exists():
        path = os.fspath(database)
        raise ResourceError(f"{path}: no such database\n  hint: tw.tune(..., database={path!r}) makes it")
    module = module_of(program)
    store = read_database(database)
    path, key = store.path, _core.structural_hash(module)
    # Of a program that leaves sizes open, the sizes that it was tuned for last.
    keys = [each["hash"] for each in store.workloads() if _key_of(key, each["sizes"]) == each["hash"]]
    rows = [row for each in reversed(keys) for row in store.top_k(each, "", sys.maxsize)]
    if not rows:
        harmed = sum(store.count_outcomes(each, "").get("damaged", 0) for each in keys)
        if harmed:
            raise ResourceError.of(
                "database/damaged-records",
                f"all that {path} holds of this program is damaged ({harmed} record{'s' * (harmed > 1)})",
                "take a copy of the database from before, or tune the program again",
            )
        raise ResourceError(
            f"{path} holds no record of this program\n  hint: records belong to the exact program; tune it first"
        )
    wanted = _core.Target(target)
    for row in rows:
        if _text_serves(row["target"], wanted):
            return schedule_of(module, row["trace"])
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
