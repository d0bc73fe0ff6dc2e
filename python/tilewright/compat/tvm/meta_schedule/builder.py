"""tvm.meta_schedule.builder."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.meta_schedule.delegation import delegates_to
from tilewright.meta_schedule.builder import (
    Builder,
    BuilderInput,
    BuilderResult,
    LocalBuilder,
    default_build,
    default_export,
)

__all__ = [
    "Builder",
    "BuilderInput",
    "BuilderResult",
    "LocalBuilder",
    "PyBuilder",
    "create",
    "default_build",
    "default_export",
]

create = Builder.create


@delegates_to(Builder)
class PyBuilder:
    """The base of builders in Python, which ``derived_object`` decorates."""

    def build(self, build_inputs: Any) -> Any:
        """Return one result for each input."""
        raise NotImplementedError
