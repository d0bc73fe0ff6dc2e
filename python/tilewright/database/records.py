"""Files of records: what was measured, and the schedules that it belongs to."""

from __future__ import annotations

import heapq
import itertools
import json
import os
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright import _core, ir
from tilewright.database.damage import check_intact
from tilewright.database.postgres_store import is_server, open_server
from tilewright.database.record_lines import DAMAGED, read_lines
from tilewright.database.session_notes import RecordedFormat, kept_formats, warn_of_damage
from tilewright.database.workload_lines import key_of
from tilewright.errors import Error, ResourceError
from tilewright.schedule import Schedule, Trace
from tilewright.support import limits
from tilewright.support.file_names import path_for_core
from tilewright.support.machine import TargetLike
from tilewright.task.task import Task, module_of, only_function, program_keys, sparse_module_of
from tilewright.timing import format_seconds

#: what a database is given by
PLACES = 'the path of a file, "postgresql://...", or a Database of tilewright.meta_schedule'

#: in the folder of a session (tilewright.meta_schedule.tune_tir), the file with its records
_TABLES = "database.db"

#: seconds that a file of records may be locked by other processes, a backup for instance, before a search gives up
BUSY_SECONDS = 60.0


def open_database(path: Any) -> Any:
    """Opens a file of records, making it and its folder if they are not there, or "postgresql://..."; None is one in
    memory, and so is "memory", as :mod:`tilewright.meta_schedule` has it, whose databases have a place for records.
    Of the folder of a session that has tables, these.

    Raises:
        tilewright.ResourceError: it cannot be opened, is not a database of ours, is locked, damaged or read-only.
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
    # A file that cannot be made is said to be missing by SQLite, which then tries to read it.
    if not file.exists() and not os.access(file.parent, os.W_OK | os.X_OK):
        raise ResourceError.of(
            "database/no-permission",
            f"{file}: the database cannot be made: no permission to write to the folder {file.parent.absolute()}",
            "choose another place with database=... (or --out on the command line)",
        )
    return _core.Database.open(str(file), busy_timeout=BUSY_SECONDS)


def read_database(path: str | os.PathLike[str]) -> Any:
    """Opens records to read them: a file, which stays as it is, a server, or the folder of a session
    (:func:`tilewright.meta_schedule.tune_tir`), whose lines of JSON are read as a whole.

    Raises:
        tilewright.ResourceError: there is no such file, or it is no database of ours; the server is not to be reached.
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


#: Beside the sizes of calls, where the caches hold other data before each: parameters have no blanks in their names.
_COLD = "cold caches"
#: In the text of a target: which integers were given as arguments.
_GIVEN = "given integers"


def workload_key(task: Task, store: Any = None) -> str:
    """The name that a program has in databases: with what its calls are like, where that is not said by the program.

    Args:
        task: the program.
        store: a database which may know it by a name that earlier versions gave; that one is gone on with.
    """
    keys = [key_of(key, sizes_text(task)) for key in program_keys(task.module)]
    known = {each.hash for each in store.workloads()} if store is not None else set()
    return next((key for key in keys if key in known), keys[0])


def sizes_text(task: Task) -> str:
    """The sizes of calls, whether caches are cold, and which integers were given, as databases hold them."""
    said: dict[str, Any] = dict(sorted(task.sizes.items())) | ({_COLD: 1} if task.cold else {})
    said |= {_GIVEN: task.given} if task.given else {}
    return json.dumps(said) if said else ""


def is_cold(workload: _core.Workload) -> bool:
    """Whether the caches hold other data before each call."""
    return _COLD in workload.sizes


def sizes_of(workload: _core.Workload) -> dict[str, float]:
    """The sizes of the calls of a program that leaves some open.

    Raises:
        tilewright.ResourceError: the database no longer answers.
    """
    text = workload.sizes or "{}"
    try:
        sizes = json.loads(text)
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
    """What a program is called in reports: "double (n=1000)", "double (cold caches)", "take (given integers 1f3a)"."""
    try:
        said = [f"{name}={size}" for name, size in sizes_of(workload).items()]
        if _GIVEN in workload.sizes:
            said.append(f"{_GIVEN} {json.loads(workload.sizes)[_GIVEN]}")
    except ResourceError:
        said = ["of damaged sizes"]
    said += [_COLD] if is_cold(workload) else []
    name = workload.name or workload.hash[:12]
    return f"{name} ({', '.join(said)})" if said else str(name)


