"""Databases of records: measurements, and the schedules that they belong to."""

from __future__ import annotations

import heapq
import itertools
import json
import os
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright import _core, ir
from tilewright.database.damage import check_intact
from tilewright.database.postgres_store import is_server, open_server
from tilewright.database.record_lines import DAMAGED, read_lines
from tilewright.database.session_notes import RecordedFormat, load_formats, warn_of_damage
from tilewright.database.workload_lines import key_of
from tilewright.errors import Error, ResourceError
from tilewright.schedule import Schedule, Trace
from tilewright.support import limits
from tilewright.support.file_names import path_for_core
from tilewright.support.json_text import parse_json
from tilewright.support.machine import TargetLike
from tilewright.task.task import Task, module_of, only_function, program_keys, sparse_module_of
from tilewright.timing import format_seconds

#: description of valid database arguments, for error messages
PLACES = 'the path of a file, "postgresql://...", or a Database of tilewright.meta_schedule'

#: name of the file with records in the folder of a session (tilewright.meta_schedule.tune_tir)
_TABLES = "database.db"

#: seconds to wait for a database that another process, such as a backup, has locked
BUSY_SECONDS = 60.0


def open_database(path: Any) -> Any:
    """Open a database: a file, which is created with its folder if missing, or "postgresql://...". None and "memory"
    are a database in memory, as :mod:`tilewright.meta_schedule` names it. For the folder of a session with tables, open
    these.

    Raises:
        tilewright.ResourceError: the file cannot be opened, is not a Tilewright database, or is locked, damaged or
            read-only.
    """
    if path is None or path == "memory":
        return _core.Database.in_memory()
    if hasattr(path, "store_for_search"):
        return path.store_for_search()
    if is_server(path):
        return open_server(str(path))
    file = Path(path_for_core("database", path))
    if file.is_dir():
        tables = file / _TABLES
        if not tables.exists():
            raise ResourceError.of(
                "database/not-a-database",
                f"{file}: a folder, not a file of records; folders of JSON lines are only read",
                "give the path of a file; a search writes to a folder by "
                f"database=tilewright.meta_schedule.JSONDatabase(work_dir={str(file)!r})",
            )
        file = tables
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError.of(
            "database/cannot-open",
            f"{file.parent}: the folder for the database cannot be made: {error.strerror}",
            "choose another place with database=... (or --out on the command line)",
        ) from None
    # SQLite reports a file that it cannot create as missing, so check the permission here.
    if not file.exists() and not os.access(file.parent, os.W_OK | os.X_OK):
        raise ResourceError.of(
            "database/no-permission",
            f"{file}: the database cannot be made: no permission to write to the folder {file.parent.absolute()}",
            "choose another place with database=... (or --out on the command line)",
        )
    return _core.Database.open(str(file), busy_timeout=BUSY_SECONDS)


def read_database(path: str | os.PathLike[str]) -> Any:
    """Open records for reading: a file, which is not changed, a server, or the folder of a session
    (:func:`tilewright.meta_schedule.tune_tir`), whose JSON lines are read completely.

    Raises:
        tilewright.ResourceError: the file does not exist or is not a Tilewright database, or the server cannot be
            reached.
    """
    if is_server(path):
        return open_server(str(path))
    path = path_for_core("database", path)
    if Path(path).is_dir():
        tables = Path(path) / _TABLES
        return _core.Database.open(str(tables), read_only=True) if tables.exists() else read_lines(path)
    if not Path(path).exists():
        raise ResourceError.of(
            "report/missing-file",
            f"{os.fspath(path)}: no such file",
            "`tilewright tune` makes out/tilewright.db; tw.tune(..., database=...) makes any",
        )
    return _core.Database.open(os.fspath(path), read_only=True)


#: key beside the sizes of calls, if the caches hold other data before each call; parameter names have no blanks
_COLD = "cold caches"
#: key in the text of a target for the digest of integer arguments
_GIVEN = "given integers"


def workload_key(task: Task, store: Any = None) -> str:
    """Return the key of a program in databases, which includes the properties of calls that the program does not
    determine.

    Args:
        task: the program.
        store: a database that may have the program under the key of an earlier version; that key is then used.
    """
    keys = [key_of(key, sizes_text(task)) for key in program_keys(task.module)]
    known = {each.hash for each in store.workloads()} if store is not None else set()
    return next((key for key in keys if key in known), keys[0])


def sizes_text(task: Task) -> str:
    """Return the sizes of calls, whether caches are cold, and the digest of integer arguments, as databases store
    them."""
    stored: dict[str, Any] = dict(sorted(task.sizes.items())) | ({_COLD: 1} if task.cold else {})
    stored |= {_GIVEN: task.given} if task.given else {}
    return json.dumps(stored) if stored else ""


def is_cold(workload: _core.Workload) -> bool:
    """Return whether a workload is measured with cold caches: they are evicted before each call."""
    return _COLD in workload.sizes


