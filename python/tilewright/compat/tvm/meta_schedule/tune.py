"""tvm.meta_schedule.tune."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.tune import tune_tasks

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.tune")

__all__ = ["tune_tasks"]
