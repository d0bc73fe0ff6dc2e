"""A database of any kind, as :func:`tilewright.tune` uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright import _core, ir
from tilewright.meta_schedule.database import records_in, workload_in
from tilewright.meta_schedule.record_rows import record_of, row_of
from tilewright.records import as_named_in, recorded_program
from tilewright.task import name_of, program_keys

if TYPE_CHECKING:
    from tilewright.meta_schedule.database import Database, Workload

__all__ = ["SessionStore"]


class SessionStore(_core.Database):
    """The tables of a session, in memory: what a database holds, and whatever the session adds to both.

    Args:
        database: which is given each record.
    """

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database, self._tables = database, _core.Database.in_memory()
        self._entries: dict[str, tuple[ir.IRModule, Workload] | None] = {}
        for record in records_in(database):
            key = program_keys(record.workload.mod)[0]
            self._tables.commit_workload(key, name_of(record.workload.mod), record.workload.mod.script())
            self._tables.commit(key, *row_of(record))

    @property
    def path(self) -> str:
        """What the database is."""
        return f"the {type(self._database).__name__}"

    def store(self, record: dict[str, Any], space: str | None, state: str) -> int:
        """Keeps a record in both. What the program took as it was written is no schedule, and is not given away."""
        number = self._tables.store(record, space, state)
        entry = self._entry(record["workload"]) if record["index"] >= 0 else None
        found = record_of(record, entry[1]) if entry is not None else None
        if entry is not None and found is not None:
            found.trace = as_named_in(entry[1].mod, entry[0], found.trace)
            self._database.commit_tuning_record(found)
        return number

    def _entry(self, key: str) -> tuple[ir.IRModule, Workload] | None:
        """The program of a session, and what the database knows it as."""
        if key not in self._entries:
            program = next(recorded_program(row) for row in self.workloads() if row["hash"] == key)
            self._entries[key] = None if program is None else (program, workload_in(self._database, program))
        return self._entries[key]

    def commit_workload(self, hash: str, name: str, script: str, sizes: str = "") -> None:
        """Does nothing when the program is known already."""
        self._tables.commit_workload(hash, name, script, sizes)

    def workloads(self) -> list[dict[str, Any]]:
        """All programs."""
        return self._tables.workloads()

    def records(self, hash: str, target: str) -> list[dict[str, Any]]:
        """All of a program; an empty target means any."""
        return self._tables.records(hash, target)

    def erase(self, ids: Sequence[int]) -> None:
        """Forgets records, for this session."""
        self._tables.erase(ids)

    def commit_finals(self, hash: str, target: str, winner: int, seconds: Sequence[float], last_record: int) -> None:
        """Replaces what was found when the best were timed in turn."""
        self._tables.commit_finals(hash, target, winner, seconds, last_record)

    def finals(self, hash: str, target: str) -> object:
        """What that was; None where it was not done."""
        return self._tables.finals(hash, target)

    def session(self, hash: str, target: str, space: str, seed: int) -> object:
        """The state of a session; None without one."""
        return self._tables.session(hash, target, space, seed)

    def session_records(self, hash: str, target: str, space: str, seed: int) -> list[dict[str, Any]]:
        """The records of a session by their place in it."""
        return self._tables.session_records(hash, target, space, seed)

    def save_session(self, hash: str, target: str, space: str, seed: int, state: str) -> None:
        """Keeps the state of a session."""
        self._tables.save_session(hash, target, space, seed, state)

    def forget_session(self, hash: str, target: str, space: str, seed: int) -> None:
        """The session is gone, its records stay."""
        self._tables.forget_session(hash, target, space, seed)

    def set_meta(self, key: str, value: str) -> None:
        """Keeps a fact, for this session."""
        self._tables.set_meta(key, value)

    def meta(self, key: str) -> object:
        """A fact; None where there is none."""
        return self._tables.meta(key)
