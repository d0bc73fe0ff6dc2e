"""tvm.te: tensor expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.ir import structural_equal
from tilewright.compat.tvm.tir import op
from tilewright.script.tir.intrinsics import AXIS_SEPARATOR
from tilewright.te import *  # noqa: F403
from tilewright.te import __all__ as _names

__path__: list[str] = []
_missing = missing("tvm.te")

__all__ = ["AXIS_SEPARATOR", *_names]


def create_prim_func(  # type: ignore[no-redef]
    ops: Sequence[Any], index_dtype_override: str | None = None
) -> Any:
    """The program that computes tensors; its name is "main"."""
    return te.create_prim_func(ops, index_dtype_override, name="main")


def _elementwise(name: str, function: Callable[[Any, Any], Any], refuse: Callable[..., Any]) -> Callable[..., Any]:
    """The operator of two tensors of one shape; what else there is next to a tensor is refused as ever."""

    def combine(self: Any, other: Any) -> Any:
        if not (isinstance(other, te.Tensor) and structural_equal(list(self.shape), list(other.shape))):
            return refuse(self, other)
        names = [f"ax{d}" for d in range(self.ndim)]
        return te.compute(self.shape, lambda *i: function(self[i], other[i]), name=name, varargs_names=names)

    return combine


def tensors_as_tvm() -> None:
    """From now on tensors of one shape can be added, subtracted, multiplied and divided as a whole."""
    operators = {
        "__add__": ("T_add", operator.add),
        "__sub__": ("T_subtract", operator.sub),
        "__mul__": ("T_multiply", operator.mul),
        "__truediv__": ("T_divide", operator.truediv),
    }
    for method, (name, function) in operators.items():
        setattr(te.Tensor, method, _elementwise(name, function, getattr(te.Tensor, method)))


def __getattr__(name: str) -> object:
    """Functions of expressions are in this namespace too."""
    if name in op.__all__:
        return getattr(op, name)
    return _missing(name)
