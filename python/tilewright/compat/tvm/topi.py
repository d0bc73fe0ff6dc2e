"""tvm.topi: operators as formulas: argmax, argmin and the pooling of pictures.

Other names can be mentioned, since files import them beside what they use; each use of one raises.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core, te
from tilewright.compat.tvm.alias import absent

__getattr__ = absent("tvm.topi")

__all__ = ["argmax", "argmin", "nn"]


def _arg_reducer(better: Callable[[Any, Any], Any], worst: Callable[[str], Any], *, last: bool) -> Callable[..., Any]:
    """Return the reducer of argmin or argmax over (index, value) pairs. `last` selects the last index of equal values,
    otherwise the first."""
    before = operator.gt if last else operator.lt

    def combine(x: Any, y: Any) -> tuple[Any, Any]:
        wins = better(x[1], y[1])
        ties = _core.logical_and(x[1] == y[1], before(x[0], y[0]))
        return _core.select(_core.logical_or(wins, ties), x[0], y[0]), _core.select(wins, x[1], y[1])

    return te.comm_reducer(combine, lambda index, value: (_core.const(-1, index), worst(value)), "argument")


def _arg(data: Any, axis: Any, *, keepdims: bool, reduce: Callable[..., Any]) -> Any:
    rank = len(data.shape)
    given = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    reduced = sorted(number % rank for number in given)
    kept = [number for number in range(rank) if number not in reduced]

    def position(steps: Sequence[Any]) -> Any:
        """The number of an element among those that are compared, row by row."""
        number: Any = 0
        for dimension, step in zip(reduced, steps, strict=True):
            number = number * data.shape[dimension] + step.var
        return number

    def pairs(*indices: Any) -> Any:
        steps = [te.reduce_axis((0, data.shape[number]), f"k{number}") for number in reduced]
        at = dict(zip(kept, [indices[i] for i in (kept if keepdims else range(len(kept)))], strict=True))
        at.update(zip(reduced, [step.var for step in steps], strict=True))
        return reduce((position(steps), data[tuple(at[number] for number in range(rank))]), axis=steps)

    shape = [1 if number in reduced else data.shape[number] for number in range(rank) if keepdims or number in kept]
    names = [f"ax{number}" for number in range(len(shape))]
    found = te.compute(shape, pairs, name=f"{data.name}_red_temp", varargs_names=names)
    return te.compute(shape, lambda *indices: found[0][indices], name=f"{data.name}_red", varargs_names=names)


def argmax(data: Any, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Any:
    """The positions of the largest elements along axes, all of them by default."""
    return _arg(
        data, axis, keepdims=keepdims, reduce=_arg_reducer(operator.gt, _core.min_value, last=select_last_index)
    )


def argmin(data: Any, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Any:
    """The positions of the smallest elements along axes, all of them by default."""
    return _arg(
        data, axis, keepdims=keepdims, reduce=_arg_reducer(operator.lt, _core.max_value, last=select_last_index)
    )


def _pad(data: Any, before: Sequence[int], after: Sequence[int], value: Any) -> Any:
    """The data with a border of one value."""
    shape = [extent + low + high for extent, low, high in zip(data.shape, before, after, strict=True)]

    def element(*indices: Any) -> Any:
        at = [index - low for index, low in zip(indices, before, strict=True)]
        inside = []
        for index, extent, low, high in zip(indices, data.shape, before, after, strict=True):
            inside += [index >= low] if low else []
            inside += [index < low + extent] if high else []
        return _core.if_then_else(te.all(*inside), data[tuple(at)], value)

    return te.compute(shape, element, name="pad_temp", varargs_names=[f"ax{number}" for number in range(len(shape))])


def _pool2d(
    input: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Any:
    """The largest element, or the average, of each window of a picture; padding is top, left, bottom, right."""
    if pool_type not in ("max", "avg") or layout.upper() != layout or not {"H", "W"} <= set(layout):
        raise ValueError(
            f"pool2d of type {pool_type!r} in layout {layout!r}: the types are 'max' and 'avg', of H and W"
        )
    padded = any(padding) or ceil_mode
    if pool_type == "avg" and padded and not count_include_pad:
        raise ValueError("pool2d takes averages with the padding counted in: count_include_pad=True")
    rank, dimensions = len(input.shape), [layout.index("H"), layout.index("W")]
    before, after, shape = [0] * rank, [0] * rank, list(input.shape)
    for number, dimension in enumerate(dimensions):
        before[dimension] = padding[number]
        after[dimension] = padding[number + 2] + (stride[number] - 1 if ceil_mode else 0)
        reach = (kernel[number] - 1) * dilation[number] + 1
        room = input.shape[dimension] - reach + before[dimension] + after[dimension]
        shape[dimension] = room // stride[number] + 1
    largest = pool_type == "max"
    border = _core.min_value(input.dtype) if largest else _core.const(0, input.dtype)
    data = _pad(input, before, after, border) if padded else input
    steps = [te.reduce_axis((0, extent), f"rv{number}") for number, extent in enumerate(kernel)]

    def window(*indices: Any) -> Any:
        at = list(indices)
        for number, dimension in enumerate(dimensions):
            at[dimension] = indices[dimension] * stride[number] + steps[number].var * dilation[number]
        return (te.max if largest else te.sum)(data[tuple(at)], axis=steps)

    names = [f"ax{number}" for number in range(rank)]
    pooled = te.compute(shape, window, name="pool_max" if largest else "pool_sum", varargs_names=names)
    if largest:
        return pooled
    count = kernel[0] * kernel[1]
    return te.compute(shape, lambda *at: pooled[at] / count, name="pool_avg", varargs_names=names)


class _Operators(types.ModuleType):
    """tvm.topi.nn: what it has; each use of another name raises."""

    pool2d = staticmethod(_pool2d)

    def __getattr__(self, name: str) -> Any:
        return absent("tvm.topi.nn")(name)


nn = _Operators("tvm.topi.nn")
