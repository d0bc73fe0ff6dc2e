"""tvm.meta_schedule.database.database."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.database import Database, PyDatabase, TuningRecord, Workload

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.database.database")

__all__ = ["Database", "PyDatabase", "TuningRecord", "Workload"]
