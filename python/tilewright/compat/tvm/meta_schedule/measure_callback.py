"""tvm.meta_schedule.measure_callback."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.meta_schedule.delegation import delegates_to
from tilewright.meta_schedule.measure_callback import (
    AddToDatabase,
    MeasureCallback,
    RemoveBuildArtifact,
    UpdateCostModel,
)

__all__ = [
    "AddToDatabase",
    "MeasureCallback",
    "PyMeasureCallback",
    "RemoveBuildArtifact",
    "UpdateCostModel",
    "create",
]

create = MeasureCallback.create


@delegates_to(MeasureCallback)
class PyMeasureCallback:
    """The base of callbacks in Python, which ``derived_object`` decorates."""

    def apply(
        self, task_scheduler: Any, task_id: int, measure_candidates: Any, builder_results: Any, runner_results: Any
    ) -> None:
        """Handle one measured batch of a task."""
        raise NotImplementedError
