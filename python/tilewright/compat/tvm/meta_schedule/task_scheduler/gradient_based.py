"""tvm.meta_schedule.task_scheduler.gradient_based."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.task_scheduler.task_scheduler import GradientBased

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.task_scheduler.gradient_based")

__all__ = ["GradientBased"]
