"""Databases of tables: one SQLite file, the same that ``tw.tune`` and the command line use."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from tilewright import _core, ir, records
from tilewright.errors import Error
from tilewright.meta_schedule.arg_info import ArgInfo
from tilewright.meta_schedule.database import FAILED, Database, TuningRecord, Workload, best_of
from tilewright.origins import Origin
from tilewright.schedule import Trace
from tilewright.script.scripts import from_source

__all__ = ["SQLiteDatabase", "TablesDatabase"]


class TablesDatabase(Database):
    """Keeps programs and records in tables, which any number of processes may use at once: what asks and answers, over
    a store that knows four questions (``commit_workload``, ``workloads``, ``commit``, ``records``).

    Args:
        store: the tables.
        module_equality: "structural"; tables know no other.
    """

    def __init__(self, store: Any, module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self._store = store
        self._workloads: dict[str, Workload] = {}

    def has_workload(self, mod: ir.IRModule) -> bool:
        """Whether the program was committed."""
        key = _core.structural_hash(mod)
        return key in self._workloads or any(row["hash"] == key for row in self._store.workloads())

    def commit_workload(self, mod: ir.IRModule) -> Workload:
        """The entry of the program, made if it is not there."""
        key = _core.structural_hash(mod)
        if key not in self._workloads:
            self._store.commit_workload(key, next(iter(mod.functions), "main"), mod.script())
            self._workloads[key] = Workload(mod)
        return self._workloads[key]

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Keeps a record; one that was not measured is kept as one that failed."""
        workload = self.commit_workload(record.workload.mod)
        failed = not record.run_secs or all(seconds == FAILED for seconds in record.run_secs)
        self._store.commit(
            _key(workload),
            "" if record.target is None else str(record.target),
            json.dumps(record.trace.as_json()),
            [] if failed else record.run_secs,
            _outcome(record.error) if failed else "ok",
            _first_line(record.error) or "not measured" if failed else "",
            *record.origin,
        )

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The best valid records of a program, best first, at most `top_k`."""
        known = self._workloads.setdefault(_core.structural_hash(workload.mod), workload)
        rows = self._store.records(_key(known), "")
        return best_of([record for row in rows if (record := _record_of(row, known))], top_k)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All, by program in the order of their commits. Programs whose script this version cannot read are left
        out."""
        found = []
        for row in self._store.workloads():
            workload = self._workload_of(row)
            if workload is not None:
                rows = self._store.records(row["hash"], "")
                found += [record for each in rows if (record := _record_of(each, workload))]
        return found

    def __len__(self) -> int:
        return sum(len(self._store.records(row["hash"], "")) for row in self._store.workloads())

    def _workload_of(self, row: dict[str, Any]) -> Workload | None:
        if row["hash"] not in self._workloads:
            try:
                module = from_source(row["script"])
            except Error:
                return None
            whole = _core.as_module(module) if isinstance(module, ir.PrimFunc) else module
            self._workloads[row["hash"]] = Workload(whole)
        return self._workloads[row["hash"]]


class SQLiteDatabase(TablesDatabase):
    """Keeps programs and records in one file, which any number of processes may use at once.

    Programs are compared by their structure. What the file holds is read anew by each question, so that what other
    processes add is seen.

    Args:
        path: the file, made if it is not there; None is one in memory. By default `database.db` in `work_dir`.
        work_dir: where the file is by default.
        module_equality: "structural"; the file knows no other.

    Raises:
        tilewright.ResourceError: it cannot be opened, is not a database of ours, is locked, damaged or read-only.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        work_dir: str | os.PathLike[str] | None = None,
        module_equality: str = "structural",
    ) -> None:
        place = os.path.join(work_dir, "database.db") if path is None and work_dir is not None else path
        super().__init__(records.open_database(place), module_equality)

    @property
    def path(self) -> str:
        """Of the file; ":memory:" where there is none."""
        return str(self._store.path)

    def keep_times(self, session: str, seconds: Mapping[str, float]) -> None:
        """Notes where the time of a session went; reports on the file show it."""
        records.keep_times(self._store, session, seconds)


#: what the messages of builders and runners have in them -> what the file calls such a failure
_OUTCOMES = {
    "LocalBuilder: Timeout": "build_timeout",
    "LocalBuilder: An exception occurred\nthe worker process died": "build_crash",
    "LocalBuilder:": "build_error",
    "LocalRunner: Timeout": "run_timeout",
    "LocalRunner: An exception occurred\nthe worker process died": "run_crash",
    "computes something else": "wrong_result",
    "MemoryError": "out_of_memory",
}


#: those that the measuring pipeline says itself
_SAID = {"build_error", "build_timeout", "build_crash", "run_error", "run_timeout", "run_crash", "wrong_result"}
_SAID |= {"out_of_memory"}


def _outcome(error: str) -> str:
    if (said := error.partition(":")[0]) in _SAID:
        return said
    return next((outcome for part, outcome in _OUTCOMES.items() if part in error), "run_error")


def _first_line(error: str) -> str:
    """What went wrong: of a traceback its end."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if not lines or "An exception occurred" not in lines[0]:
        return lines[0] if lines else ""
    return next((line for line in reversed(lines[1:]) if not line.startswith("hint:")), lines[0])


def _key(workload: Workload) -> str:
    return f"{workload.shash:032x}"


def _record_of(row: dict[str, Any], workload: Workload) -> TuningRecord | None:
    """The record of a row; None where this version does not know its steps or its target."""
    try:
        return TuningRecord(
            Trace.from_json(row["trace"]),
            workload,
            row["seconds"] if row["outcome"] == "ok" else [FAILED],
            row["target"] or None,
            ArgInfo.from_entry_func(workload.mod),
            origin=Origin(row["host"], row["versions"]),
        )
    except Error:
        return None
