"""Maintenance of databases: listing, merging, pruning, exporting and importing."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tilewright import _core, ir
from tilewright.database.origins import origin_table
from tilewright.database.postgres_store import is_server
from tilewright.database.record_lines import DAMAGED, fields_of_entry, fifth_entry, measurement, read_lines
from tilewright.database.records import (
    as_named_in,
    open_database,
    read_database,
    recorded_program,
    records_by_target,
    sizes_of,
    title_of,
)
from tilewright.errors import ArgumentError, Error, ResourceError
from tilewright.schedule import Trace
from tilewright.support.json_text import parse_json
from tilewright.support.other_names import renamed
from tilewright.tables import Table
from tilewright.timing import format_seconds

__all__ = ["entries", "listings", "merge", "merge_and_prune", "prune", "statistics"]


def __getattr__(name: str) -> Any:
    return globals()[renamed(__name__, name)]


def merge_and_prune(
    place: str,
    others: Sequence[str],
    folder: Path | None,
    keep: int | None,
    *,
    forget_damaged: bool = False,
    say: Callable[[str], object],
) -> None:
    """Add the records of other databases and files, then prune.

    Args:
        place: the database to change, created if it does not exist.
        others: the databases to merge into it.
        folder: folder with the two files of a JSON database to import, or None.
        keep: number of records to keep for each program and target, or None for all.
        forget_damaged: whether to delete records that cannot be read.
        say: function that is called with a message for each change.

    Raises:
        tilewright.ResourceError: a source cannot be read, or the database cannot be written.
    """
    sources = []
    for other in others:
        if not is_server(other) and os.path.realpath(other) == os.path.realpath(place):
            raise ArgumentError.of("database/same", f"{other} is the same database", "name another one")
        sources.append(read_database(other))
    # Read all sources before creating the database.
    named = [(source.path, source) for source in sources] + ([(folder, read_lines(folder))] if folder else [])
    store = open_database(place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, source in named:
            programs, records = merge(store, source)
            say(f"{records} records and {programs} programs of {name} added")
        if forget_damaged:
            damaged = [record.id for record in _records(store) if record.outcome == DAMAGED]
            store.erase(damaged)
            say(f"{len(damaged)} damaged records deleted")
        if keep is not None:
            say(f"{prune(store, keep)} records deleted")


def _records(store: _core.Database) -> Iterator[_core.Record]:
    return (record for program in store.workloads() for record in store.records(program.hash, ""))


def merge(store: _core.Database, source: _core.Database) -> tuple[int, int]:
    """Add the programs and records that only `source` has; return their numbers. Records of the same measurement are
    merged; sessions are not copied."""
    known = {program.hash: program for program in store.workloads()}
    added = [program for program in source.workloads() if program.hash not in known]
    for program in added:
        store.commit_workload(program.hash, program.name, program.script, program.sizes)
    others = {
        program.hash: (recorded_program(known[program.hash]), recorded_program(program))
        for program in source.workloads()
        if program.hash in known and program.script != known[program.hash].script
    }
    present = {measurement(record) for record in _records(store)}
    count = 0
    for each in _records(source):
        record = _renamed(each, *others.get(each.workload, (None, None)))
        if record.outcome != DAMAGED and (what := measurement(record)) not in present:
            store.commit(record)
            present.add(what)
            count += 1
    return len(added), count


def _renamed(record: _core.Record, now: ir.Module | None, was: ir.Module | None) -> _core.Record:
    """Return a record with the names of an equal program; unchanged if one of the programs cannot be read, or the trace
    cannot."""
    if now is None or was is None:
        return record
    try:
        trace = as_named_in(now, was, Trace.from_json(record.trace))
    except Error:
        return record
    fields = {name: getattr(record, name) for name in ("workload", "target", "seconds")}
    fields["trace"] = json.dumps(trace.as_json(), separators=(",", ":"))
    return _core.Record(**fields, **fields_of_entry(fifth_entry(record)))


def prune(store: _core.Database, keep: int) -> int:
    """Keep the best `keep` records of each program and target; delete the others, including failures, and return how
    many. Damaged records are kept."""
    every = [record for record in _records(store) if record.outcome != DAMAGED]
    kept = {
        best.id
        for program, target in {(record.workload, record.target) for record in every}
        for best in store.top_k(program, target, keep)
        if best.target == target
    }
    forgotten = [record.id for record in every if record.id not in kept]
    store.erase(forgotten)
    return len(forgotten)


def entries(store: Any) -> Iterable[dict[str, Any]]:
    """Yield all records with all their properties."""
    for workload in store.workloads():
        for row in store.records(workload.hash, ""):
            known = {name: getattr(row, name) for name in (*row.fields, "median")}
            known |= {name: parse_json(known[name] or "null") for name in ("trace", "host", "versions")}
            known |= {"verification": row.verification or None, "sizes": _sizes_or_none(workload)}
            yield {"program": workload.name, "hash": workload.hash, **known}


def _sizes_or_none(workload: _core.Workload) -> dict[str, float] | None:
    try:
        return sizes_of(workload)
    except ResourceError:
        return None


def listings(store: Any, top: int) -> Iterable[tuple[str, Table, str]]:
    """Yield for each program its name, a table of the best records of each target, and a summary of all outcomes."""
    workloads = store.workloads()
    for workload in sorted(workloads, key=lambda each: (each.name, each.hash)):
        rows, records = [], store.records(workload.hash, "")
        by_target: dict[str, list[_core.Record]] = {}
        for entry in store.top_k(workload.hash, "", sys.maxsize):
            by_target.setdefault(entry.target, []).append(entry)
        for target, found in sorted(by_target.items()):
            finals = store.finals(workload.hash, target)
            for entry in found[:top]:
                candidate = "unscheduled" if entry.index < 0 else str(entry.index)
                how = "alternately" if finals is not None and entry.id == finals.winner else ""
                time = format_seconds(entry.median)
                rows.append((target, time, how, str(entry.seed), candidate, entry.created))
        counts = Counter(record.outcome for record in records)
        outcomes = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
        title = f"{title_of(workload)}  {workload.hash[:12]}  first seen {workload.created}"
        columns = ("target", "time", "timed", "seed", "candidate", "measured")
        remark = f"outcomes: {outcomes or 'no records yet'}"
        if any(row[2] for row in rows):
            remark += (
                "\nalternately: timed again at the end of the search, interleaved with the other finalists; "
                "tw.compile uses the first row"
            )
        origins = origin_table(records)
        for host, versions, count in () if origins is None else origins.rows:
            remark += f"\nmeasured on {host}; {versions}: {count} record{'' if count == '1' else 's'}"
        yield title, Table(title, columns, tuple(rows)), remark


def statistics(store: Any) -> Table:
    """Return a table with the number of records by outcome, and their dates, for each program and target."""
    rows = []
    for workload, by_target in records_by_target(store):
        least: dict[str, float] = {}  # from the finals, if there are any
        for row in store.top_k(workload.hash, "", sys.maxsize):
            least.setdefault(row.target, row.median)
        for target, found in sorted(by_target.items()):
            outcomes = Counter("failed" if row.outcome not in _RIGHT else row.outcome for row in found)
            best = least.get(target)
            rows.append(
                (
                    title_of(workload),
                    target,
                    str(len(found)),
                    *(str(outcomes[name]) for name in (*_RIGHT, "failed")),
                    str(len({row.seed for row in found})),
                    "" if best is None else format_seconds(best),
                    found[0].created,
                    found[-1].created,
                )
            )
    columns = ("program", "target", "records", "right", "stopped early", "failed", "seeds", "best", "first", "last")
    size = (
        "" if is_server(store.path) or not Path(store.path).is_file() else f", {Path(store.path).stat().st_size} bytes"
    )
    return Table(f"{store.path}: {len(store.workloads())} programs{size}", columns, tuple(rows))


#: outcomes of correct candidates
_RIGHT = ("ok", "slow_stopped")
