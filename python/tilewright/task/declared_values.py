"""Arrays with the values that a program declares for its parameters (``T.assume_buffer_domain``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.support.changed_nodes import with_fields
from tilewright.support.numpy_dtype import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: annotations of T.assume_buffer_domain and T.assume_disjoint
DOMAINS, DISJOINT = "buffer_domains", "disjoint_buffers"
#: orders whose values are distinct
UNIQUE_ORDERS = ("increasing", "distinct")
#: annotation of the root block with conditions on the sizes of calls (src/analysis/validator.h)
SIZES = "required_sizes"


@dataclass(frozen=True)
class Declaration:
    """The declared values of a buffer parameter: they are in [low, end), and may be ordered.

    Attributes:
        position: position of the buffer among the parameters.
        low: lowest value of the domain.
        end: end of the domain; not a value itself.
        order: "increasing", "nondecreasing", "distinct", "offsets", or "" without an order.
        segments: position of the offsets buffer; the order holds within each of its segments. None: within the whole
            buffer, or in segments of `width`.
        width: length of each segment, if the order holds within segments of equal length; 0 otherwise.
        longest: for offsets, the length that no segment exceeds; None without a limit.
    """

    position: int
    low: int
    end: int
    order: str
    segments: int | None
    width: int = 0
    longest: int | None = None


def declarations(func: _core.PrimFunc, shapes: Mapping[int, Sequence[int]]) -> list[Declaration]:
    """Return the declarations that a function makes about its parameters outside of blocks with axes.

    Args:
        func: the function.
        shapes: shapes of the buffer parameters, by position; they determine the symbolic sizes of the program.
    """
    if func.axes:
        lowered: Any
        (lowered,) = _core.lower_sparse_iterations(_core.as_module(func)).functions.values()
        func = lowered
    domains = _root_annotation(func, DOMAINS)
    if not domains:
        return []
    positions = _positions(func)
    analyzer = _core.Analyzer()
    for i, shape in shapes.items():
        for extent, size in zip(func.buffer_map[func.params[i]].shape, shape, strict=True):
            if isinstance(extent, _core.Var):
                analyzer.bind(extent, _core.IntImm(extent.dtype, size))
    result = []
    for region, low, end, order, *segments in domains:
        position = positions.get(region.buffer.data)
        ends = [_number(limit, analyzer) for limit in (low, end)]
        if position is None or ends[0] is None or ends[1] is None:
            continue
        within, width, longest = None, 0, None
        if segments and isinstance(segments[0], _core.BufferRegion):
            within = positions.get(segments[0].buffer.data)
        elif segments and isinstance(segments[0], Sequence):
            longest = _number(segments[0][0], analyzer)
        elif segments:
            width = _number(segments[0], analyzer) or 0
        if segments and within is None and not width and longest is None:
            continue
        result.append(Declaration(position, ends[0], ends[1], _text(order), within, width, longest))
    return result


def _positions(func: _core.PrimFunc) -> dict[Any, int]:
    return {func.buffer_map[p].data: i for i, p in enumerate(func.params) if p in func.buffer_map}


def disjoint_groups(func: _core.PrimFunc) -> list[list[int]]:
    """Return groups of positions of parameters that the function declares to be disjoint: without common values."""
    positions = _positions(func)
    groups = _merged([[region.buffer.data for region in group] for group in _root_annotation(func, DISJOINT)])
    return [[positions[data] for data in group if data in positions] for group in groups]


def required_sizes(func: _core.PrimFunc) -> dict[Any, tuple[int, bool]]:
    """Return the sizes that calls must have according to the root block ("required_sizes"): {variable: (value,
    is_exact)}. If not `is_exact`, the value is a minimum."""
    return {
        condition.a: (int(condition.b.value), isinstance(condition, _core.EQ))
        for condition, *_ in _root_annotation(func, SIZES)
        if isinstance(condition, _core.EQ | _core.GE)
        and isinstance(condition.a, _core.Var)
        and isinstance(condition.b, _core.IntImm)
    }


def _merged(groups: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return disjoint groups with the same members: groups that share a member are merged."""
    merged: list[list[Any]] = []
    for group in groups:
        overlapping = [other for other in merged if any(member in other for member in group)]
        members = [member for other in overlapping for member in other]
        members += [member for member in group if member not in members]
        merged = [other for other in merged if other not in overlapping] + [members]
    return merged


