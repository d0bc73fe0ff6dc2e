"""tvm.meta_schedule.measure_callback."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.measure_callback import (
    AddToDatabase,
    MeasureCallback,
    PyMeasureCallback,
    RemoveBuildArtifact,
    UpdateCostModel,
)

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.measure_callback")

__all__ = ["AddToDatabase", "MeasureCallback", "PyMeasureCallback", "RemoveBuildArtifact", "UpdateCostModel"]
