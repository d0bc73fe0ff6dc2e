"""tvm.tir.op: functions of expressions."""

from __future__ import annotations

from functools import reduce
from typing import Any

from tilewright import _core
from tilewright.script.tir import formulas, intrinsics

_FUNCTIONS = {**intrinsics.INTRINSICS, **vars(intrinsics)}
globals().update({name: f for name, f in _FUNCTIONS.items() if name.islower() and name[0] != "_" and callable(f)})
del globals()["fail"]


truncmod = _core.truncmod
#: Reductions over axes of tensor expressions; of two values, their combination.
max, min, sum = formulas.max, formulas.min, formulas.sum


def comm_reducer(fcombine: Any, fidentity: Any, name: str = "reduce") -> Any:
    """Return a user-defined reducer, as :func:`tvm.te.comm_reducer`."""
    return formulas.comm_reducer(fcombine, fidentity, name)


def call_tir(global_var: Any, *args: Any) -> Any:
    """Return a call of a function of the module."""
    return global_var(*args)


def const(value: Any, dtype: str | None = None, span: None = None) -> Any:
    """Return a constant; by default int32, float32 or bool."""
    return _core.const(value, dtype)


def add(lhs: Any, rhs: Any, span: None = None) -> Any:
    """Return the sum."""
    return lhs + rhs


def subtract(lhs: Any, rhs: Any, span: None = None) -> Any:
    """Return the difference."""
    return lhs - rhs


def multiply(lhs: Any, rhs: Any, span: None = None) -> Any:
    """Return the product."""
    return lhs * rhs


def abs(x: Any, span: None = None) -> Any:
    """Return the absolute value: a Select for signed integers, the operand itself for unsigned ones."""
    dtype = getattr(x, "dtype", "float32")
    if dtype.startswith("uint"):
        return x
    if not dtype.startswith("int"):
        return intrinsics.abs(x)
    return _core.Select(_core.GE(x, _core.const(0, dtype)), x, _core.const(0, dtype) - x)


def all(*args: Any, span: None = None) -> Any:
    """Return the conjunction."""
    if not args:
        raise ValueError("all() takes at least one condition")
    return reduce(_core.logical_and, args)


def any(*args: Any, span: None = None) -> Any:
    """Return the disjunction."""
    if not args:
        raise ValueError("any() takes at least one condition")
    return reduce(_core.logical_or, args)


__all__ = [
    name
    for name in globals()
    if not name.startswith("_") and name not in ("Any", "annotations", "formulas", "intrinsics", "missing", "reduce")
]
