"""Arrays whose values are what a program declares of its parameters (``T.assume_buffer_domain``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.support.numpy_dtype import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: the annotations of T.assume_buffer_domain and of T.assume_disjoint
DOMAINS, DISJOINT = "buffer_domains", "disjoint_buffers"
#: the orders of lists in which no value occurs twice
NONE_TWICE = ("increasing", "distinct")
#: the annotation of the root block with conditions on the sizes of calls (src/analysis/validator.h)
SIZES = "required_sizes"


@dataclass(frozen=True)
class Declaration:
    """What is declared of the values of the buffer at `position` among the parameters: they are in [low, end), perhaps
    ordered.

    Attributes:
        segments: the position of the buffer whose segments the order holds in; None for all of it.
        width: instead, how long all segments are; 0 for one.
    """

    position: int
    low: int
    end: int
    order: str
    segments: int | None
    width: int = 0


def declarations(func: Any, shapes: Mapping[int, Sequence[int]]) -> list[Declaration]:
    """What the function declares of its parameters outside of blocks with axes.

    Args:
        func: a PrimFunc.
        shapes: of the parameters that are buffers, by position; they give the sizes that the program leaves open.
    """
    widths = {axis.indices.data: axis.nnz_cols for axis in func.axes if axis.indices and axis.nnz_cols and axis.sorted}
    if func.axes:
        (func,) = _core.lower_sparse_iterations(_core.as_module(func)).functions.values()
    root = getattr(func.body, "block", None)
    found = root.annotations.get(DOMAINS) if root is not None and not root.iter_vars else None
    if found is None:
        return []
    positions = {func.buffer_map[p].data: i for i, p in enumerate(func.params) if p in func.buffer_map}
    analyzer = _core.Analyzer()
    for i, shape in shapes.items():
        for extent, size in zip(func.buffer_map[func.params[i]].shape, shape, strict=True):
            if isinstance(extent, _core.Var):
                analyzer.bind(extent, _core.IntImm(extent.dtype, size))
    result = []
    for region, low, end, order, *segments in found:
        position = positions.get(region.buffer.data)
        ends = [_number(limit, analyzer) for limit in (low, end)]
        if position is None or ends[0] is None or ends[1] is None:
            continue
        within = positions.get(segments[0].buffer.data) if segments else None
        if segments and within is None:
            continue
        result.append(Declaration(position, ends[0], ends[1], str(getattr(order, "value", order)), within))
        if region.buffer.data in widths:
            width = _number(widths[region.buffer.data], analyzer) or 0
            result[-1] = replace(result[-1], order="increasing", width=width)
    return result


def disjoint_groups(func: Any) -> list[list[int]]:
    """Return the positions of parameters that the function declares to have no value in common, by groups."""
    root = getattr(func.body, "block", None)
    found = root.annotations.get(DISJOINT, ()) if root is not None and not root.iter_vars else ()
    positions = {func.buffer_map[p].data: i for i, p in enumerate(func.params) if p in func.buffer_map}
    groups = _merged([[region.buffer.data for region in group] for group in found])
    return [[positions[data] for data in group if data in positions] for group in groups]


def required_sizes(func: Any) -> dict[Any, tuple[int, bool]]:
    """Return the sizes that the root block requires of calls ("required_sizes"), by variable: a number, and whether it
    is the only one; else it is the least."""
    root = getattr(func.body, "block", None)
    found = root.annotations.get(SIZES, ()) if root is not None and not root.iter_vars else ()
    return {
        condition.a: (int(condition.b.value), isinstance(condition, _core.EQ))
        for condition, *_ in found
        if isinstance(condition, _core.EQ | _core.GE)
        and isinstance(condition.a, _core.Var)
        and isinstance(condition.b, _core.IntImm)
    }


def _merged(groups: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return groups without common members: those that have some become one."""
    merged: list[list[Any]] = []
    for group in groups:
        touched = [known for known in merged if any(each in known for each in group)]
        members = [each for known in touched for each in known]
        members += [each for each in group if each not in members]
        merged = [known for known in merged if known not in touched] + [members]
    return merged


def different_values(func: Any) -> list[tuple[list[Any], Any, Any]]:
    """Return the lengths of lists whose values are declared to be different from one another, each in one list or in
    several that are disjoint, and the ends of their domain."""
    root = getattr(func.body, "block", None)
    if root is None or root.iter_vars:
        return []
    domains = {region.buffer.data: (region.buffer, *rest) for region, *rest in root.annotations.get(DOMAINS, ())}
    groups = _merged([[region.buffer.data for region in group] for group in root.annotations.get(DISJOINT, ())])
    in_groups = {data for group in groups for data in group}
    groups += [
        [data]
        for data, (_, _, _, order, *segments) in domains.items()
        if str(getattr(order, "value", order)) in NONE_TWICE and not segments and data not in in_groups
    ]
    return [([domains[data][0].shape[0] for data in group], *domains[group[0]][1:3]) for group in groups]


def _number(limit: Any, analyzer: _core.Analyzer) -> int | None:
    value = analyzer.simplify(limit)
    return int(value.value) if isinstance(value, _core.IntImm) else None


