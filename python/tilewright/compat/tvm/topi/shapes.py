"""tvm.topi: tensors in other shapes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import as_expr
from tilewright.compat.tvm.topi.elementwise import broadcast_shape, element, over_axes

__all__ = ["broadcast_to", "concatenate", "expand_dims", "reshape", "squeeze", "stack", "transpose"]


def _named(shape: Sequence[Any], value: Any, name: str) -> Any:
    return over_axes(shape, value, name=name, tag="injective")


def _product(extents: Sequence[Any]) -> Any:
    return functools.reduce(operator.mul, extents, 1)


def _dimension(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of {rank} dimensions")
    return axis % rank


def broadcast_to(data: Any, shape: Sequence[Any]) -> Any:
    """Return the tensor broadcast to a larger shape, in which extents of 1 are repeated."""
    if len(broadcast_shape(data.shape, shape)) != len(shape):
        raise ValueError(f"a tensor of shape {list(data.shape)} cannot be broadcast to {list(shape)}")
    return _named(list(shape), lambda *i: element(data, i), "T_broadcast_to")


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """Return the tensor with its dimensions permuted, by default reversed."""
    rank = len(a.shape)
    order = [_dimension(axis, rank) for axis in (reversed(range(rank)) if axes is None else axes)]
    if sorted(order) != list(range(rank)):
        raise ValueError(f"axes {axes} do not name each of {rank} dimensions once")
    return _named(
        [a.shape[axis] for axis in order], lambda *i: a[tuple(i[order.index(at)] for at in range(rank))], "T_transpose"
    )


def reshape(a: Any, newshape: Sequence[Any]) -> Any:
    """Return the elements in another shape, in row-major order; one extent may be -1: it is computed."""
    known = _product([extent for extent in newshape if not (isinstance(extent, int) and extent == -1)])
    total = _product(a.shape)
    shape = [total // known if isinstance(extent, int) and extent == -1 else extent for extent in newshape]
    if not _core.Analyzer().can_prove_equal(as_expr(_product(shape)), as_expr(total)):
        raise ValueError(f"a tensor of shape {list(a.shape)} has not as many elements as one of shape {list(newshape)}")

    def value(*indices: Any) -> Any:
        at: Any = 0
        for index, extent in zip(indices, shape, strict=True):
            at = at * extent + index
        own: list[Any] = []
        for extent in reversed(a.shape[1:]):
            own.insert(0, at % extent)
            at = at // extent
        return a[tuple([at, *own] if a.shape else [])]

    return _named(shape, value, "T_reshape")


def expand_dims(a: Any, axis: int, num_newaxis: int = 1) -> Any:
    """Return the tensor with further dimensions of extent 1 before an axis."""
    at = _dimension(axis, len(a.shape) + 1)
    shape = [*a.shape[:at], *[1] * num_newaxis, *a.shape[at:]]
    return _named(shape, lambda *i: a[(*i[:at], *i[at + num_newaxis :])], "T_expand_dims")


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Any:
    """Return the tensor without its dimensions of extent 1, or without some of them."""
    given = [axis] if isinstance(axis, int) else axis
    ones = [at for at, extent in enumerate(a.shape) if isinstance(extent, _core.IntImm) and extent.value == 1]
    gone = ones if given is None else [_dimension(at, len(a.shape)) for at in given]
    if not {*gone} <= {*ones}:
        raise ValueError(f"dimensions {given} of a tensor of shape {list(a.shape)} are not all of extent 1")
    kept = [at for at in range(len(a.shape)) if at not in gone]

    def value(*indices: Any) -> Any:
        at = dict(zip(kept, indices, strict=True))
        return a[tuple(at.get(number, 0) for number in range(len(a.shape)))]

    return _named([a.shape[at] for at in kept], value, "T_squeeze")


def concatenate(a_tuple: Sequence[Any], axis: int = 0) -> Any:
    """Return the tensors concatenated along an axis."""
    at = _dimension(axis, len(a_tuple[0].shape))
    ends: list[Any] = [0]
    for tensor in a_tuple:
        ends.append(ends[-1] + tensor.shape[at])

    def value(*indices: Any) -> Any:
        def of(number: int) -> Any:
            own = list(indices)
            own[at] = indices[at] - ends[number]
            return a_tuple[number][tuple(own)]

        found = of(0)
        for number in range(1, len(a_tuple)):
            found = _core.if_then_else(indices[at] >= ends[number], of(number), found)
        return found

    shape = [*a_tuple[0].shape[:at], ends[-1], *a_tuple[0].shape[at + 1 :]]
    return _named(shape, value, "T_concat")


def stack(a: Sequence[Any], axis: int = 0) -> Any:
    """Return the tensors as slices of one along a new axis."""
    at = _dimension(axis, len(a[0].shape) + 1)
    return concatenate([expand_dims(tensor, at) for tensor in a], at)
