"""tvm.meta_schedule.database.ordered_union_database."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.database import OrderedUnionDatabase

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.database.ordered_union_database")

__all__ = ["OrderedUnionDatabase"]
