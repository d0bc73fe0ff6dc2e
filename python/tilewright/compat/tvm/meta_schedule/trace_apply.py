"""tvm.meta_schedule.trace_apply."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.trace_apply import schedule_using_anchor_trace

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.trace_apply")

__all__ = ["schedule_using_anchor_trace"]
