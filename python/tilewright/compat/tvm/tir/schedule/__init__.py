"""tvm.tir.schedule."""

from __future__ import annotations

from tilewright._core import BlockRV, ExprRV, LoopRV
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.tir.schedule.schedule import Schedule, ScheduleError
from tilewright.compat.tvm.tir.schedule.trace import Trace

__getattr__ = missing("tvm.tir.schedule")

__all__ = ["BlockRV", "ExprRV", "LoopRV", "Schedule", "ScheduleError", "Trace"]
