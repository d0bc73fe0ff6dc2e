"""tvm.meta_schedule.measure_callback."""

from __future__ import annotations

from typing import Any, ClassVar

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.derived import asking
from tilewright.meta_schedule.measure_callback import (
    AddToDatabase,
    MeasureCallback,
    RemoveBuildArtifact,
    UpdateCostModel,
)

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.measure_callback")

__all__ = [
    "AddToDatabase",
    "MeasureCallback",
    "PyMeasureCallback",
    "RemoveBuildArtifact",
    "UpdateCostModel",
    "create",
]

create = MeasureCallback.create


class PyMeasureCallback:
    """The base of callbacks in Python, which ``derived_object`` decorates."""

    _tvm_metadata: ClassVar[dict[str, Any]] = {
        "cls": asking(MeasureCallback, "apply"),
        "methods": ["apply", "__str__"],
        "fields": [],
    }

    def apply(
        self, task_scheduler: Any, task_id: int, measure_candidates: Any, builder_results: Any, runner_results: Any
    ) -> None:
        """One batch of a task."""
        raise NotImplementedError
