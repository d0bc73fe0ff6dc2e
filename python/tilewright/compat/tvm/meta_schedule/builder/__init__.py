"""tvm.meta_schedule.builder."""

from __future__ import annotations

from typing import Any, ClassVar

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.builder.local_builder import LocalBuilder
from tilewright.compat.tvm.meta_schedule.derived import asking
from tilewright.meta_schedule.builder import Builder, BuilderInput, BuilderResult

__getattr__ = missing("tvm.meta_schedule.builder")

__all__ = ["Builder", "BuilderInput", "BuilderResult", "LocalBuilder", "PyBuilder", "create"]

create = Builder.create


class PyBuilder:
    """The base of builders in Python, which ``derived_object`` decorates."""

    _tvm_metadata: ClassVar[dict[str, Any]] = {
        "cls": asking(Builder, "build"),
        "methods": ["build", "__str__"],
        "fields": [],
    }

    def build(self, build_inputs: Any) -> Any:
        """One result for each input."""
        raise NotImplementedError
