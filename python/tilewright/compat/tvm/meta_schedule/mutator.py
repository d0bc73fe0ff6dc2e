"""tvm.meta_schedule.mutator."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed
from tilewright.compat.tvm.meta_schedule.delegation import call_derived, delegates_to, delegating_class, supported
from tilewright.meta_schedule.mutator import (
    MutateComputeLocation,
    MutateParallel,
    MutateThreadBinding,
    MutateTileSize,
    MutateUnroll,
)

__all__ = [
    "MutateComputeLocation",
    "MutateParallel",
    "MutateThreadBinding",
    "MutateTileSize",
    "MutateUnroll",
    "Mutator",
    "PyMutator",
    "create",
]


def create(kind: str) -> dict[_core.Mutator, float]:
    """Return the default mutators of a kind of target, with their probabilities."""
    return dict(_core.Mutator.defaults(supported(kind, "mutator")))


class Mutator(metaclass=Renamed):
    """A mutator."""

    node = _core.Mutator
    make = _core.Mutator
    create = staticmethod(create)


class _PyMutator(delegating_class(_core.Mutator, "_initialize_with_tune_context", "clone")):  # type: ignore[misc]
    """The component behind a PyMutator."""

    def apply(self, trace: Any, seed: int | None = None) -> Any:
        return call_derived(self, "apply", trace, -1 if seed is None else seed)


@delegates_to(_PyMutator)
class PyMutator:
    """The base of mutators in Python, to be decorated with derived_object."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        raise NotImplementedError

    def apply(self, trace: Any, _: int) -> Any:
        """Return the trace with a changed decision; None if there is nothing to change."""
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a copy of the mutator."""
        raise NotImplementedError
