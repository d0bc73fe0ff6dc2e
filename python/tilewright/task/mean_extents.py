"""Mean trip counts of loops with data-dependent bounds, in a call with given arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright import _core, ir
from tilewright.support.nodes import nodes_of
from tilewright.task.index_map import BINARY

#: maximum number of values of an extent that are evaluated
_MOST_VALUES = 1 << 24


class _UnknownError(Exception):
    """The value of an expression cannot be evaluated."""


def mean_extents(function: ir.PrimFunc, args: Sequence[Any]) -> list[tuple[ir.Expr, float]]:
    """Return the extents of loops and axes that read arguments, with their means over the loop variables in the
    extents.

    Args:
        function: a function with constant sizes.
        args: arguments of a call.
    """
    data: dict[Any, Any] = {}
    for param, value in zip(function.params, args, strict=True):
        buffer = function.buffer_map.get(param)
        if buffer is not None and "int" in buffer.dtype:
            try:
                data[buffer.data] = np.asarray(value)
            except (TypeError, ValueError, RuntimeError):
                continue  # as an array on a device
    if not data:
        return []
    ranges: dict[Any, tuple[ir.Expr, ir.Expr]] = {}
    asked: list[ir.Expr] = []

    def look(node: object) -> None:
        if isinstance(node, ir.For):
            ranges[node.loop_var] = node.min, node.extent
        elif isinstance(node, ir.IterVar) and node.dom is not None:
            ranges[node.var] = node.dom.min, node.dom.extent
        else:
            return
        extent = ranges[node.loop_var if isinstance(node, ir.For) else node.var][1]
        if nodes_of(extent, ir.BufferLoad) and not any(ir.structural_equal(extent, known) for known in asked):
            asked.append(extent)

    _core.visit(function.body, look)
    means = []
    for extent in asked:
        try:
            means.append((extent, _mean(extent, ranges, data)))
        except _UnknownError:
            continue
    return means


def _mean(extent: ir.Expr, ranges: Mapping[Any, tuple[ir.Expr, ir.Expr]], data: Mapping[Any, Any]) -> float:
    variables = list(dict.fromkeys(node for node in nodes_of(extent, ir.Var) if node in ranges))
    sides = []
    for variable in variables:
        begin, count = (_constant(end) for end in ranges[variable])
        sides.append(np.arange(begin, begin + max(count, 0)))
    if math.prod(len(side) for side in sides) > _MOST_VALUES:
        raise _UnknownError
    grid = np.meshgrid(*sides, indexing="ij", sparse=True) if sides else []
    values = np.maximum(_value(extent, dict(zip(variables, grid, strict=True)), data), 0)
    return float(np.mean(np.broadcast_to(values, [len(side) for side in sides]))) if values.size else 0.0


def _constant(end: ir.Expr) -> int:
    if not isinstance(end, ir.IntImm):
        raise _UnknownError
    return int(end.value)


def _value(expr: Any, known: Mapping[Any, Any], data: Mapping[Any, Any]) -> Any:
    if isinstance(expr, ir.IntImm):
        return np.int64(expr.value)
    if isinstance(expr, ir.Var) and expr in known:
        return known[expr]
    if isinstance(expr, ir.Cast):
        return _value(expr.value, known, data)
    if isinstance(expr, ir.BufferLoad) and expr.buffer.data in data:
        array = data[expr.buffer.data]
        indices = [_value(index, known, data) for index in expr.indices]
        if array.ndim != len(indices) or any(
            np.any(index < 0) or np.any(index >= size) for index, size in zip(indices, array.shape, strict=True)
        ):
            raise _UnknownError
        return array[tuple(indices)].astype(np.int64)
    operator = BINARY.get(type(expr))
    if operator is None:
        raise _UnknownError
    return operator(_value(expr.a, known, data), _value(expr.b, known, data))
