"""tvm.topi: sums and extremes along axes, and their positions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm import te
from tilewright.compat.tvm.topi.elementwise import over_axes

__all__ = ["all", "any", "argmax", "argmin", "max", "min", "prod", "sum"]


def _axes(data: Any, axis: Any) -> tuple[list[int], list[int]]:
    """Return the dimensions that are reduced, all of them by default, and those that stay."""
    rank = len(data.shape)
    given = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    for number in given:
        if not -rank <= number < rank:
            raise ValueError(f"axis {number} of a tensor of {rank} dimensions")
    reduced = sorted({number % rank for number in given})
    return reduced, [number for number in range(rank) if number not in reduced]


def _shape(data: Any, reduced: Sequence[int], keepdims: bool) -> list[Any]:
    return [1 if at in reduced else n for at, n in enumerate(data.shape) if keepdims or at not in reduced]


def _steps(data: Any, reduced: Sequence[int]) -> list[Any]:
    return [te.reduce_axis((0, data.shape[number]), f"k{number}") for number in reduced]


def _element(data: Any, axes: tuple[list[int], list[int]], keepdims: bool, indices: Any, steps: Sequence[Any]) -> Any:
    """Return the element at these indices of the result and steps of the reduction."""
    reduced, kept = axes
    at = dict(zip(kept, [indices[i] for i in (kept if keepdims else range(len(kept)))], strict=True))
    at.update(zip(reduced, [step.var for step in steps], strict=True))
    return data[tuple(at[number] for number in range(len(data.shape)))]


def _reduction(name: str, reduce: Callable[..., Any], text: str) -> Callable[..., Any]:
    def along(data: Any, axis: Any = None, keepdims: bool = False) -> Any:
        reduced, _ = axes = _axes(data, axis)
        if not reduced:
            return te.compute(data.shape, lambda *i: data[i], name=f"{data.name}_red")

        def value(*indices: Any) -> Any:
            steps = _steps(data, reduced)
            return reduce(_element(data, axes, keepdims, indices, steps), axis=steps)

        shape = _shape(data, reduced, keepdims)
        return over_axes(shape, value, name=f"{data.name}_red", tag="comm_reduce")

    along.__name__, along.__doc__ = name, text
    return along


_all = te.comm_reducer(_core.logical_and, lambda dtype: _core.const(True), "all")
_any = te.comm_reducer(_core.logical_or, lambda dtype: _core.const(False), "any")
sum = _reduction("sum", te.sum, "The sums along axes, all of them by default.")
prod = _reduction("prod", te.prod, "The products along axes, all of them by default.")
max = _reduction("max", te.max, "The largest elements along axes, all of them by default.")
min = _reduction("min", te.min, "The smallest elements along axes, all of them by default.")
all = _reduction("all", _all, "Whether all conditions along axes hold.")
any = _reduction("any", _any, "Whether one of the conditions along axes holds.")


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
    reduced, _ = axes = _axes(data, axis)

    def position(steps: Sequence[Any]) -> Any:
        """Return the number of an element among those that are reduced, the last dimension fastest."""
        number: Any = 0
        for dimension, step in zip(reduced, steps, strict=True):
            number = number * data.shape[dimension] + step.var
        return number

    def pairs(*indices: Any) -> Any:
        steps = _steps(data, reduced)
        return reduce((position(steps), _element(data, axes, keepdims, indices, steps)), axis=steps)

    shape = _shape(data, reduced, keepdims)
    found = over_axes(shape, pairs, name=f"{data.name}_red_temp")
    return over_axes(shape, lambda *indices: found[0][indices], name=f"{data.name}_red")


def argmax(data: Any, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Any:
    """Return the positions of the largest elements along axes, by default all of them."""
    return _arg(
        data, axis, keepdims=keepdims, reduce=_arg_reducer(operator.gt, _core.min_value, last=select_last_index)
    )


def argmin(data: Any, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Any:
    """Return the positions of the smallest elements along axes, by default all of them."""
    return _arg(
        data, axis, keepdims=keepdims, reduce=_arg_reducer(operator.lt, _core.max_value, last=select_last_index)
    )
