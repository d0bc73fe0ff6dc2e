"""Fill formats that store rows contiguously, or groups of rows interleaved as lanes, by vector copies in memory order,
including the padding.

Unlike the general conversion (fill.py), this needs no array that maps stored elements to nonzeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.script import tir as T
from tilewright.sparse.fill import MOST_LANES, MOST_VARIED, ByRows, kernel_of, row_of_order, visited_rows
from tilewright.sparse.programs import size_vars
from tilewright.sparse.structure import largest, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: rows, or groups of them, that a task copies
OF_TASK = 512
#: bytes that are copied at a time
VECTOR_BYTES = 64
#: places of rows that are transposed together in registers
TILE = 4
#: rows of a slice that are transposed together: slices of more are copied in parts, with the same code
TILE_ROWS = 16
#: annotations of loops with long bodies: the last iteration is not peeled, which would copy the body
WHOLE = {"pragma_loop_partition_hint": 0}
#: given as the type of elements to store the numbers of nonzeros instead
NUMBERS = ""


class RowCopies:
    """How the elements of a part are copied.

    Attributes:
        size: how many elements are stored.
    """

    def __init__(
        self, by_rows: ByRows, indptr: Array, order: Array | None, offsets: list[Array], groups: int, size: int
    ) -> None:
        self._by_rows, self._groups, self.size = by_rows, groups, size
        self._is_ordered = order is not None
        self._rows = (indptr, np.zeros(0, indptr.dtype) if order is None else order, *offsets)

    def elements(self, of_nonzeros: Array) -> Array:
        """Return the stored elements: those of nonzeros, and 0 for padding."""
        return self._copied(of_nonzeros, name_of(of_nonzeros.dtype))

    def numbers(self) -> Array:
        """Return the number of the nonzero that each stored element is, -1 for padding."""
        return self._copied(np.zeros(0, self._rows[0].dtype), NUMBERS)

    def _copied(self, of_nonzeros: Array, dtype: str) -> Array:
        stored = np.empty(self.size, of_nonzeros.dtype)
        if not self.size:
            return stored
        program = _copying_rows if self._by_rows.lanes == 1 else _copying_lanes
        kernel = kernel_of(program, self._by_rows, name_of(self._rows[0].dtype), self._is_ordered, dtype)
        kernel(*self._rows, self._groups, of_nonzeros, stored)
        return stored


def row_copies(
    by_rows: ByRows, indptr: Array, tables: tuple[list[Array], list[Array]], rows: Array | None, sizes: tuple[int, ...]
) -> RowCopies | None:
    """Return the copies that fill the elements of a rule; None if they are not stored in the order of rows.

    Args:
        by_rows, indptr, tables, rows, sizes: as those of :func:`tilewright.sparse.fill.fill`.
    """
    ranks, starts = tables
    dtype, size = indptr.dtype, sizes[-1]
    lanes, taken = by_rows.lanes, len(indptr) - 1 if rows is None else len(rows)
    # Vectors end behind the last element.
    if not lanes or ranks or not by_rows.visits(rows) or size > largest(dtype) - 2 * MOST_LANES:
        return None
    groups = taken if by_rows.has_positions else -(-taken // lanes)
    if not by_rows.is_cut and groups != sizes[0]:
        return None
    offsets = [np.asarray(each, dtype) for each in starts] + [np.zeros(1, dtype)] * (MOST_VARIED - len(starts))
    return RowCopies(by_rows, indptr, rows, offsets, groups, size)


def _begin_of(by_rows: ByRows) -> Callable[[Any, Any], Any]:
    """Return a function from a group to its first element."""

    def begin_of(group: Any, starts: Any) -> Any:
        at, varied = starts[0][group] if by_rows.is_cut else group, 0
        for axis in by_rows.rule.axes[1:]:
            if axis.kind == "dense":
                at = at * axis.extent
            else:
                at, varied = starts[varied][at], varied + 1
        return at

    return begin_of


def _vector_lanes(by_rows: ByRows, dtype: str) -> int:
    """Return the lanes of a vector; if rows have a fixed size, at most that size rounded up to a power of two."""
    lanes: int = VECTOR_BYTES // np.dtype(dtype).itemsize
    if by_rows.is_cut or any(axis.kind != "dense" for axis in by_rows.rule.axes[1:]):
        return lanes
    return min(lanes, 1 << (math.prod(by_rows.inner_extents()) - 1).bit_length())


def _program(name: str, body: Any, index_dtype: str, dtype: str, is_ordered: bool) -> ir.PrimFunc:
    """Return a program whose body is a macro of its buffers, the number of groups, and that of visited rows."""

    visited_of = visited_rows(is_ordered)

    @T.prim_func
    def copy(
        indptr: T.handle,
        order: T.handle,
        starts: T.handle,
        more_starts: T.handle,
        groups: T.int32,
        elements: T.handle,
        stored: T.handle,
    ) -> None:
        ends, nnz, slots, parents, more_parents, taken = size_vars(6)
        P = T.match_buffer(indptr, (ends,), index_dtype)
        Q = T.match_buffer(order, (taken,), index_dtype)
        S0 = T.match_buffer(starts, (parents,), index_dtype)
        S1 = T.match_buffer(more_starts, (more_parents,), index_dtype)
        X = T.match_buffer(elements, (nnz,), dtype)
        Y = T.match_buffer(stored, (slots,), dtype)
        body(P, Q, (S0, S1), X, Y, groups, visited_of(taken, ends))

    return copy.with_attr("global_symbol", name)


def _copying_rows(by_rows: ByRows, index_dtype: str, is_ordered: bool, element: str) -> ir.PrimFunc:
    """Return the program for rows that are stored contiguously.

    A task stores whole vectors: lanes beyond the end of a row are overwritten by the next row. Only vectors that would
    reach into the elements of the next task are masked, because masked stores take a dozen cycles on some processors.
    """
    row_of, begin_of, dtype = row_of_order(is_ordered), _begin_of(by_rows), element or index_dtype
    lanes = _vector_lanes(by_rows, dtype)
    padding = _core.const(-1 if element == NUMBERS else 0, dtype)

    @T.macro
    def copy_rows(P: Any, Q: Any, starts: Any, X: Any, Y: Any, groups: Any, visited: Any) -> None:
        for c in T.parallel(T.ceildiv(groups, OF_TASK)):
            end = begin_of(T.min((c + 1) * OF_TASK, groups), starts)
            for r in range(T.min(groups - c * OF_TASK, OF_TASK)):
                base = begin_of(c * OF_TASK + r, starts)
                count = begin_of(c * OF_TASK + r + 1, starts) - base
                begin = P[row_of(Q, c * OF_TASK + r)]
                length = P[row_of(Q, c * OF_TASK + r) + 1] - begin
                if count + lanes <= end - base and (element == NUMBERS or count + lanes <= X.shape[0] - begin):
                    for e in T.vectorized(lanes):
                        Y[base + e] = T.Select(e < length, begin + e if element == NUMBERS else X[begin + e], padding)
                    # Most rows fit into one vector; starting a loop takes longer than storing it.
                    if count > lanes:
                        for v in range(T.ceildiv(count, lanes) - 1):
                            for e in T.vectorized(lanes):
                                Y[base + (v + 1) * lanes + e] = T.Select(
                                    (v + 1) * lanes + e < length,
                                    begin + (v + 1) * lanes + e
                                    if element == NUMBERS
                                    else X[begin + (v + 1) * lanes + e],
                                    padding,
                                )
                else:
                    for v in range(T.ceildiv(count, lanes)):
                        for e in T.vectorized(lanes):
                            if v * lanes + e < count:
                                Y[base + v * lanes + e] = T.if_then_else(
                                    v * lanes + e < length,
                                    begin + v * lanes + e if element == NUMBERS else X[begin + v * lanes + e],
                                    padding,
                                )

    return _program("copy_rows", copy_rows, index_dtype, dtype, is_ordered)


def _columns(rows: list[Any]) -> list[Any]:
    """Transpose rows of TILE elements: return their columns, vectors with one element of each row."""
    lanes = len(rows)

    def mixed(a: Any, b: Any, order: tuple[int, ...]) -> Any:
        """Shuffle `a` and `b` within blocks of TILE lanes, by the numbers of lanes in the concatenated blocks."""
        blocks = range(0, lanes, TILE)
        return T.Shuffle([a, b], [block + n % TILE + n // TILE * lanes for block in blocks for n in order])

    # Row 4 * k + j is block k of vector j.
    a, b, c, d = (T.Shuffle(rows[j::TILE], [*range(lanes)]) for j in range(TILE))
    columns = []
    for order in ((0, 4, 1, 5), (2, 6, 3, 7)):
        pairs = mixed(a, b, order), mixed(c, d, order)
        columns += [mixed(*pairs, (0, 1, 4, 5)), mixed(*pairs, (2, 3, 6, 7))]
    return columns


def _taken_columns(elements: Any, begins: Any, lengths: Any, place: Any) -> list[Any]:
    """Return TILE columns of a slice: vectors with one lane per row, which are 0 past the end of the row."""
    lanes = int(begins.shape[0])
    places = T.Ramp(0, 1, lanes)
    columns = _columns([elements[T.Ramp(begins[lane] + place, 1, TILE)] for lane in range(lanes)])
    padding = T.Broadcast(_core.const(0, elements.dtype), lanes)
    return [
        T.Select(T.Broadcast(_core.cast(lengths.dtype, place + j), lanes) < lengths[places], column, padding)
        for j, column in enumerate(columns)
    ]


def _reduced(numbers: Any, choose: Callable[[Any, Any], Any]) -> Any:
    """Reduce numbers to their minimum or maximum, by halves of a vector."""
    left = int(numbers.shape[0])
    vector = numbers[T.Ramp(0, 1, left)]
    while left > 1:
        left //= 2
        low, high = (T.Shuffle([vector], [*range(begin, begin + left)]) for begin in (0, left))
        vector = choose(low, high)
    return vector


def _copying_lanes(by_rows: ByRows, index_dtype: str, is_ordered: bool, element: str) -> ir.PrimFunc:
    """Return the program for rows that are the lanes of groups (:attr:`ByRows.lanes`)."""
    row_of, begin_of, dtype = row_of_order(is_ordered), _begin_of(by_rows), element or index_dtype
    lanes = by_rows.lanes
    size = min(lanes, TILE_ROWS)
    is_tiled = element != NUMBERS and size % TILE == 0

    @T.macro
    def store_tile(Y: Any, base: Any, t: Any, columns: Any) -> None:
        first, second, third, fourth = columns
        Y[T.Ramp(base + t * TILE * lanes, 1, size)] = first
        Y[T.Ramp(base + (t * TILE + 1) * lanes, 1, size)] = second
        Y[T.Ramp(base + (t * TILE + 2) * lanes, 1, size)] = third
        Y[T.Ramp(base + (t * TILE + 3) * lanes, 1, size)] = fourth

    @T.macro
    def copy_lanes(P: Any, Q: Any, starts: Any, X: Any, Y: Any, groups: Any, visited: Any) -> None:
        for g in T.parallel(groups, annotations=WHOLE):
            places = (begin_of(g + 1, starts) - begin_of(g, starts)) // lanes
            for part in T.serial(lanes // size, annotations=WHOLE):
                with T.block("part"):  # so that the buffers are private to each thread
                    vg, vp = T.axis.spatial(groups, g), T.axis.spatial(lanes // size, part)
                    base, first_row = begin_of(vg, starts) + vp * size, vg * lanes + vp * size
                    begins = T.alloc_buffer((size,), index_dtype, scope="local")
                    lengths = T.alloc_buffer((size,), index_dtype, scope="local")
                    if first_row + size <= visited:
                        for e in T.vectorized(size):
                            begins[e] = P[row_of(Q, first_row + e)]
                            lengths[e] = P[row_of(Q, first_row + e) + 1] - begins[e]
                    else:
                        for e in T.vectorized(size):
                            begins[e] = T.if_then_else(first_row + e < visited, P[row_of(Q, first_row + e)], 0)
                            lengths[e] = T.if_then_else(
                                first_row + e < visited,
                                P[row_of(Q, first_row + e) + 1] - P[row_of(Q, first_row + e)],
                                0,
                            )
                    # Tiles of positions at which no row is padded need no mask.
                    full = _reduced(lengths, T.min)
                    if is_tiled and places + TILE <= X.shape[0] - _reduced(begins, T.max):
                        for t in range(full // TILE):
                            store_tile(
                                Y, base, t, _columns([X[T.Ramp(begins[e] + t * TILE, 1, TILE)] for e in range(size)])
                            )
                        for t in T.serial(full // TILE, places // TILE, annotations=WHOLE):
                            store_tile(Y, base, t, _taken_columns(X, begins, lengths, t * TILE))
                        if places % TILE > 0:
                            done = places // TILE * TILE
                            first, second, third, fourth = _taken_columns(X, begins, lengths, done)  # noqa: RUF059
                            Y[T.Ramp(base + done * lanes, 1, size)] = first
                            if places % TILE > 1:
                                Y[T.Ramp(base + (done + 1) * lanes, 1, size)] = second
                            if places % TILE > 2:
                                Y[T.Ramp(base + (done + 2) * lanes, 1, size)] = third
                    else:
                        # Positions at which no row is padded are loaded without a mask: scalar loads are faster than a
                        # gather.
                        for p in range(full):
                            for e in T.vectorized(size):
                                Y[base + p * lanes + e] = begins[e] + p if element == NUMBERS else X[begins[e] + p]
                        for p in range(places - full):
                            for e in T.vectorized(size):
                                if element == NUMBERS:
                                    Y[base + (full + p) * lanes + e] = T.Select(
                                        full + p < lengths[e], begins[e] + full + p, -1
                                    )
                                else:
                                    Y[base + (full + p) * lanes + e] = T.if_then_else(
                                        full + p < lengths[e], X[begins[e] + full + p], T.Cast(dtype, 0)
                                    )

    return _program("copy_lanes", copy_lanes, index_dtype, dtype, is_ordered)
