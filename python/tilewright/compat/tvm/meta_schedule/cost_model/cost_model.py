"""tvm.meta_schedule.cost_model.cost_model."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.cost_model import CostModel, PyCostModel, create

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.cost_model.cost_model")

__all__ = ["CostModel", "PyCostModel", "create"]
