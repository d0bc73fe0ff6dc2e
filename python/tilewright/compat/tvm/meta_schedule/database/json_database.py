"""tvm.meta_schedule.database.json_database."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.database import JSONDatabase

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.database.json_database")

__all__ = ["JSONDatabase"]
