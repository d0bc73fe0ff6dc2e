"""Conversions in one pass over the rows, by a kernel that is generated from the index map of a rule.

A rule allows it whose axes are dense or varied, and whose keys are known for a whole row by those of its last nonzero:
CSR, ELL, padded CSR, SELL. The first axis may also be compressed, with a key that is that of the row, or that ascends
by at most 1 from one nonzero of a row to the next: DCSR, COO, and buckets of hyb, whose long rows are cut. The position
of a nonzero is then a formula of its row, its place and tables of rows.

Most rules store rows one after another, or the rows of a group as lanes (SELL). Their elements are copied in the order
of memory (:mod:`tilewright.sparse.row_copies`). Others are stored nonzero by nonzero into arrays of padding, here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.kernel.kernel import Kernel
from tilewright.script import tir as T
from tilewright.sparse.array_kernels import compiled
from tilewright.sparse.format_rule import FormatRewriteRule, Nonzeros, Rows, SomeFacts, in_windows
from tilewright.sparse.function_identity import made_of
from tilewright.sparse.programs import size_vars
from tilewright.sparse.structure import largest, name_of
from tilewright.sparse.taken_rows import TakenRows, order_by_length
from tilewright.support.nodes import uses

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: rows of which more varied axes than these would need another table
MOST_VARIED = 2
#: elements that are written at a time
LANES = 16
#: rows of a group that are one vector
MOST_LANES = 64


#: properties of a nonzero that an index map may use
FACTS = ("row", "column", "place", "length", "position", "longest")


class NotByRows(Exception):
    """The index map of a rule uses more than a row and a place."""


class RowNonzero(SomeFacts):
    """A nonzero as expressions, for index maps: what :class:`Nonzeros` is for arrays."""

    lacks = NotByRows

    def __init__(self, facts: Sequence[Any], ranks: Callable[[int], Any]):
        self.row, self.column, self.place, self.length, self.position, self.longest = facts
        self.coordinates = (self.row, self.column)
        self._ranks = ranks
        self.asked: list[tuple[Callable[[Rows], Any], int | None]] = []

    def rank(self, key: Callable[[Rows], Any], window: int | None = None) -> Any:
        """Return the rank of the row: an element of a table that :func:`fill` gets."""
        self.asked.append((key, window))
        return self._ranks(len(self.asked) - 1)


class LastNonzeros(Nonzeros):
    """The last nonzero of each row of which a rule takes some: all of the row, or none."""

    def __init__(self, shape: Sequence[int], columns: Array, taken: TakenRows) -> None:
        self.shape, self.taken = tuple(shape), taken
        self._rows = len(taken.indptr) - 1
        self._indptr, self._columns = taken.indptr, columns

    # Computed when a rule asks: each is a pass over all rows.

    @property
    def _lengths(self) -> Array:
        return self.taken.lengths

    @property
    def longest(self) -> int:
        """Return the largest length, at least 1."""
        return max(1, self.taken.longest)

    @functools.cached_property
    def row(self) -> Array:  # type: ignore[override]
        """Return the row of each."""
        return np.flatnonzero(self._lengths)

    @functools.cached_property
    def position(self) -> Array:  # type: ignore[override]
        """Return the number of each among all nonzeros."""
        position: Array = self._indptr[self.row + 1].astype("int64") - 1
        return position

    @functools.cached_property
    def column(self) -> Array:  # type: ignore[override]
        """Return the column of each."""
        return self._columns[self.position].astype("int64")

    @property
    def coordinates(self) -> tuple[Array, Array]:  # type: ignore[override]
        """Return row and column."""
        return self.row, self.column

    @functools.cached_property
    def length(self) -> Array:
        """Return how many nonzeros its row has."""
        return self._lengths[self.row].astype("int64")

    @functools.cached_property
    def place(self) -> Array:
        """Return which one in its row it is."""
        return self.length - 1

    def _order(self, key: Callable[[Rows], Any], window: int | None) -> Array:
        order = order_by_length(key, self.taken)
        if order is None:
            return super()._order(key, window)
        return order if window is None else in_windows(order, window)


class ByRows:
    """How a rule is filled row by row.

    Raises:
        NotByRows: It cannot be.
    """

    def __init__(self, rule: FormatRewriteRule, shape: Sequence[int]) -> None:
        if len(shape) != 2:
            raise NotByRows("dimensions")
        self.rule = rule
        self._variables = {name: ir.Var(name, "int64") for name in FACTS}
        ranks: dict[int, ir.Var] = {}
        seen = RowNonzero([*self._variables.values()], lambda number: ranks.setdefault(number, ir.Var("rank", "int64")))
        try:
            entries = rule.entries(seen)
        except Exception as error:  # a map of arrays alone
            raise NotByRows(str(error)) from error
        self._ranks = [*ranks.values()]
        self.asked = seen.asked
        self.keys = [entry[0] if isinstance(entry, tuple) else entry for entry in entries]
        #: whether rows have positions along the first axis: each row of which the rule takes nonzeros one, or several
        self.has_positions = rule.axes[0].kind == "compressed" if rule.axes else False
        self.is_cut = self.has_positions and not self._is("row", self.keys[0])
        self.uses_longest = any(uses(key, self._variables["longest"]) for key in self.keys if not isinstance(key, int))
        stored = [entry[1] for entry in entries[self.is_cut :] if isinstance(entry, tuple)]
        if self.is_cut and not (isinstance(entries[0], tuple) and self._is("row", entries[0][1])):
            raise NotByRows("coordinates")
        last = entries[-1] if entries else None
        self.stores_column = isinstance(last, tuple) and last[1] is self._variables["column"]
        if len(stored) > self.stores_column:
            raise NotByRows("coordinates")
        if not all(isinstance(key, int) or (hasattr(key, "dtype") and isinstance(key, ir.Expr)) for key in self.keys):
            raise NotByRows("keys")
        if self.has_positions and self.asked:
            raise NotByRows("ranks")
        self._check()
        #: kernels that were made for these proofs, by program and what it depends on
        self.kernels: dict[Any, Kernel] = {}
        #: by type of indices: the axes if the rule takes no row, and rows have positions along the first axis
        self.empty: dict[Any, Any] = {}
        #: how many rows are lanes of a group, whose elements follow one another; 0: elements are in another order
        self.lanes = next((lanes for lanes in self._possible_lanes() if self._has_groups_of(lanes)), 0)
        #: whether a group is the parent of positions along a varied axis, if there is one, whatever its columns are
        self.counts_groups = bool(self.lanes) and not self.is_cut and self._may_count_groups()
        #: how long rows may be whose keys are proved to be in range, if all axes but the first are dense; 0: not proved
        self.room = self._proved_room() if self.counts_groups else 0

    def _is(self, name: str, key: Any) -> bool:
        return isinstance(key, ir.Var) and key.same_as(self._variables[name])

    def _check(self) -> None:
        """Raise an error unless the key of the last nonzero bounds those of its row, or is in range by itself. Then
        nothing is stored outside the arrays."""
        place, column, position = (self._variables[name] for name in ("place", "column", "position"))
        analyzer: Any = _core.Analyzer()
        for variable in [*self._variables.values(), *self._ranks]:
            analyzer.bind(variable, _core.Range(_core.IntImm("int64", 0), _core.IntImm("int64", 1 << 40)))
        above_is_of_row = True
        varied = 0
        #: what changes from one nonzero of a row to the next, apart from its column
        next_in_row: Any = {place: place + 1, position: position + 1}
        for number, (axis, key) in enumerate(zip(self.rule.axes, self.keys, strict=True)):
            if axis.parent is not None or (axis.kind == "compressed" and number > 0):
                raise NotByRows(axis.name)
            if axis.kind == "compressed":
                # Of one row after another, so that none shares a position with another one: count() looks at that.
                step = _core.substitute(key, next_in_row) - key
                ascends = not isinstance(key, int) and not uses(key, column)
                if not ascends or not analyzer.can_prove(_core.And(step >= 0, step <= 1)):
                    raise NotByRows(axis.name)
                continue
            if isinstance(key, int):
                continue
            varies = any(uses(key, variable) for variable in (place, position, column))
            later = _core.substitute(key, next_in_row)
            # A key that is that of its row is looked at for each row; others are not negative whatever the place is,
            # and do not overflow before the last one.
            ascends = not varies or (
                not uses(key, column)
                and analyzer.const_int_bound(key).max_value < np.iinfo("int64").max
                and analyzer.can_prove(_core.And(later >= key, key >= 0))
            )
            in_range = axis.kind == "dense" and analyzer.can_prove(_core.And(key >= 0, key < axis.extent))
            if axis.kind == "varied":
                varied += 1
                # count() takes rows, or the coordinates of a dense first axis, for the parents.
                if self.is_cut or number == 0 or not above_is_of_row or not ascends or varied > MOST_VARIED:
                    raise NotByRows(axis.name)
            elif not ascends and not in_range:
                raise NotByRows(axis.name)
            above_is_of_row = above_is_of_row and not varies

    def _possible_lanes(self) -> Iterator[int]:
        if len(self.asked) <= 1:
            yield 1
            last = self.rule.axes[-1]
            if last.kind == "dense" and last.extent <= MOST_LANES and last.extent.bit_count() == 1:
                yield last.extent

    def _has_groups_of(self, lanes: int) -> bool:
        """Return whether element `place` of row `lane` of a group of rows, in the order in which they are visited, is
        number place * lanes + lane of the elements of the group, and the group is a position along the first axis."""
        visited, place = (self._ranks or [self._variables["row"]])[0], self._variables["place"]
        analyzer, group, lane = _core.Analyzer(), ir.Var("group", "int64"), ir.Var("lane", "int64")
        for variable in (*self._variables.values(), group):
            analyzer.bind(variable, _core.Range(_core.IntImm("int64", 0), _core.IntImm("int64", 1 << 40)))
        analyzer.bind(lane, _core.Range(_core.IntImm("int64", 0), _core.IntImm("int64", lanes)))
        known = {visited: group * lanes + lane, self._variables["position"]: ir.Var("begin", "int64") + place}
        keys: list[Any] = [_core.substitute(self._expression(key), known) for key in self.keys]
        first, *inner = keys
        at: Any = _core.const(0, "int64")
        if self.is_cut:
            at = first - _core.substitute(first, {place: _core.const(0, "int64")})
        elif not (self.has_positions and lanes == 1) and not analyzer.can_prove_equal(first, group):
            return False
        for axis, key in zip(self.rule.axes[1:], inner, strict=True):
            if axis.kind == "varied" and not analyzer.can_prove_equal(at, 0):
                return False
            at = key if axis.kind == "varied" else at * axis.extent + key
        return analyzer.can_prove_equal(at, place * lanes + lane)

    def visits(self, rows: Array | None) -> bool:
        """Return whether rows in this order, None for all as they are, are visited as the proofs of groups assume: one
        after another in the order of the rank, or without one by their numbers."""
        return rows is None or bool(self.asked) or self.has_positions

    def _may_count_groups(self) -> bool:
        kinds = [axis.kind for axis in self.rule.axes]
        return "varied" not in kinds[2:] and not any(
            uses(key, self._variables["column"]) for key in self.keys if not isinstance(key, int)
        )

    def _proved_room(self) -> int:
        inner = list(zip(self.rule.axes, self.keys, strict=True))[1:]
        if any(axis.kind != "dense" for axis, _ in inner):
            return 0
        room = math.prod(axis.extent for axis, _ in inner) // self.lanes
        analyzer = _core.Analyzer()
        for variable in (*self._variables.values(), *self._ranks):
            end = room if variable is self._variables["place"] else 1 << 40
            analyzer.bind(variable, _core.Range(_core.const(0, "int64"), _core.const(max(end, 1), "int64")))
        keys = [(axis.extent, self._expression(key)) for axis, key in inner]
        return room if all(analyzer.can_prove(_core.And(key >= 0, key < extent)) for extent, key in keys) else 0

    @staticmethod
    def _expression(key: Any) -> Any:
        return _core.const(key, "int64") if isinstance(key, int) else key

    def inner_extents(self) -> tuple[int, ...]:
        """Return what positions depend on beside keys: extents of dense axes but that of the first."""
        return tuple(axis.extent for axis in self.rule.axes[1:])

    def slot(self, nonzero: RowNonzero, row_at: Callable[[Any], Any], starts: Callable[[int, Any], Any]) -> Any:
        """Return the position of a nonzero.

        Args:
            nonzero: the nonzero.
            row_at: its position along a compressed first axis, by its key there.
            starts: an element of the offsets of a varied axis.
        """
        at: Any = 0
        varied = 0
        for axis, entry in zip(self.rule.axes, self.rule.index_map(nonzero), strict=True):  # type: ignore[arg-type]
            key = entry[0] if isinstance(entry, tuple) else entry
            if axis.kind == "compressed":
                at = row_at(key)
            elif axis.kind == "dense":
                at = at * axis.extent + key
            else:
                at = starts(varied, at) + key
                varied += 1
        return at


#: by what rules are made of: how they are filled, or why they are not; as many as formats in use
_known: dict[Any, ByRows | str] = {}
MOST_KNOWN = 256


def by_rows_of(rule: FormatRewriteRule, shape: Sequence[int]) -> ByRows:
    """Return how a rule is filled row by row; the proofs are made once for rules that are equal.

    Raises:
        NotByRows: It cannot be.
    """
    own = made_of(rule.index_map)
    if own is rule.index_map:
        return ByRows(rule, shape)
    key = (own, rule.axes, tuple(shape))
    found = _known.get(key)
    if found is None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        try:
            found = ByRows(rule, shape)
        except NotByRows as error:
            found = str(error)
        _known[key] = found  # other threads may have cleared it
    # An exception that is kept would keep the arrays of all callers that it has passed.
    if isinstance(found, str):
        raise NotByRows(found)
    found.rule = rule  # the map of an earlier rule was equal then, and may refer to other values now
    return found


def fill(
    by_rows: ByRows,
    indptr: Array,
    columns: Array,
    tables: tuple[list[Array], list[Array]],
    rows: Array | None,
    longest: int,
    sizes: tuple[int, ...],
) -> tuple[Array, Array] | None:
    """Return where each stored element comes from, -1 for padding, and its column, 0 for padding.

    Args:
        by_rows: the rule, by rows.
        indptr: offsets of the rows.
        columns: columns of the nonzeros, with the data type of `indptr`.
        tables: ranks of rows, and offsets: of the rows along an axis that cuts them, or of varied axes.
        rows: rows from which nonzeros are taken, in the order in which they are stored; None for all.
        longest: the largest length of a row, if the index map reads it.
        sizes: number of positions of each axis.

    Returns:
        None if several nonzeros have one position.
    """
    ranks, starts = tables
    dtype, size = columns.dtype, sizes[-1]
    offsets = [np.asarray(each, dtype) for each in starts] + [np.zeros(1, dtype)] * (MOST_VARIED - len(starts))
    source, stored = np.full(size, -1, dtype), np.zeros(size if by_rows.stores_column else 0, dtype)
    kernel = kernel_of(_filling, by_rows, len(ranks), name_of(dtype), rows is not None)
    kernel(indptr, columns, *_of_rows(ranks, rows, dtype), longest, *offsets, source, stored)
    total = int(indptr[-1]) if rows is None else int((indptr[rows + 1] - indptr[rows]).sum(dtype="int64"))
    return (source, stored) if np.count_nonzero(source >= 0) == total else None


def count(
    by_rows: ByRows, taken: TakenRows, columns: Array, ranks: list[Array], rows: Array | None, longest: int
) -> list[tuple[int, Array | None]] | None:
    """Return for each axis how many positions it has, and offsets: of the positions of each row along a compressed
    axis, of those below each of the parent's along a varied one.

    Args:
        taken: which rows the rule takes.
        by_rows, columns, ranks, rows, longest: as those of :func:`fill`.

    Returns:
        None where a key is out of range or does not ascend, which passes that take longer name, or where several axes
        are varied.
    """
    dtype, axes, indptr = columns.dtype, by_rows.rule.axes, taken.indptr
    kinds = [axis.kind for axis in axes]
    if kinds.count("varied") > 1:
        return None
    visited = len(indptr) - 1 if rows is None else len(rows)
    first = axes[0].extent if kinds[0] == "dense" else visited
    parents = visited if by_rows.is_cut else 0
    if "varied" in kinds:
        parents = first * math.prod(axis.extent for axis in axes[1 : kinds.index("varied")])
    in_groups = by_rows.counts_groups and not ranks and by_rows.visits(rows)
    if in_groups and -(-visited // by_rows.lanes) > first:
        return None
    lengths = np.zeros(parents, dtype)
    if visited and (not in_groups or by_rows.room < taken.most):
        found = np.array([0, -1])
        program, number = (_counting_groups, by_rows.lanes) if in_groups else (_counting, len(ranks))
        kernel = kernel_of(program, by_rows, number, name_of(dtype), rows is not None)
        order, table = _of_rows(ranks, rows, dtype)
        given = (indptr, order) if in_groups else (indptr, columns, order, table)
        kernel(*given, longest, first, lengths, found)
        if found[0]:
            return None
    offsets, total = None, 0
    if by_rows.is_cut or "varied" in kinds:
        offsets = np.zeros(parents + 1, dtype)
        np.cumsum(lengths, out=offsets[1:])
        total = int(offsets[-1])
        most = int(lengths.max(initial=0)) * parents
        if most > largest("int64"):
            return None
        if most > largest(dtype):
            total = int(lengths.sum(dtype="int64"))  # the offsets may have overflowed
    bounds: list[tuple[int, Array | None]] = []
    size = 1
    for axis in axes:
        if axis.kind == "dense":
            size *= axis.extent
        else:
            size = total if axis.kind == "varied" or by_rows.is_cut else visited
        bounds.append((size, offsets if axis.kind == "varied" or (not bounds and by_rows.is_cut) else None))
    return bounds


def _of_rows(ranks: list[Array], rows: Array | None, dtype: Any) -> list[Array]:
    """Return the arguments of kernels that locate rows."""
    table = np.zeros((1, 0), dtype) if not ranks else ranks[0].reshape(1, -1) if len(ranks) == 1 else np.stack(ranks)
    return [np.zeros(0, dtype) if rows is None else rows, table.astype(dtype, copy=False)]


#: kernels by what their index maps are made of; of maps that hold other things than numbers, which may change, by their
#: programs
_kernels: dict[Any, Kernel] = {}


def kernel_of(program: Any, by_rows: ByRows, *given: Any) -> Kernel:
    """Return the kernel of a program that is made for a rule, and from further arguments that can be hashed."""
    known = by_rows.kernels.get((program, given))
    if known is not None:
        return known
    kinds, own = tuple(axis.kind for axis in by_rows.rule.axes), made_of(by_rows.rule.index_map)
    key: Any = (program, own, kinds, by_rows.inner_extents(), given)
    made = None
    if own is by_rows.rule.index_map:
        made = program(by_rows, *given)
        key = _core.structural_hash(made)
    if key not in _kernels:
        _kernels[key] = compiled(made or program(by_rows, *given))
    by_rows.kernels[program, given] = _kernels[key]
    return _kernels[key]


def row_of_order(is_ordered: bool) -> Callable[[Any, Any], Any]:
    """Return the function (order, r) -> row number r of those from which nonzeros are taken."""
    return (lambda order, r: order[r]) if is_ordered else (lambda order, r: r)


def visited_rows(is_ordered: bool) -> Callable[[Any, Any], Any]:
    """Return the function (size of the row list, size of the offsets) -> number of visited rows."""
    return (lambda taken, ends: taken) if is_ordered else (lambda taken, ends: ends - 1)


def _nonzero(facts: Sequence[Any], row: Any, r: Any, ranks: Any, num_ranks: int) -> RowNonzero:
    """Return visited nonzero number `r` of a row. Its values are int64, so the index map cannot overflow. Without a
    table of ranks, its only rank is `r`."""
    wide = [_core.cast("int64", each) for each in facts]
    return RowNonzero(wide, lambda number: _core.cast("int64", ranks[number, row] if num_ranks else r))


def _filling(by_rows: ByRows, num_ranks: int, dtype: str, is_ordered: bool) -> ir.PrimFunc:
    """Return the program that stores where each element comes from."""
    stores_column, row_of = by_rows.stores_column, row_of_order(is_ordered)

    def first_key(facts: Sequence[Any], row: Any, r: Any, ranks: Any) -> Any:
        """Return the key of the first nonzero of a row along an axis that cuts rows."""
        entry = by_rows.rule.index_map(_nonzero(facts, row, r, ranks, num_ranks))[0]  # type: ignore[arg-type]
        return entry[0] if by_rows.is_cut else _core.const(0, "int64")

    def slot(facts: Sequence[Any], row: Any, r: Any, first: Any, ranks: Any, starts: Any) -> Any:
        def of_axis(number: int, at: Any) -> Any:
            return _core.cast("int64", starts[number][_core.cast("int32", at)])

        def row_at(key: Any) -> Any:
            return of_axis(0, r) + key - first if by_rows.is_cut else _core.cast("int64", r)

        return by_rows.slot(_nonzero(facts, row, r, ranks, num_ranks), row_at, of_axis)

    @T.prim_func
    def fill_rows(
        indptr: T.handle,
        indices: T.handle,
        order: T.handle,
        ranks: T.handle,
        longest: T.int64,
        starts: T.handle,
        more_starts: T.handle,
        source: T.handle,
        columns: T.handle,
    ) -> None:
        ends, nnz, slots, parents, more_parents, stored, taken, ranked = size_vars(8)
        P = T.match_buffer(indptr, (ends,), dtype)
        J = T.match_buffer(indices, (nnz,), dtype)
        Q = T.match_buffer(order, (taken,), dtype)
        R = T.match_buffer(ranks, (max(1, num_ranks), ranked), dtype)
        S0 = T.match_buffer(starts, (parents,), dtype)
        S1 = T.match_buffer(more_starts, (more_parents,), dtype)
        source_of = T.match_buffer(source, (slots,), dtype)
        column_of = T.match_buffer(columns, (stored,), dtype)
        for r in T.parallel(taken if is_ordered else ends - 1):
            row = row_of(Q, r)
            # In int64, so that loops do not upcast their counters.
            begin = T.Cast("int64", P[row])
            length = T.Cast("int64", P[row + 1]) - begin
            for p in T.serial(length):
                first = first_key((row, J[begin], 0, length, begin, longest), row, r, R)
                at = slot(
                    (row, J[begin + p], p, length, begin + p, longest),
                    row,
                    r,
                    first,
                    R if num_ranks else None,
                    (S0, S1),
                )
                source_of[at] = T.Cast(dtype, begin + p)
                if stores_column:
                    column_of[at] = J[begin + p]

    return fill_rows


def _keys(by_rows: ByRows, facts: Sequence[Any], row: Any, r: Any, ranks: Any, num_ranks: int) -> list[Any]:
    """Return the keys of a nonzero of a row, number `r` of those that are visited."""
    entries = by_rows.rule.index_map(_nonzero(facts, row, r, ranks, num_ranks))  # type: ignore[arg-type]
    return [_core.cast("int64", entry[0] if isinstance(entry, tuple) else entry) for entry in entries]


def _looked_at(by_rows: ByRows, keys: Sequence[Any], r: Any, end_of_first: Any, dtype: str) -> tuple[Any, Any, Any]:
    """Return, from the keys of the last nonzero of a row: the parent along the varied axis, the number of positions
    that the row needs there, and whether all keys are in range and the positions fit the type of the offsets."""
    at = parent = extent = _core.const(0, "int64")
    fits = _core.const(True, "bool")
    for number, (axis, key) in enumerate(zip(by_rows.rule.axes, keys, strict=True)):
        fits = _core.And(fits, key >= 0)
        if axis.kind == "compressed":
            at = _core.cast("int64", r)
        elif axis.kind == "varied":
            parent, extent = at, key + 1
            fits = _core.And(fits, key < largest(dtype))
        else:
            end = axis.extent if number else end_of_first
            fits = _core.And(fits, key < end)
            at = at * end + key
    return parent, extent, fits


def _counting(by_rows: ByRows, num_ranks: int, dtype: str, is_ordered: bool) -> ir.PrimFunc:
    """Return the program that computes the extent below each parent of the varied axis, from the last nonzero of each
    row, and the number of positions of each row along an axis that cuts rows. It records whether a key is out of
    range."""
    row_of, axes = row_of_order(is_ordered), by_rows.rule.axes
    is_varied = any(axis.kind == "varied" for axis in axes)

    def keys(facts: Sequence[Any], row: Any, r: Any, ranks: Any) -> list[Any]:
        return _keys(by_rows, facts, row, r, ranks, num_ranks)

    def look(facts: Sequence[Any], row: Any, r: Any, end_of_first: Any, ranks: Any) -> tuple[Any, Any, Any]:
        return _looked_at(by_rows, keys(facts, row, r, ranks), r, end_of_first, dtype)

    @T.prim_func
    def count_rows(
        indptr: T.handle,
        indices: T.handle,
        order: T.handle,
        ranks: T.handle,
        longest: T.int64,
        end_of_first: T.int64,
        lengths: T.handle,
        found: T.handle,
    ) -> None:
        ends, nnz, parents, taken, ranked = size_vars(5)
        P = T.match_buffer(indptr, (ends,), dtype)
        J = T.match_buffer(indices, (nnz,), dtype)
        Q = T.match_buffer(order, (taken,), dtype)
        R = T.match_buffer(ranks, (max(1, num_ranks), ranked), dtype)
        N = T.match_buffer(lengths, (parents,), dtype)
        # Whether a key is out of range; the last key along an axis that cuts rows.
        W = T.match_buffer(found, (2,), "int64")
        for r in range(taken if is_ordered else ends - 1):
            row = row_of(Q, r)
            begin = P[row]
            length = P[row + 1] - begin
            if length > 0:
                last = begin + length - 1
                of_last = (row, J[last], length - 1, length, last, longest)
                parent, extent, fits = look(of_last, row, r, end_of_first, R)
                if not fits:
                    W[0] = T.int64(1)
                elif is_varied:
                    N[parent] = T.max(N[parent], T.Cast(dtype, extent))
                elif by_rows.is_cut:
                    key = keys((row, J[begin], 0, length, begin, longest), row, r, R)[0]
                    last_key = keys(of_last, row, r, R)[0]
                    if key <= W[1]:
                        W[0] = T.int64(1)
                    N[r] = T.Cast(dtype, last_key - key + 1)
                    W[1] = last_key

    return count_rows


def _counting_groups(by_rows: ByRows, lanes: int, dtype: str, is_ordered: bool) -> ir.PrimFunc:
    """Return the program of :func:`_counting` for rules whose groups of rows are the parents of the varied axis
    (:attr:`ByRows.counts_groups`): vectors of rows."""
    row_of, visited_of = row_of_order(is_ordered), visited_rows(is_ordered)
    is_varied = any(axis.kind == "varied" for axis in by_rows.rule.axes)
    size = LANES if lanes == 1 else lanes

    def look(row: Any, r: Any, begin: Any, length: Any, longest: Any, end_of_first: Any) -> tuple[Any, Any]:
        """Return the extent that visited row number `r` needs, and whether one of its keys is out of range: 0 or 1."""
        facts = (row, 0, length - 1, length, begin + length - 1, longest)
        _, extent, fits = _looked_at(by_rows, _keys(by_rows, facts, row, r, None, 0), r, end_of_first, dtype)
        needed = T.Select(length > 0, _core.cast(dtype, extent), _core.const(0, dtype))
        wrong = T.Select(_core.And(length > 0, _core.Not(fits)), _core.const(1, "int32"), _core.const(0, "int32"))
        return needed, wrong

    @T.prim_func
    def count_groups(
        indptr: T.handle, order: T.handle, longest: T.int64, end_of_first: T.int64, lengths: T.handle, found: T.handle
    ) -> None:
        ends, parents, taken = size_vars(3)
        P = T.match_buffer(indptr, (ends,), dtype)
        Q = T.match_buffer(order, (taken,), dtype)
        N = T.match_buffer(lengths, (parents,), dtype)
        W = T.match_buffer(found, (2,), "int64")
        wrong = T.alloc_buffer((size,), "int32", scope="local")
        rows = T.alloc_buffer((size,), dtype, scope="local")
        begins = T.alloc_buffer((size,), dtype, scope="local")
        counts = T.alloc_buffer((size,), dtype, scope="local")
        needed = T.alloc_buffer((size,), dtype, scope="local")
        most = T.alloc_buffer((1,), dtype, scope="local")
        for e in T.vectorized(size):
            wrong[e] = 0
        for c in range(T.ceildiv(visited_of(taken, ends), size)):
            if c * size + size <= visited_of(taken, ends):
                for e in T.vectorized(size):
                    rows[e] = row_of(Q, c * size + e)
                    begins[e] = P[row_of(Q, c * size + e)]
                    counts[e] = P[row_of(Q, c * size + e) + 1] - begins[e]
            else:
                for e in T.vectorized(size):
                    rows[e] = T.if_then_else(c * size + e < visited_of(taken, ends), row_of(Q, c * size + e), 0)
                    begins[e] = T.if_then_else(c * size + e < visited_of(taken, ends), P[row_of(Q, c * size + e)], 0)
                    counts[e] = T.if_then_else(
                        c * size + e < visited_of(taken, ends),
                        P[row_of(Q, c * size + e) + 1] - P[row_of(Q, c * size + e)],
                        0,
                    )
            for e in T.vectorized(size):
                needed[e] = look(rows[e], c * size + e, begins[e], counts[e], longest, end_of_first)[0]
                wrong[e] = wrong[e] | look(rows[e], c * size + e, begins[e], counts[e], longest, end_of_first)[1]
            if is_varied and lanes == 1:
                for e in T.vectorized(size):
                    if c * size + e < visited_of(taken, ends):
                        N[c * size + e] = needed[e]
            elif is_varied:
                most[0] = needed[0]
                for e in range(size - 1):
                    most[0] = T.max(most[0], needed[e + 1])
                N[c] = most[0]
        for e in range(size):
            W[0] = W[0] | T.Cast("int64", wrong[e])

    return count_groups