def distinct_value_constraints(func: _core.PrimFunc) -> list[tuple[list[Any], Any, Any]]:
    """Return (lengths, low, end) for each set of lists whose values must be distinct, within a list and between lists:
    the lengths of the lists, and the domain [low, end) of their values."""
    domains = {region.buffer.data: (region.buffer, *rest) for region, *rest in _root_annotation(func, DOMAINS)}
    groups = _merged([[region.buffer.data for region in group] for group in _root_annotation(func, DISJOINT)])
    in_groups = {data for group in groups for data in group}
    groups += [
        [data]
        for data, (_, _, _, order, *segments) in domains.items()
        if _text(order) in UNIQUE_ORDERS and not segments and data not in in_groups
    ]
    return [([domains[data][0].shape[0] for data in group], *domains[group[0]][1:3]) for group in groups]


def _root_annotation(func: _core.PrimFunc, key: str) -> Sequence[Any]:
    """Return an annotation of a function's root block; empty if there is none, or the block has axes."""
    root = getattr(func.body, "block", None)
    return root.annotations.get(key, ()) if root is not None and not root.iter_vars else ()


def as_declared_by_earlier_versions(func: _core.Func) -> _core.Func:
    """Return a lowered function with the declarations of earlier versions: one domain for each buffer, and no order
    within segments of one length."""
    if not isinstance(func, _core.PrimFunc):
        return func
    fewer: dict[Any, list[Any]] = {}
    for region, low, end, *order in _root_annotation(func, DOMAINS):
        if len(order) > 1 and not isinstance(order[1], _core.BufferRegion):
            order = order[:1] if isinstance(order[1], Sequence) else [""]
        fewer.setdefault(region.buffer, [region, low, end, *order])
    if not fewer:
        return func
    body: Any = func.body
    root = with_fields(body.block, annotations={**body.block.annotations, DOMAINS: [*fewer.values()]})
    return func.with_body(with_fields(body, block=root))


def _text(order: Any) -> str:
    return str(getattr(order, "value", order))


def _number(limit: Any, analyzer: _core.Analyzer) -> int | None:
    value = analyzer.simplify(limit)
    return int(value.value) if isinstance(value, _core.IntImm) else None


def declared_arrays(
    func: _core.PrimFunc,
    shapes: Mapping[int, Sequence[int]],
    given: Mapping[int, Array],
    generator: np.random.Generator,
) -> dict[int, Array]:
    """Return random arrays by position for the parameters with declared values.

    Offsets (values in nondecreasing order) begin with the lowest value of their domain and end with the highest.

    Args:
        func: the function.
        shapes: shapes of the buffer parameters, by position.
        given: arrays of the caller, by position; these are not replaced.
        generator: generator of random numbers.

    Raises:
        tilewright.ArgumentError: no array of this shape has such values.
    """
    declared = declarations(func, shapes)
    arrays = dict(given)
    for group in disjoint_groups(func):
        _fill_disjoint(group, declared, func, shapes, arrays, generator)
    #: maximum length of segments, by position of the offsets
    longest = {d.position: d.longest for d in declared if d.longest is not None}
    for d in declared:
        if d.segments is not None and d.order == "increasing":
            longest[d.segments] = min(d.end - d.low, longest.get(d.segments, d.end - d.low))
    for first in sorted(declared, key=lambda d: d.segments is not None):
        if first.position in arrays:
            continue
        same = [d for d in declared if d.position == first.position]
        shape = tuple(shapes[first.position])
        each, starts = _merged_declaration(same, shape, arrays)
        buffer = func.buffer_map[func.params[each.position]]
        if each.end <= each.low and 0 not in shape:
            raise ArgumentError.of(
                "tune/domain", f"no value of '{buffer.name}' is in the domain [{each.low}, {each.end})"
            )
        if starts is not None:
            values = _in_segments(each, buffer.name, shape[0], starts, generator)
        elif each.order:
            values = _ordered(each, buffer.name, shape[0], longest.get(each.position), generator)
            if each.order == "offsets" or (func.axes and each.order == "nondecreasing"):
                _check_last_offset(each, buffer.name, values)
        else:
            values = generator.integers(each.low, max(each.end, each.low + 1), shape)
        arrays[each.position] = np.asarray(values).astype(numpy_dtype(buffer.dtype))
    return {position: array for position, array in arrays.items() if position not in given}