def sizes_of(workload: _core.Workload) -> dict[str, float]:
    """Return the sizes of calls of a program with symbolic sizes.

    Raises:
        tilewright.ResourceError: the database cannot be read.
    """
    text = workload.sizes or "{}"
    try:
        sizes = parse_json(text)
    except ValueError:
        sizes = None
    if not isinstance(sizes, dict):
        raise ResourceError.of(
            "database/sizes",
            f"the sizes of program {workload.hash[:12]} ({workload.name}) are damaged: {text[:40]!r}",
            "take a copy of the database from before, or tune the program for these sizes again",
        )
    return {name: size for name, size in sizes.items() if name not in (_COLD, _GIVEN)}


def title_of(workload: _core.Workload) -> str:
    """Return a program's name for reports: "double (n=1000)", "double (cold caches)", "take (given integers 1f3a)"."""
    try:
        details = [f"{name}={size}" for name, size in sizes_of(workload).items()]
        if _GIVEN in workload.sizes:
            details.append(f"{_GIVEN} {parse_json(workload.sizes)[_GIVEN]}")
    except ResourceError:
        details = ["of damaged sizes"]
    details += [_COLD] if is_cold(workload) else []
    name = workload.name or workload.hash[:12]
    return f"{name} ({', '.join(details)})" if details else str(name)


def steps_of(trace: Trace) -> tuple[str, ...]:
    """Return the steps of a schedule as Python statements, without unused lookups and sampling."""
    text = str(trace.simplified()).partition("-> None:\n")[2]
    marker = ("pass", "sch.enter_postproc()")  # statements without effect
    return tuple(line for line in textwrap.dedent(text).splitlines() if line not in marker)


def records_by_target(store: Any) -> Iterator[tuple[_core.Workload, dict[str, list[_core.Record]]]]:
    """Yield each program with its records, by target."""
    for workload in sorted(store.workloads(), key=lambda each: (each.name, each.hash)):
        by_target: dict[str, list[_core.Record]] = {}
        for row in store.records(workload.hash, ""):
            by_target.setdefault(row.target, []).append(row)
        yield workload, by_target


def recorded_formats(store: Any, program: ir.PrimFunc | ir.Module, target: TargetLike) -> list[RecordedFormat]:
    """Return the formats of a program that :func:`store_formats` stored and that have a correct record for a target,
    the fastest first."""
    wanted, found = _core.Target(target), []
    for each in load_formats(store, program):
        rows = store.top_k(each.workload, "", sys.maxsize)  # in the order of best_schedule()
        times = [row.median for row in rows if _text_serves(row.target, wanted)]
        if times:
            found.append(replace(each, seconds=times[0]))
    return sorted(found, key=lambda each: each.seconds)


def entries_of(store: Any, program: ir.PrimFunc | ir.Module) -> list[_core.Workload]:
    """Return the entries of a program in a database: of calls with the sizes that were tuned last first; entries with
    cold caches come last."""
    keys, every = program_keys(program), list(reversed(store.workloads()))
    order = {sizes: number for number, sizes in enumerate(dict.fromkeys(each.sizes for each in every))}
    names = {sizes: {key_of(key, sizes) for key in keys} for sizes in order}
    known = [each for each in every if each.hash in names[each.sizes]]
    return sorted(known, key=lambda each: (is_cold(each), order[each.sizes]))


def schedule_of(
    module: ir.Module, trace: str, recorded: ir.Module | None = None, sparse: ir.Module | None = None
) -> Schedule:
    """Return a schedule of the program with the steps of a recorded trace.

    Args:
        module: the program.
        trace: the steps, as JSON.
        recorded: the program that was recorded, which may have other names of blocks.
        sparse: the original program, if it has iterations over sparse axes. The schedule is then one of this program;
            iterations that the steps neither change nor lower are lowered before the steps.
    """
    steps = Trace.from_json(trace)
    schedule = Schedule(module if sparse is None else sparse)
    if sparse is not None and len(sparse.functions) == 1 and not begins_sparse(steps):
        schedule.lower_sparse_iter()
    (steps if recorded is None else as_named_in(module, recorded, steps)).apply_to_schedule(schedule)
    return schedule


def begins_sparse(trace: Trace) -> bool:
    """Return whether a trace begins with a program that has iterations over sparse axes, and not with the lowered
    program."""
    return any(step.kind.is_on_iterations for step in trace.insts)


def as_named_in(module: ir.Module, recorded: ir.Module, trace: Trace) -> Trace:
    """Return the trace of a program for an equal program whose function and blocks may have other names."""
    was, now = only_function(recorded), only_function(module)
    return trace if was is None or now is None else _core.renamed_trace(trace, was[1], now[1], now[0])


def recorded_program(workload: _core.Workload, unless: ir.Module | None = None) -> ir.Module | None:
    """Return the program of a database entry; None if this version cannot parse its script, or if it is `unless`."""
    from tilewright.script.scripts import from_source

    if unless is not None and workload.script == unless.script():
        return None
    try:
        return module_of(from_source(workload.script))
    except Error:
        return None


