"""tvm.meta_schedule.cost_model.random_model."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.cost_model import RandomModel

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.cost_model.random_model")

__all__ = ["RandomModel"]