def _merged_declaration(
    same: Sequence[Declaration], shape: Sequence[int], arrays: Mapping[int, Array]
) -> tuple[Declaration, Array | None]:
    """Return the conjunction of the declarations of one buffer. If all orders hold within segments, return the offsets
    of the segments, too."""
    ordered = [d for d in same if d.order] or same
    each = replace(ordered[0], low=max(d.low for d in same), end=min(d.end for d in same))
    if not all(d.segments is not None or d.width for d in ordered):
        return each, None
    strict = any(d.order == "increasing" for d in ordered)
    starts = reduce(np.intersect1d, [_starts(d, shape[0], arrays) for d in ordered])
    return replace(each, order="increasing" if strict else "nondecreasing"), starts


def _check_last_offset(each: Declaration, name: str, values: Array) -> None:
    """Raise an error unless the offsets end with the highest value of their domain."""
    if len(values) and values[-1] != each.end - 1:
        raise ArgumentError.of(
            "tune/domain",
            f"no '{name}' of {len(values)} offsets ends with {each.end - 1}",
            "an axis has at most as many positions as coordinates below each position of its parent",
        )


def _fill_disjoint(
    group: Sequence[int],
    declared: Sequence[Declaration],
    func: _core.PrimFunc,
    shapes: Mapping[int, Sequence[int]],
    arrays: dict[int, Array],
    generator: np.random.Generator,
) -> None:
    """Fill the arrays of a disjoint group: the values of the domain are divided among them."""
    members = [each for each in declared if each.position in group and each.position not in arrays]
    if not members:
        return
    low, end = min(each.low for each in members), max(each.end for each in members)
    used = [arrays[at].reshape(-1) for at in group if at in arrays]
    pool = generator.permutation(np.setdiff1d(np.arange(low, end), np.concatenate([*used, []])))
    counts = [int(shapes[each.position][0]) for each in members]
    # An array that may repeat values needs at least one value; the values that remain are divided among such arrays.
    needs = [
        count if each.order in UNIQUE_ORDERS else min(count, 1) for each, count in zip(members, counts, strict=True)
    ]
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
    """Return `count` values in the declared order. Offsets are a random composition of the range, with segments capped
    at `longest`."""
    if each.order in UNIQUE_ORDERS:
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
        room = np.repeat(np.arange(steps), np.minimum(longest - lengths, over))
        np.add.at(lengths, generator.choice(room, over, replace=False), 1)
    return each.low + np.concatenate([[0], np.cumsum(lengths)])


def _distinct(each: Declaration, name: str, count: int, generator: np.random.Generator) -> Array:
    """Return `count` distinct values of the domain, sorted."""
    if count > each.end - each.low:
        raise ArgumentError.of(
            "tune/domain", f"'{name}' has {count} {each.order} values, more than are in [{each.low}, {each.end})"
        )
    return each.low + np.sort(generator.choice(each.end - each.low, count, replace=False))


def _starts(each: Declaration, count: int, arrays: Mapping[int, Array]) -> Array:
    """Return where segments begin and end. Values outside of all segments are segments of their own."""
    if each.segments is None:
        return np.append(np.arange(0, count, each.width), count)
    offsets = arrays[each.segments].clip(0, count)
    outside = np.arange(offsets.min(initial=count)), np.arange(offsets.max(initial=0), count + 1)
    return np.unique(np.concatenate([offsets, *outside]))


def _in_segments(each: Declaration, name: str, count: int, offsets: Array, generator: np.random.Generator) -> Array:
    """Return values that are sorted, or sorted and distinct, within each segment."""
    values = generator.integers(each.low, max(each.end, each.low + 1), count)
    for begin, end in pairwise(offsets):
        if each.order == "increasing":
            values[begin:end] = _distinct(each, name, int(end - begin), generator)
        else:
            values[begin:end].sort()
    return values