def best_schedule(program: Any, database: Any, target: TargetLike = "native") -> Any:
    """Return the fastest recorded schedule of a program for a target, applied to the program.

    For a program with symbolic sizes, records of the sizes that were tuned last come first; records of calls with cold
    caches come last. A record is for the target if it was measured on the same processor, with at most as many threads
    as the target has cores. A database of :mod:`tilewright.meta_schedule` uses its own method.

    Raises:
        ResourceError: The database cannot be read, or holds no correct record of this program for this target.
    """
    if hasattr(database, "best_schedule"):
        return database.best_schedule(program, target)
    limits.kind("database", database, str | os.PathLike, PLACES)
    if not is_server(database) and not Path(path := path_for_core("database", database)).exists():
        raise ResourceError.of(
            "database/missing-file", f"{path}: no such database", f"tw.tune(..., database={path!r}) makes it"
        )
    return best_in_store(program, read_database(database), target)


def best_in_store(program: ir.PrimFunc | ir.Module, store: Any, target: TargetLike) -> Any:
    """Return the result of :func:`best_schedule` for an open database."""
    module, sparse = module_of(program), sparse_module_of(program)
    path, known = store.path, {each.hash: each for each in entries_of(store, module)}
    keys = list(known)
    rows: list[_core.Record] = []
    for _, alike in itertools.groupby(known.values(), key=lambda each: each.sizes):
        found = [store.top_k(each.hash, "", sys.maxsize) for each in alike]
        rows += heapq.merge(*found, key=lambda row: row.median)
    if not rows:
        tried = [record.outcome for key in keys for record in store.records(key, "")]
        harmed = tried.count(DAMAGED)
        if harmed:
            raise ResourceError.of(
                "database/damaged-records",
                f"all that {path} holds of this program is damaged ({harmed} record{'s' * (harmed > 1)})",
                "take a copy of the database from before, or tune the program again",
            )
        check_intact(path)
        if tried:
            raise ResourceError.of(
                "database/no-correct-record",
                f"{path} holds no correct record of this program: all {len(tried)} trials failed",
                "`tilewright report` says why; tune it again",
            )
        if formats := recorded_formats(store, program, target):
            listed = ", ".join(f"{each} ({format_seconds(each.seconds)})" for each in formats)
            raise ResourceError.of(
                "database/no-record",
                f"{path} holds no record of this program as it is, but with '{formats[0].tensor}' in other formats: "
                f"{listed}",
                "its kernels take the structure in that format: p = tw.sparse.recorded_format(program, database), then "
                "tw.compile(p.function, database=...)",
            )
        raise ResourceError.of(
            "database/no-record",
            f"{path} holds no record of this program",
            "records belong to the exact program; tune it first",
        )
    wanted = _core.Target(target)
    unusable = ""
    for row in rows:
        if not _text_serves(row.target, wanted):
            continue
        try:
            return schedule_of(module, row.trace, recorded_program(known[row.workload], unless=module), sparse)
        except Error as error:  # from a version with other steps, or damaged
            unusable = str(error).partition("\n")[0]
            warn_of_damage(store, f"the schedule of record {row.id}, which cannot be applied ({unusable}),")
    if unusable:
        raise ResourceError.of(
            "database/damaged-records",
            f"none of the schedules that {path} holds of this program can be applied: {unusable}",
            "take a copy of the database from before, or tune the program again",
        )
    others = ", ".join(sorted({row.target for row in rows}))
    raise ResourceError.of(
        "database/no-record",
        f"{path} holds no record of this program for {wanted}, only for {others}",
        "tune it for this target, or compile it for one of those",
    )


def best_of_functions(module: ir.Module, database: Any, target: TargetLike = "native") -> Any:
    """Return a module whose functions were tuned separately, with their fastest recorded schedules, and the traces of
    these schedules by function name.

    Raises:
        ResourceError: The database cannot be read, or holds no correct record of any of them for this target.
    """
    functions: dict[str, Any] = dict(module.functions)
    traces: dict[str, Trace] = {}
    why: ResourceError | None = None
    for key, function in module.functions.items():
        symbol = function.attrs.get("global_symbol") if isinstance(function, ir.PrimFunc) else None
        if symbol is None:
            continue
        try:
            found = best_schedule(function, database, target)
            functions[key], traces[str(symbol)] = found.mod.functions["main"], found.trace
        except ResourceError as error:
            why = why or error
    if not traces and why is not None:
        raise why
    return ir.Module(functions), traces


def _text_serves(recorded: str, target: _core.Target) -> bool:
    try:
        return serves(_core.Target(recorded), target)
    except Error:  # from a version that knows more processors
        return False


def serves(measured: _core.Target, target: _core.Target) -> bool:
    """Return whether measurements for one target apply to another one: the same processor, and at most as many
    threads."""
    return measured.num_cores <= target.num_cores and measured.with_num_cores(1) == target.with_num_cores(1)