def steps_of(trace: Trace) -> tuple[str, ...]:
    """The steps of a schedule as a person would write them: without lookups and sampling that nothing uses."""
    text = str(trace.simplified()).partition("-> None:\n")[2]
    marker = ("pass", "sch.enter_postproc()")  # which changes nothing
    return tuple(line for line in textwrap.dedent(text).splitlines() if line not in marker)


def recorded_formats(store: Any, program: ir.PrimFunc | ir.Module, target: TargetLike) -> list[RecordedFormat]:
    """The formats that :func:`keep_formats` noted of a program and that have a correct record for a target, the fastest
    one first."""
    wanted, found = _core.Target(target), []
    for each in kept_formats(store, program):
        rows = store.top_k(each.workload, "", sys.maxsize)  # the one first that best_schedule() would take
        times = [row.median for row in rows if _text_serves(row.target, wanted)]
        if times:
            found.append(replace(each, seconds=times[0]))
    return sorted(found, key=lambda each: each.seconds)


def entries_of(store: Any, program: ir.PrimFunc | ir.Module) -> list[_core.Workload]:
    """What a database knows a program as: where its calls differ, as of a program that leaves sizes open, those that it
    was tuned for last first, and those with cold caches at the end."""
    keys, every = program_keys(program), list(reversed(store.workloads()))
    order = {sizes: number for number, sizes in enumerate(dict.fromkeys(each.sizes for each in every))}
    names = {sizes: {key_of(key, sizes) for key in keys} for sizes in order}
    known = [each for each in every if each.hash in names[each.sizes]]
    return sorted(known, key=lambda each: (is_cold(each), order[each.sizes]))


def schedule_of(
    module: ir.Module, trace: str, recorded: ir.Module | None = None, sparse: ir.Module | None = None
) -> Schedule:
    """The program with the steps of a recorded trace applied.

    Args:
        module: the program.
        trace: the steps, as JSON.
        recorded: the program that they were recorded on, where that may call its blocks otherwise.
        sparse: the program as it was written, where it has iterations over sparse axes. The schedule is of this one:
            where the steps do not change or lower the iterations, they are lowered in front of them.
    """
    steps = Trace.from_json(trace)
    schedule = Schedule(module if sparse is None else sparse)
    if sparse is not None and len(sparse.functions) == 1 and not begins_sparse(steps):
        schedule.lower_sparse_iter()
    (steps if recorded is None else as_named_in(module, recorded, steps)).apply_to_schedule(schedule)
    return schedule


def begins_sparse(trace: Trace) -> bool:
    """Whether a trace begins from a program with iterations over sparse axes, and not from one with these lowered."""
    return any(step.kind.is_on_iterations for step in trace.insts)


def as_named_in(module: ir.Module, recorded: ir.Module, trace: Trace) -> Trace:
    """The trace of a program for an equal one, whose function and blocks may have other names."""
    was, now = only_function(recorded), only_function(module)
    return trace if was is None or now is None else _core.renamed_trace(trace, was[1], now[1], now[0])


def recorded_program(workload: _core.Workload, unless: ir.Module | None = None) -> ir.Module | None:
    """The program of an entry of a database; None where this version cannot read its script, or it is that one."""
    from tilewright.script.scripts import from_source

    if unless is not None and workload.script == unless.script():
        return None
    try:
        return module_of(from_source(workload.script))
    except Error:
        return None


def best_schedule(program: Any, database: Any, target: TargetLike = "native") -> Any:
    """The fastest recorded schedule of a program for a target, applied to it.

    Of a program that leaves sizes open, the records of the sizes that it was tuned for last come first; those of calls
    with cold caches come last. A record is one
    for the target if it was measured on the same processor, with at most as many threads as the target
    has cores. A database of :mod:`tilewright.meta_schedule` is asked as it answers.

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
    """Return what :func:`best_schedule` does, of an open database."""
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
        except Error as error:  # of a version with other steps, or harmed
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
    """A module whose functions were tuned each by itself, with the fastest recorded schedules, and the traces of these
    by the names of their functions.

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
    except Error:  # of a version that knows more processors
        return False


def serves(measured: _core.Target, target: _core.Target) -> bool:
    """Whether what was measured for one target counts for another one: the same processor, and as many threads."""
    return measured.num_cores <= target.num_cores and measured.with_num_cores(1) == target.with_num_cores(1)
