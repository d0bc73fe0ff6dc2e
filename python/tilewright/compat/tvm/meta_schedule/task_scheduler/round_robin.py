"""tvm.meta_schedule.task_scheduler.round_robin."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.task_scheduler.task_scheduler import RoundRobin

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.task_scheduler.round_robin")

__all__ = ["RoundRobin"]
