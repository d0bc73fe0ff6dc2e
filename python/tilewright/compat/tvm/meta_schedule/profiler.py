"""tvm.meta_schedule.profiler."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.profiler import Profiler

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.profiler")

__all__ = ["Profiler"]
