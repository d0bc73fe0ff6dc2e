"""Databases of tables: one SQLite file with the same tables as in ``tw.tune`` and the command line."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

from tilewright import _core, ir
from tilewright.database import records, session_notes
from tilewright.database.records import entries_of, recorded_program
from tilewright.meta_schedule.database.database import Database, equality_of
from tilewright.meta_schedule.database.record_rows import record_of, row_of
from tilewright.meta_schedule.database.tuning_record import (
    TuningRecord,
    Workload,
    best_of,
    check_count,
    check_record,
    trace_in,
)
from tilewright.meta_schedule.module_equality import Structural, check_module
from tilewright.schedule import Schedule
from tilewright.support import limits
from tilewright.support.machine import TargetLike
from tilewright.support.wrong_arguments import explained, suggests_keywords
from tilewright.task.task import name_of, program_keys

__all__ = ["SQLiteDatabase", "TablesDatabase"]


class TablesDatabase(Database):
    """A database in tables that any number of processes may use at once. It implements queries with four methods of a
    store (``commit_workload``, ``workloads``, ``commit``, ``records``). Each query reads the tables again.

    Args:
        store: the tables.
        module_equality: "structural", "ignore-ndarray" (compares constants only by data type and shape), "anchor-block"
            (compares only the block with the most work).
    """

    def __init__(self, store: Any, module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self._store: _core.Database = store
        self._workloads: dict[str, Workload] = {}  # by key in the tables
        self._hashes: dict[str, str] = {}  # hashes by which this database compares programs

    def has_workload(self, mod: ir.IRModule) -> bool:
        """Return whether the program was committed."""
        return bool(self._rows_of(mod))

    def commit_workload(self, mod: ir.IRModule) -> Workload:
        """Return the entry of the program, which is created if missing."""
        return self._entry(mod)[1]

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record."""
        check_record(record)
        key, workload = self._entry(record.workload.mod)
        trace = trace_in(workload, record.workload.mod, record.trace)
        self._store.commit(row_of(record, key, trace))

    @explained
    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """Return the best valid records of a program, best first, at most `top_k`. For a program with symbolic sizes,
        records of the sizes that were tuned last come first."""
        found: list[TuningRecord] = []
        for _, alike in itertools.groupby(self._rows_of(workload.mod), key=lambda row: row.sizes):
            records = [record for row in alike for record in self._records_of(row, workload.mod)]
            found += best_of(records, top_k)
        return found[: check_count(top_k)]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Return all records, by program in the order of their commits. Programs whose script this version cannot parse
        are omitted."""
        return [record for row in self._store.workloads() for record in self._records_of(row)]

    def __len__(self) -> int:
        return len(self._store)

    def store_for_search(self) -> _core.Database:
        """Return the tables."""
        return self._store

    @explained
    def best_schedule(self, program: ir.PrimFunc | ir.IRModule, target: TargetLike) -> Schedule:
        """Return the schedule that ``tw.compile`` takes from the same tables, by the finals of ``tw.tune``."""
        if isinstance(equality_of(self), Structural):
            schedule: Schedule = records.best_in_store(program, self._store, target)
            return schedule
        return super().best_schedule(program, target)

    def _entry(self, mod: ir.IRModule) -> tuple[str, Workload]:
        rows = self._rows_of(mod)
        if not rows:
            key = program_keys(mod)[0]
            self._store.commit_workload(key, name_of(mod), mod.script())
            return key, self._workloads.setdefault(key, Workload(mod))
        workload = self._workload_of(rows[0], mod)
        return rows[0].hash, Workload(mod) if workload is None else workload

    def _rows_of(self, mod: ir.IRModule) -> list[_core.Workload]:
        """Return the rows of a program in the tables."""
        equality = equality_of(self)
        if isinstance(equality, Structural):
            return entries_of(self._store, check_module(mod))
        wanted, found = equality.hash(mod), []
        for row in self._store.workloads():
            workload = self._workload_of(row)
            if workload is None or row.sizes:
                continue
            if row.hash not in self._hashes:
                self._hashes[row.hash] = equality.hash(workload.mod)
            if self._hashes[row.hash] == wanted and equality.equal(workload.mod, mod):
                found.append(row)
        return found

    def _records_of(self, row: _core.Workload, mod: ir.IRModule | None = None) -> list[TuningRecord]:
        workload = self._workload_of(row, mod)
        if workload is None:
            return []
        return [record for each in self._store.records(row.hash, "") if (record := record_of(each, workload))]

    def _workload_of(self, row: _core.Workload, mod: ir.IRModule | None = None) -> Workload | None:
        """Return the program as it was when committed; None if this version cannot parse its script. `mod` is a program
        that may be equal to it."""
        key = row.hash
        if key not in self._workloads:
            module = mod if mod is not None and mod.script() == row.script else recorded_program(row)
            if module is None:
                return None
            self._workloads[key] = Workload(module)
        return self._workloads[key]


class SQLiteDatabase(TablesDatabase):
    """A database of programs and records in one file that any number of processes may use at once.

    Each query reads the file again, so that records of other processes are seen.

    Args:
        path: the file, created if missing; None is a database in memory. By default `database.db` in `work_dir`.
        work_dir: where the file is by default.
        module_equality: "structural", "ignore-ndarray" or "anchor-block".

    Raises:
        tilewright.ResourceError: the file cannot be opened, is not a Tilewright database, or is locked, damaged or
            read-only.
    """

    @suggests_keywords
    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        work_dir: str | os.PathLike[str] | None = None,
        module_equality: str = "structural",
    ) -> None:
        for name, given in (("path", path), ("work_dir", work_dir)):
            limits.kind(name, given, str | os.PathLike | None, "a path, or None")
        place = os.path.join(work_dir, "database.db") if path is None and work_dir is not None else path
        super().__init__(records.open_database(place), module_equality)

    @property
    def path(self) -> str:
        """Return the path of the file; ":memory:" if there is none."""
        return str(self._store.path)

    def flush(self) -> None:
        """Move all commits from the write-ahead log into the file, so that a copy of the file is complete."""
        self._store.flush()

    def keep_times(self, session: str, seconds: Mapping[str, float]) -> None:
        """Store the time breakdown of a session, for reports on the file."""
        session_notes.store_times(self._store, session, seconds)
