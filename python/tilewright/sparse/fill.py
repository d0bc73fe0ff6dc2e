"""Conversions in one pass over the rows, by a kernel that is generated from the index map of a rule.

A rule allows it whose axes are dense or varied, and whose keys are known for a whole row by those of its last nonzero:
CSR, ELL, padded CSR, SELL. The first axis may also be compressed, with a key that is that of the row: DCSR, and buckets
of hyb. The position of a nonzero is then a formula of its row, its place and tables of rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.kernel.kernel import Kernel, compile_quietly
from tilewright.script import tir as T
from tilewright.sparse import programs
from tilewright.sparse.format_rule import FACTS_OF_NONZEROS, FormatRewriteRule, Nonzeros, Rows, unknown_fact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: rows of which more varied axes than these would need another table
MOST_VARIED = 2


#: what an index map may use of a nonzero
FACTS = ("row", "column", "place", "length", "position")


class NotByRows(Exception):
    """The index map of a rule uses more than a row and a place."""


class RowNonzero:
    """A nonzero as expressions, for index maps: what :class:`Nonzeros` is for arrays."""

    def __init__(self, row: Any, column: Any, place: Any, length: Any, position: Any, ranks: Callable[[int], Any]):
        self.row, self.column, self.place, self.length, self.position = row, column, place, length, position
        self.coordinates = (row, column)
        self._ranks = ranks
        self.asked: list[tuple[Callable[[Rows], Any], int | None]] = []

    def rank(self, key: Callable[[Rows], Any], window: int | None = None) -> Any:
        """Return the rank of the row: an element of a table that :func:`fill` gets."""
        self.asked.append((key, window))
        return self._ranks(len(self.asked) - 1)

    def __getattr__(self, name: str) -> Any:
        raise NotByRows(name) if name in FACTS_OF_NONZEROS else unknown_fact(name, "nonzeros", FACTS_OF_NONZEROS)


class LastNonzeros(Nonzeros):
    """The last nonzero of each row of which a rule takes some: all of the row, or none."""

    def __init__(self, shape: Sequence[int], indptr: Array, columns: Array, lengths: Array) -> None:
        self.shape = tuple(shape)
        self._rows = len(indptr) - 1
        self._lengths = lengths
        self.row = np.flatnonzero(self._lengths)
        self.position = indptr[self.row + 1].astype("int64") - 1
        self.column = columns[self.position].astype("int64")
        self.coordinates = (self.row, self.column)
        self.length = self._lengths[self.row]
        self.place = self.length - 1
        self.longest = max(1, int(self._lengths.max(initial=0)))


class ByRows:
    """How a rule is filled row by row.

    Raises:
        NotByRows: It cannot be.
    """

    def __init__(self, rule: FormatRewriteRule, shape: Sequence[int]) -> None:
        if len(shape) != 2:
            raise NotByRows("dimensions")
        self.rule = rule
        row, column, place, length, position = (ir.Var(name, "int64") for name in FACTS)
        self._variables = {"row": row, "column": column, "place": place, "length": length, "position": position}
        ranks: dict[int, ir.Var] = {}
        seen = RowNonzero(
            row, column, place, length, position, lambda number: ranks.setdefault(number, ir.Var("rank", "int64"))
        )
        try:
            entries = rule.entries(seen)
        except Exception as error:  # a map of arrays alone
            raise NotByRows(str(error)) from error
        self._ranks = [*ranks.values()]
        self.asked = seen.asked
        self.keys = [entry[0] if isinstance(entry, tuple) else entry for entry in entries]
        #: whether a table has the position of each row along the first axis, behind those of ranks
        self.has_positions = rule.axes[0].kind == "compressed" if rule.axes else False
        stored = [entry[1] for entry in entries if isinstance(entry, tuple)]
        last = entries[-1] if entries else None
        self.stores_column = isinstance(last, tuple) and last[1] is self._variables["column"]
        if len(stored) > self.stores_column:
            raise NotByRows("coordinates")
        if not all(isinstance(key, int) or (hasattr(key, "dtype") and isinstance(key, ir.Expr)) for key in self.keys):
            raise NotByRows("keys")
        self._check()

    def _check(self) -> None:
        """That the key of the last nonzero bounds those of its row, or is in range by itself. Nothing is stored outside
        of the arrays then."""
        place, column = self._variables["place"], self._variables["column"]
        analyzer = _core.Analyzer()
        for variable in [*self._variables.values(), *self._ranks]:
            analyzer.bind(variable, _core.Range(_core.IntImm("int64", 0), _core.IntImm("int64", 1 << 40)))
        above_is_of_row = True
        varied = 0
        for number, (axis, key) in enumerate(zip(self.rule.axes, self.keys, strict=True)):
            if axis.parent is not None or (axis.kind == "compressed" and number > 0):
                raise NotByRows(axis.name)
            if axis.kind == "compressed":
                # Of one row after another, so that rows are the positions, and none is shared.
                if not isinstance(key, ir.Var) or not key.same_as(self._variables["row"]):
                    raise NotByRows(axis.name)
                continue
            if isinstance(key, int):
                continue
            uses = [_uses(key, var) for var in (place, column)]
            later = _core.substitute(key, {place: place + 1})
            # A key that is that of its row is looked at for each row; others are not negative whatever the place is.
            ascends = not uses[1] and (not uses[0] or analyzer.can_prove(_core.And(later >= key, key >= 0)))
            in_range = axis.kind == "dense" and analyzer.can_prove(_core.And(key >= 0, key < axis.extent))
            if axis.kind == "varied":
                varied += 1
                if not above_is_of_row or not ascends or varied > MOST_VARIED:
                    raise NotByRows(axis.name)
            elif not ascends and not in_range:
                raise NotByRows(axis.name)
            above_is_of_row = above_is_of_row and not any(uses)

    def inner_extents(self) -> tuple[int, ...]:
        """Return what positions depend on beside keys: extents of dense axes but that of the first."""
        return tuple(axis.extent for axis in self.rule.axes[1:])

    def slot(self, nonzero: RowNonzero, starts: Callable[[int, Any], Any]) -> Any:
        """Return the position of a nonzero; `starts` is an element of the offsets of a varied axis."""
        at: Any = 0
        varied = 0
        if self.has_positions:
            at = nonzero._ranks(len(self.asked))
        for axis, entry in zip(self.rule.axes, self.rule.index_map(nonzero), strict=True):  # type: ignore[arg-type]
            key = entry[0] if isinstance(entry, tuple) else entry
            if axis.kind == "compressed":
                continue
            if axis.kind == "dense":
                at = at * axis.extent + key
            else:
                at = starts(varied, at) + key
                varied += 1
        return at


def _uses(key: Any, var: ir.Var) -> bool:
    found = False

    def look(node: object) -> None:
        nonlocal found
        found |= isinstance(node, ir.Var) and node.same_as(var)

    _core.visit(key, look)
    return found


def fill(
    by_rows: ByRows, indptr: Array, columns: Array, tables: tuple[list[Array], list[Array]], taken: Array, count: int
) -> tuple[Array, Array]:
    """Return where each stored element comes from, -1 for padding, and its column, 0 for padding.

    Args:
        by_rows: of the rule.
        indptr: of the rows.
        columns: of the nonzeros, of the type of `indptr`.
        tables: ranks of rows, and their positions where there are some, and offsets of varied axes.
        taken: how many nonzeros of each row: all, or none.
        count: of the stored elements.
    """
    ranks, starts = tables
    dtype = str(columns.dtype)
    m = len(indptr) - 1
    order = np.arange(m, dtype=dtype)
    if by_rows.asked:  # neighbors in the result one after another
        order[ranks[0]] = np.arange(m, dtype=dtype)
    rows = np.stack(ranks).astype(dtype) if ranks else order.reshape(1, m)
    if np.count_nonzero(taken) < m:
        order = order[taken[order] > 0]
    offsets = [np.asarray(each, dtype) for each in starts] + [np.zeros(1, dtype)] * (MOST_VARIED - len(starts))
    source, stored = np.full(count, -1, dtype), np.zeros(count if by_rows.stores_column else 0, dtype)
    _kernel_of(by_rows, len(ranks), dtype)(indptr, columns, order, rows, *offsets, source, stored)
    return source, stored


#: kernels by what their index maps are made of; maps that hold other things than numbers are compiled each time
_kernels: dict[Any, Kernel] = {}


def _kernel_of(by_rows: ByRows, num_ranks: int, dtype: str) -> Kernel:
    kinds = tuple(axis.kind for axis in by_rows.rule.axes)
    key = (_made_of(by_rows.rule.index_map), kinds, by_rows.inner_extents(), num_ranks, dtype)
    if key not in _kernels:
        _kernels[key] = _compiled(_program(by_rows, max(1, num_ranks), dtype))
    return _kernels[key]


def _compiled(program: ir.PrimFunc) -> Kernel:
    compiled = compile_quietly(program, schedule=None)
    assert isinstance(compiled, Kernel)
    return compiled


@functools.cache
def gather_kernel(dtype: str, index_dtype: str) -> Kernel:
    """Return the kernel that converts values (:func:`tilewright.sparse.programs.gather`)."""
    return _compiled(programs.gather(dtype, index_dtype))


def _made_of(function: Any) -> Any:
    """Code, and values that it refers to: equal for functions that compute the same. Functions with values that cannot
    be compared are equal to themselves only."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    names = _names_in(code)
    used = [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
    values = [*cells, *used, *(function.__defaults__ or ())]
    if not all(isinstance(value, int | str | float | None) for value in values):
        return function
    return code, tuple(values)


def _names_in(code: CodeType) -> set[str]:
    return {*code.co_names}.union(*(_names_in(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _program(by_rows: ByRows, num_ranks: int, dtype: str) -> ir.PrimFunc:
    stores_column = by_rows.stores_column

    def slot(row: Any, column: Any, place: Any, length: Any, position: Any, ranks: Any, starts: Any) -> Any:
        i, j, p, n, at = (_core.cast("int64", each) for each in (row, column, place, length, position))
        nonzero = RowNonzero(i, j, p, n, at, lambda number: _core.cast("int64", ranks[number, row]))
        return by_rows.slot(nonzero, lambda number, at: _core.cast("int64", starts[number][_core.cast("int32", at)]))

    @T.prim_func
    def fill_rows(
        indptr: T.handle,
        indices: T.handle,
        order: T.handle,
        ranks: T.handle,
        starts: T.handle,
        more_starts: T.handle,
        source: T.handle,
        columns: T.handle,
    ) -> None:
        m, nnz, slots = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
        parents, more_parents, stored = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
        taken = T.int32(is_size_var=True)
        P = T.match_buffer(indptr, (m + 1,), dtype)
        J = T.match_buffer(indices, (nnz,), dtype)
        Q = T.match_buffer(order, (taken,), dtype)
        R = T.match_buffer(ranks, (num_ranks, m), dtype)
        S0 = T.match_buffer(starts, (parents,), dtype)
        S1 = T.match_buffer(more_starts, (more_parents,), dtype)
        source_of = T.match_buffer(source, (slots,), dtype)
        column_of = T.match_buffer(columns, (stored,), dtype)
        for r in T.parallel(taken):
            for p in range(P[Q[r] + 1] - P[Q[r]]):
                at = slot(Q[r], J[P[Q[r]] + p], p, P[Q[r] + 1] - P[Q[r]], P[Q[r]] + p, R, (S0, S1))
                source_of[at] = P[Q[r]] + p
                if stores_column:
                    column_of[at] = J[P[Q[r]] + p]

    return fill_rows