def declared_arrays(
    func: Any, shapes: Mapping[int, Sequence[int]], given: Mapping[int, Array], generator: np.random.Generator
) -> dict[int, Array]:
    """Random arrays for the parameters of which something is declared, by position.

    Offsets (values in nondecreasing order) begin with the least value of their domain and end with the greatest.

    Args:
        func: a PrimFunc.
        shapes: of the parameters that are buffers, by position.
        given: arrays that are there already; none is made for these.
        generator: of the numbers.

    Raises:
        tilewright.ArgumentError: no array of that shape has such values.
    """
    known = declarations(func, shapes)
    arrays = dict(given)
    for group in disjoint_groups(func):
        _fill_disjoint(group, known, func, shapes, arrays, generator)
    #: of offsets, how long their segments may be
    longest = {d.segments: d.end - d.low for d in known if d.segments is not None and d.order == "increasing"}
    for each in sorted(known, key=lambda d: d.segments is not None):
        if each.position in arrays:
            continue
        buffer = func.buffer_map[func.params[each.position]]
        shape = tuple(shapes[each.position])
        if each.end <= each.low and 0 not in shape:
            raise ArgumentError.of(
                "tune/domain", f"no value of '{buffer.name}' is in the domain [{each.low}, {each.end})"
            )
        if each.segments is not None:
            values = _in_segments(each, buffer.name, shape[0], arrays[each.segments], generator)
        elif each.width:
            offsets = np.arange(0, shape[0] + 1, each.width)
            values = _in_segments(each, buffer.name, shape[0], offsets, generator)
        elif each.order:
            values = _ordered(each, buffer.name, shape[0], longest.get(each.position), generator)
            if func.axes and each.order == "nondecreasing" and len(values) and values[-1] != each.end - 1:
                raise ArgumentError.of(
                    "tune/domain", f"no '{buffer.name}' of {shape[0]} offsets ends with {each.end - 1}"
                )
        else:
            values = generator.integers(each.low, max(each.end, each.low + 1), shape)
        arrays[each.position] = np.asarray(values).astype(numpy_dtype(buffer.dtype))
    return {position: array for position, array in arrays.items() if position not in given}


def _fill_disjoint(
    group: Sequence[int],
    known: Sequence[Declaration],
    func: Any,
    shapes: Mapping[int, Sequence[int]],
    arrays: dict[int, Array],
    generator: np.random.Generator,
) -> None:
    """Fill arrays of a group that have no value in common: values of the domain are divided among them."""
    members = [each for each in known if each.position in group and each.position not in arrays]
    if not members:
        return
    low, end = min(each.low for each in members), max(each.end for each in members)
    used = [arrays[at].reshape(-1) for at in group if at in arrays]
    pool = generator.permutation(np.setdiff1d(np.arange(low, end), np.concatenate([*used, []])))
    counts = [int(shapes[each.position][0]) for each in members]
    # An array that may repeat values needs at least one; these arrays then share the values that remain.
    needs = [count if each.order in NONE_TWICE else min(count, 1) for each, count in zip(members, counts, strict=True)]
    spare = len(pool) - sum(needs)
    for each, count, need in zip(members, counts, needs, strict=True):
        allowed = (pool >= each.low) & (pool < each.end)
        more = int(generator.integers(0, min(count - need, max(spare, 0)) + 1))
        chosen = pool[allowed][: need + more]
        if spare < 0 or len(chosen) < need:
            name = func.buffer_map[func.params[each.position]].name
            message = f"'{name}' and buffers that are disjoint from it need more values than [{low}, {end}) has"
            raise ArgumentError.of("tune/domain", message)
        spare -= more
        pool = np.setdiff1d(pool, chosen)
        pool = generator.permutation(pool)
        values = np.concatenate([chosen, generator.choice(chosen, count - len(chosen))]) if count else chosen
        values = np.sort(values) if each.order not in ("", "distinct") else generator.permutation(values)
        arrays[each.position] = values.astype(numpy_dtype(func.buffer_map[func.params[each.position]].dtype))


def _ordered(each: Declaration, name: str, count: int, longest: int | None, generator: np.random.Generator) -> Array:
    if each.order in NONE_TWICE:
        values = _distinct(each, name, count, generator)
        return values if each.order == "increasing" else generator.permutation(values)
    if count < 2:
        return np.full(count, each.low)
    total, steps = each.end - 1 - each.low, count - 1
    if longest is not None and total > longest * steps:
        total = longest * steps
    lengths = generator.multinomial(total, np.full(steps, 1 / steps))
    if longest is not None:
        over = int((lengths - longest).clip(min=0).sum())
        lengths = lengths.clip(max=longest)
        room = np.repeat(np.arange(steps), longest - lengths)
        np.add.at(lengths, generator.choice(room, over, replace=False), 1)
    return each.low + np.concatenate([[0], np.cumsum(lengths)])


def _distinct(each: Declaration, name: str, count: int, generator: np.random.Generator) -> Array:
    if count > each.end - each.low:
        raise ArgumentError.of(
            "tune/domain", f"'{name}' has {count} {each.order} values, more than are in [{each.low}, {each.end})"
        )
    return each.low + np.sort(generator.choice(each.end - each.low, count, replace=False))


def _in_segments(each: Declaration, name: str, count: int, offsets: Array, generator: np.random.Generator) -> Array:
    values = generator.integers(each.low, max(each.end, each.low + 1), count)
    for begin, end in pairwise(offsets):
        if each.order == "increasing":
            values[begin:end] = _distinct(each, name, int(end - begin), generator)
        else:
            values[begin:end].sort()
    return values
