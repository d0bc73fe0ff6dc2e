"""The database in memory, which ends with its process."""

from __future__ import annotations

from tilewright import ir
from tilewright.meta_schedule.database.database import Database, equality_of
from tilewright.meta_schedule.database.tuning_record import (
    TuningRecord,
    Workload,
    best_of,
    check_record,
    record_of_entry,
)
from tilewright.support.wrong_arguments import explained, suggests_keywords

__all__ = ["MemoryDatabase", "WorkloadTable"]


class WorkloadTable:
    """Programs, looked up by the database's notion of equality."""

    def __init__(self, database: Database) -> None:
        self._equality = equality_of(database)
        self._by_hash: dict[str, list[Workload]] = {}
        self.in_order: list[Workload] = []
        self.numbers: dict[int, int] = {}

    def find(self, mod: ir.IRModule) -> Workload | None:
        """Return the workload of an equal program, or None."""
        for workload in self._by_hash.get(self._equality.hash(mod), ()):
            if self._equality.equal(workload.mod, mod):
                return workload
        return None

    def add(self, workload: Workload) -> Workload:
        """Add a workload that is not in the table."""
        self._by_hash.setdefault(self._equality.hash(workload.mod), []).append(workload)
        self.numbers[id(workload)] = len(self.in_order)
        self.in_order.append(workload)
        return workload


class MemoryDatabase(Database):
    """A database in memory.

    Args:
        module_equality: "structural", "ignore-ndarray" (compares constants only by data type and shape), "anchor-block"
            (compares only the block with the most work).
    """

    @suggests_keywords
    def __init__(self, module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self._workloads = WorkloadTable(self)
        self._records: list[TuningRecord] = []

    @explained
    def has_workload(self, mod: ir.IRModule) -> bool:
        """Return whether the program was committed."""
        return self._workloads.find(mod) is not None

    @explained
    def commit_workload(self, mod: ir.IRModule) -> Workload:
        """Return the entry of the program, which is created if missing."""
        return self._workloads.find(mod) or self._workloads.add(Workload(mod))

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record."""
        check_record(record)
        workload = record.workload
        if id(workload) not in self._workloads.numbers:
            workload = self.commit_workload(workload.mod)
        self._records.append(record_of_entry(record, workload))

    @explained
    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """Return the best valid records of a program, best first, at most `top_k`."""
        known = self._workloads.find(workload.mod)
        return best_of([r for r in self._records if r.workload is workload or r.workload is known], top_k)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Return all records, in the order of their commits."""
        return list(self._records)

    def __len__(self) -> int:
        return len(self._records)
