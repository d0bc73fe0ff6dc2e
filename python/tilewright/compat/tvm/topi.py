"""tvm.topi: operators as formulas: argmax and argmin.

Other names can be mentioned, since files import them beside what they use; each use of one raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core, te
from tilewright.compat.tvm.alias import absent

__path__: list[str] = []
__getattr__ = absent("tvm.topi")

__all__ = ["argmax", "argmin"]


def _arg_reducer(better: Callable[[Any, Any], Any], worst: Callable[[str], Any], *, last: bool) -> Callable[..., Any]:
    """Of pairs of a position and a value; of equal values the first position, or the last."""
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
