"""tvm.meta_schedule.database.union_database."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.database import UnionDatabase

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.database.union_database")

__all__ = ["UnionDatabase"]
