"""Use a database of any kind in :func:`tilewright.tune`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright import _core, ir
from tilewright.database.records import as_named_in, recorded_program
from tilewright.meta_schedule.database.record_rows import record_of, row_of
from tilewright.meta_schedule.database.tuning_record import records_in, workload_in
from tilewright.task.task import name_of, program_keys

if TYPE_CHECKING:
    from tilewright.meta_schedule.database.database import Database
    from tilewright.meta_schedule.database.tuning_record import Workload

__all__ = ["session_store"]


def session_store(database: Database) -> _core.Database:
    """Return the tables of a session in memory: they start with the content of a database, which receives each new
    record."""
    tables = _core.Database.in_memory(f"the {type(database).__name__}")
    for record in records_in(database):
        program = record.workload.mod
        tables.commit_workload(key := program_keys(program)[0], name_of(program), program.script())
        tables.commit(row_of(record, key))
    entries: dict[str, tuple[ir.IRModule, Workload] | None] = {}

    def give(row: _core.Workload, record: _core.Record) -> None:
        if record.index < 0:  # the time of the unscheduled program has no schedule
            return
        if row.hash not in entries:
            program = recorded_program(row)
            entries[row.hash] = None if program is None else (program, workload_in(database, program))
        entry = entries[row.hash]
        found = record_of(record, entry[1]) if entry is not None else None
        if entry is not None and found is not None:
            found.trace = as_named_in(entry[1].mod, entry[0], found.trace)
            database.commit_tuning_record(found)

    tables.on_commit(give)
    return tables
