"""tvm.meta_schedule.post_optimization."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.post_optimization import PostOpt

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.post_optimization")

__all__ = ["PostOpt"]
