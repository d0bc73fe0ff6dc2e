"""tvm.tir.schedule.instruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _core
from tilewright._core import InstructionKind
from tilewright.compat.tvm.alias import Renamed

__all__ = ["Instruction", "InstructionKind"]

_values: dict[Any, Any] = {}


def _handle(item: Any) -> Any:
    """Return the Tilewright value for a sampled value of TVM, which is a variable."""
    return _values.setdefault(item, _core.ExprRV()) if isinstance(item, _core.Var) else item


class Instruction(metaclass=Renamed):
    """A step of a trace."""

    node = _core.Instruction

    @staticmethod
    def make(kind: Any, inputs: Sequence[Any], attrs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return the instruction."""
        return _core.Instruction(kind, [_handle(item) for item in inputs], attrs, [_handle(item) for item in outputs])
