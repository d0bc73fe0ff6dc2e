"""tvm.meta_schedule.testing.dummy_object: components that do next to nothing, for tests of the others."""

from __future__ import annotations

from typing import Any

from tilewright._core import Trace
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.mutator import PyMutator
from tilewright.compat.tvm.meta_schedule.utils import derived_object

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.testing.dummy_object")

__all__ = ["DummyMutator"]


@derived_object
class DummyMutator(PyMutator):
    """Draws all decisions anew."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        pass

    def apply(self, trace: Trace, _: int) -> Trace | None:
        """The trace without its decisions."""
        return Trace(trace.insts, {})

    def clone(self) -> Any:
        """Another one."""
        return DummyMutator()
