"""tvm.te: tensor expressions."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.ir import structural_equal
from tilewright.compat.tvm.tir import op
from tilewright.script.tir.index_maps import AXIS_SEPARATOR
from tilewright.te import *  # noqa: F403
from tilewright.te import __all__ as _names

abs = op.abs

_missing = missing("tvm.te")

__all__ = ["AXIS_SEPARATOR", "tag_scope", *_names]


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
        return compute(self.shape, lambda *i: function(self[i], other[i]), name=name, varargs_names=names)

    return combine


class TensorAsTVM(te.Tensor):
    """A tensor that can be added to, subtracted from, multiplied and divided by one of its shape as a whole."""

    __add__ = _elementwise("T_add", operator.add, te.Tensor.__add__)
    __sub__ = _elementwise("T_subtract", operator.sub, te.Tensor.__sub__)
    __mul__ = _elementwise("T_multiply", operator.mul, te.Tensor.__mul__)
    __truediv__ = _elementwise("T_divide", operator.truediv, te.Tensor.__truediv__)


def seen(made: Any) -> Any:
    """Return tensors as TVM's scripts see them."""
    for tensor in made if isinstance(made, list | tuple) else [made]:
        if type(tensor) is te.Tensor:
            tensor.__class__ = TensorAsTVM
    return made


def placeholder(*args: Any, **kwargs: Any) -> Any:  # type: ignore[no-redef]
    """An input."""
    return seen(te.placeholder(*args, **kwargs))


class tag_scope(contextlib.ContextDecorator):
    """Tensors that are made inside have this tag, unless they are given another one.

    Raises:
        ValueError: the context is opened inside another one.
    """

    current: tag_scope | None = None

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def __enter__(self) -> tag_scope:
        if tag_scope.current is not None:
            raise ValueError("nested tag_scope is not allowed for now")
        tag_scope.current = self
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        tag_scope.current = None


def compute(*args: Any, **kwargs: Any) -> Any:  # type: ignore[no-redef]
    """A tensor by a formula of its elements."""
    made = seen(te.compute(*args, **kwargs))
    if tag_scope.current is not None:
        for tensor in made if isinstance(made, list | tuple) else [made]:
            tensor.op.tag = tensor.op.tag or tag_scope.current.tag
    return made


def extern(*args: Any, **kwargs: Any) -> Any:  # type: ignore[no-redef]
    """Tensors by a program."""
    return seen(te.extern(*args, **kwargs))


def __getattr__(name: str) -> object:
    """Functions of expressions are in this namespace too."""
    if name in op.__all__:
        return getattr(op, name)
    return _missing(name)
