"""Expressions: nodes by name, operators that Python has no sign for, and intrinsic functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core

call_intrinsic = _core.call_intrinsic
ceildiv = _core.ceildiv
floordiv = _core.floordiv
floormod = _core.floormod
truncdiv = _core.truncdiv
truncmod = _core.truncmod
max_value = _core.max_value
min_value = _core.min_value


def call(dtype: Any, name: str, args: list[Any]) -> Any:
    """A call of the operator `name` that gives a `dtype`."""
    return _core.Call(dtype, _core.Op(f"tir.{name}"), args)


_UNARY = ["exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sigmoid", "tanh", "tan", "cos", "cosh", "sin", "sinh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "round", "nearbyint", "trunc", "isnan", "isinf", "isfinite", "isnullptr", "popcount"]
_BINARY = ["atan2", "copysign", "fmod", "hypot", "nextafter", "pow", "ldexp", "shift_left", "shift_right"]


def _intrinsic(name: str, arity: int) -> Callable[..., Any]:
    if arity == 1:

        def unary(x: Any) -> Any:
            return _core.call_intrinsic(name, [x])

        function: Callable[..., Any] = unary
    else:

        def binary(x: Any, y: Any) -> Any:
            return _core.call_intrinsic(name, [x, y])

        function = binary
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The intrinsic `{name}`."
    return function


INTRINSICS: dict[str, Callable[..., Any]] = {
    **{name: _intrinsic(name, 1) for name in _UNARY},
    **{name: _intrinsic(name, 2) for name in _BINARY},
}
