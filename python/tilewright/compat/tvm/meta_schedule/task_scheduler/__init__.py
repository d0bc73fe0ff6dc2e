"""tvm.meta_schedule.task_scheduler."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.task_scheduler.task_scheduler import (
    GradientBased,
    PyTaskScheduler,
    RoundRobin,
    TaskRecord,
    TaskScheduler,
    create,
)

__getattr__ = missing("tvm.meta_schedule.task_scheduler")

__all__ = ["GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler", "create"]
