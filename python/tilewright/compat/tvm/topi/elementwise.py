"""tvm.topi: operators of elements; shapes of two tensors are broadcast as NumPy does."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core
from tilewright import te as native
from tilewright.compat.tvm import te
from tilewright.compat.tvm.alias import as_expr
from tilewright.compat.tvm.ir import structural_equal
from tilewright.compat.tvm.tir import op

#: The functions that tvm.topi takes from tvm.tir as they are.
UNARY = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "floor"),
    *("isfinite", "isinf", "isnan", "log", "log10", "log2", "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt"),
    *("tan", "tanh", "trunc"),
)


def _truncated(x: Any, y: Any) -> Any:
    """Return a quotient; of integers, rounded towards 0."""
    is_float = "float" in getattr(x, "dtype", "float32") or "float" in getattr(y, "dtype", "")
    return x / y if is_float else _core.truncdiv(x, y)


#: Operators of two operands, by the name that TVM gives them, and their function.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": _truncated,
    "floor_divide": operator.floordiv,
    "mod": operator.mod,
    "floor_mod": operator.mod,
    "maximum": _core.max,
    "minimum": _core.min,
    "power": lambda x, y: getattr(op, "power")(x, y),  # noqa: B009
    "equal": lambda x, y: _core.EQ(x, y),
    "not_equal": lambda x, y: _core.NE(x, y),
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "logical_and": _core.logical_and,
    "logical_or": _core.logical_or,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
}

__all__ = [
    *UNARY,
    *BINARY,
    *("broadcast_shape", "cast", "clip", "full", "full_like", "identity", "logical_not", "negative", "where"),
]


def _is_one(extent: Any) -> bool:
    return int(extent) == 1 if isinstance(extent, int | _core.IntImm) else False


def broadcast_shape(*shapes: Sequence[Any]) -> list[Any]:
    """Return the common broadcast shape: an extent of 1 takes that of the other shapes.

    Raises:
        ValueError: two extents differ.
    """
    rank = max(len(shape) for shape in shapes)
    result: list[Any] = [1] * rank
    for shape in shapes:
        for at, extent in enumerate(shape, rank - len(shape)):
            if _is_one(result[at]):
                result[at] = extent
            elif not _is_one(extent) and not structural_equal([result[at]], [extent]):
                raise ValueError(f"shapes {', '.join(str(list(s)) for s in shapes)} cannot be broadcast together")
    return result


def element(tensor: Any, indices: Sequence[Any]) -> Any:
    """Return the element of a tensor at the indices of its broadcast shape; a number unchanged."""
    if not isinstance(tensor, native.Tensor):
        return tensor
    own = indices[len(indices) - len(tensor.shape) :]
    return tensor[tuple(0 if _is_one(n) else i for n, i in zip(tensor.shape, own, strict=True))]


def over_axes(shape: Sequence[Any], value: Callable[..., Any], **more: Any) -> Any:
    """Return a computed tensor whose axes are called ax0, ax1, ..."""
    return te.compute(shape, value, varargs_names=[f"ax{number}" for number in range(len(shape))], **more)


def elementwise(function: Callable[..., Any], *operands: Any, name: str = "compute", tag: str = "elemwise") -> Any:
    """Return the tensor of a function of the elements of tensors and numbers; without tensors, the function's
    result."""
    shapes = [operand.shape for operand in operands if isinstance(operand, native.Tensor)]
    if not shapes:
        return function(*map(as_expr, operands))
    shape = broadcast_shape(*shapes)
    return over_axes(shape, lambda *i: function(*(element(x, i) for x in operands)), name=name, tag=tag)


def _unary(name: str) -> Callable[[Any], Any]:
    function = getattr(op, name)

    def apply(x: Any) -> Any:
        return elementwise(function, x)

    apply.__name__, apply.__doc__ = name, f"{name} of each element."
    return apply


def _binary(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(lhs: Any, rhs: Any) -> Any:
        return elementwise(function, lhs, rhs, name=f"T_{name}", tag="broadcast")

    apply.__name__, apply.__doc__ = name, f"{name} of the elements of two tensors, or of a tensor and a number."
    return apply


globals().update({name: _unary(name) for name in UNARY})
globals().update({name: _binary(name, function) for name, function in BINARY.items()})


def identity(x: Any) -> Any:
    """Return a copy."""
    return elementwise(lambda value: value, x)


def negative(x: Any) -> Any:
    """Return each element with the opposite sign."""
    return elementwise(operator.neg, x)


def logical_not(data: Any) -> Any:
    """Return the negation of each condition."""
    return elementwise(_core.Not, data)


def cast(x: Any, dtype: str) -> Any:
    """Return each element converted to another type."""
    return elementwise(lambda value: value.astype(dtype), x)


def clip(x: Any, a_min: Any, a_max: Any) -> Any:
    """Return each element, clamped to [a_min, a_max]."""

    def clipped(value: Any) -> Any:
        low, high = (as_expr(end, value.dtype) for end in (a_min, a_max))
        return _core.max(_core.min(value, high), low)

    return elementwise(clipped, x)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return the elements of `x` where the condition holds, elsewhere those of `y`."""

    def chosen(holds: Any, one: Any, other: Any) -> Any:
        holds = holds if holds.dtype == "bool" else _core.NE(holds, _core.const(0, holds.dtype))
        return _core.select(holds, one, other)

    return elementwise(chosen, condition, x, y, name="T_where", tag="broadcast")


def full(shape: Sequence[Any], dtype: str, fill_value: Any) -> Any:
    """Return a tensor of one value."""
    value = _core.cast(dtype, fill_value) if isinstance(fill_value, _core.Expr) else _core.const(fill_value, dtype)
    return te.compute(shape, lambda *indices: value, name="T_full")


def full_like(x: Any, fill_value: Any) -> Any:
    """Return a tensor of one value, in the shape of another one."""
    return full(x.shape, x.dtype, fill_value)
