"""Evaluate conditions of rules that select whole rows of a matrix, such as those of the buckets of hyb, once per row.

The rows that a rule selects are then converted without visiting other nonzeros. Conditions and sort keys that depend
only on the length of a row are evaluated once per length, to a table. Rows are then bucketed by this table in two
passes over the offsets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core
from tilewright.sparse.by_nonzeros import AllNonzeros, always_holds, holds_for_coordinates
from tilewright.sparse.format_rule import (
    FACTS_OF_NONZEROS,
    FACTS_OF_ROWS,
    FormatRewriteRule,
    Nonzeros,
    Rows,
    SomeFacts,
    unknown_fact,
)
from tilewright.sparse.function_identity import made_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class _NotOfRows(Exception):
    """Raised if a condition uses more than a row and its length."""


class _Each(np.lib.mixins.NDArrayOperatorsMixin):
    """An array with one number per row (or per length) in place of an array with one number per nonzero (or per row).

    Only element-wise functions give the same result for both. Others, such as a mean or a rank, raise an exception.
    """

    __slots__ = ("numbers",)

    def __init__(self, numbers: Array) -> None:
        self.numbers = numbers

    def __array_ufunc__(self, function: np.ufunc, method: str, *given: Any, **named: Any) -> Any:
        """Apply an element-wise function of NumPy."""
        if method != "__call__" or function.signature is not None or named:
            raise _NotOfRows(function.__name__)
        if any(np.ndim(each) for each in given if not isinstance(each, _Each)):
            raise _NotOfRows("an array over something else")
        found = function(*(each.numbers if isinstance(each, _Each) else each for each in given))
        return tuple(map(_Each, found)) if isinstance(found, tuple) else _Each(found)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise _NotOfRows("an array of all of them")

    def __array_function__(self, function: Callable[..., Any], *_: Any) -> Any:
        raise _NotOfRows(function.__name__)

    def __bool__(self) -> bool:
        raise _NotOfRows("a decision for all of them")

    def astype(self, dtype: Any) -> _Each:
        """Convert the numbers to a type."""
        return _Each(self.numbers.astype(dtype))


class _RowFacts(SomeFacts):
    """Properties that all nonzeros of a row share, for each row."""

    lacks = _NotOfRows

    def __init__(self, shape: Sequence[int], lengths: Array) -> None:
        self.shape, self._lengths = tuple(shape), lengths

    @property
    def length(self) -> _Each:
        """Return the number of nonzeros of each row."""
        return _Each(self._lengths)

    @functools.cached_property
    def row(self) -> _Each:
        """Return the number of each row."""
        return _Each(np.arange(len(self._lengths)))

    @functools.cached_property
    def longest(self) -> int:
        """Return the largest length, at least 1."""
        return max(1, int(self._lengths.max(initial=0)))


class _LengthFacts:
    """Properties that all rows of one length share, for each length."""

    def __init__(self, shape: Sequence[int], lengths: Array) -> None:
        self.shape, self.length = tuple(shape), _Each(lengths)

    def __getattr__(self, name: str) -> Any:
        known = (*FACTS_OF_NONZEROS, *FACTS_OF_ROWS)
        raise _NotOfRows(name) if name in known else unknown_fact(name, "nonzeros", FACTS_OF_NONZEROS)


class TakenRows:
    """The rows that a rule selects, each with all of its nonzeros.

    Attributes:
        indptr: offsets of all rows; None for a tensor, for which only `is_all` is known.
        rows: numbers of the selected rows, ascending; None for all, with or without nonzeros.
        is_all: whether no other row has nonzeros.
    """

    def __init__(self, indptr: Any, rows: Array | None = None, is_all: bool = True, most: int | None = None) -> None:
        self.indptr, self.rows, self.is_all, self._most = indptr, rows, is_all, most

    @property
    def most(self) -> int:
        """Return an upper bound of the lengths of selected rows, which may be known without a pass over them."""
        return self.longest if self._most is None else self._most

    def with_lengths_up_to(self, most: int, rows: Array, is_all: bool) -> TakenRows:
        """Return a selection of some of these rows: those whose lengths are in a set with the maximum `most`."""
        taken = TakenRows(self.indptr, rows, is_all, most)
        if most == self.longest:
            taken.longest = most
        return taken

    @functools.cached_property
    def of_all(self) -> Array:
        """Return the length of each row of the matrix, in the type of the offsets."""
        lengths: Array = self.indptr[1:] - self.indptr[:-1]
        return lengths

    @functools.cached_property
    def lengths(self) -> Array:
        """Return how many nonzeros of each row are selected."""
        if self.rows is None:
            return self.of_all.astype("int64")
        lengths = np.zeros(len(self.indptr) - 1, "int64")
        lengths[self.rows] = self.of_rows
        return lengths

    @functools.cached_property
    def of_rows(self) -> Array:
        """Return the length of each selected row."""
        if self.rows is None:
            return self.of_all
        lengths: Array = self.indptr[self.rows + 1] - self.indptr[self.rows]
        return lengths

    @functools.cached_property
    def longest(self) -> int:
        """Return the largest length of a selected row, 0 if there is none."""
        return int(self.of_rows.max(initial=0))

    def with_nonzeros(self) -> Array | None:
        """Return the selected rows that have nonzeros; None if those are all rows of the matrix."""
        if self.rows is None:
            return None if self.of_all.all() else np.flatnonzero(self.of_all).astype(self.indptr.dtype)
        return None if len(self.rows) == len(self.indptr) - 1 else self.rows


def rows_by_length(indptr: Array, keys: Array, count: int) -> tuple[Array, Array]:
    """Sort rows by keys of their lengths, which are less than `count`; return offsets and rows."""
    offsets, rows = np.empty(count + 1, indptr.dtype), np.empty(len(indptr) - 1, indptr.dtype)
    _core.sort_by_length(indptr, keys.astype("int32", copy=False), offsets, rows)
    return offsets, rows


def order_by_length(key: Callable[[Rows], Any], taken: TakenRows) -> Array | None:
    """Return all rows in the order of a key, stably; None if it depends on more than their lengths.

    Args:
        key: function of :class:`Rows`.
        taken: rows that a rule selects.
    """
    rows = len(taken.indptr) - 1
    if taken.rows is not None or taken.longest > rows:
        return None
    try:
        found: Any = key(_LengthFacts((), np.arange(taken.longest + 1)))  # type: ignore[arg-type]
    except Exception:  # the key depends on rows, or fails
        return None
    if not isinstance(found, _Each) or found.numbers.dtype.kind not in "biu":
        return None
    keys = found.numbers.astype("int64")
    least = int(keys.min())
    count = int(keys.max()) - least + 1
    return rows_by_length(taken.indptr, keys - least, count)[1] if count <= 4 * rows else None


def rows_of_rules(rules: Sequence[FormatRewriteRule], nonzeros: AllNonzeros) -> list[TakenRows] | None:
    """Return for each rule which rows it selects.

    Returns:
        None if a condition distinguishes nonzeros of one row, or if the rules do not partition the rows.
    """
    every = TakenRows(nonzeros.indptr)
    if len(rules) == 1 and not rules[0].conditions:
        return [every]
    always: dict[int, bool] = {}
    taken = _rows_by_conditions_on_lengths(rules, nonzeros, every, always)
    if taken is not None:
        return taken
    taken = []
    times = np.zeros(len(every.of_all), np.uint8)
    if len(rules) > np.iinfo(times.dtype).max:
        return None
    facts = functools.partial(_RowFacts, nonzeros.shape)
    for rule in rules:
        lengths = _left(rule, nonzeros, facts, every.lengths, always)
        if lengths is None:
            return None
        rows = np.flatnonzero(lengths).astype(every.indptr.dtype)
        times[rows] += 1
        taken.append(TakenRows(every.indptr, rows, int(lengths.sum()) == len(nonzeros.column)))
    return taken if np.array_equal(times, every.of_all > 0) else None


#: Tables that map a row length to the index of the rule that selects such rows, to SEVERAL if several rules do, or to
#: the number of rules if none does. The key identifies the conditions. None if a condition depends on more than
#: lengths.
_owners_of: dict[Any, Array | None] = {}
MOST_KNOWN = 256
SEVERAL = -1


def _owners_of_lengths(
    rules: Sequence[FormatRewriteRule], nonzeros: AllNonzeros, longest: int, always: dict[int, bool]
) -> Array | None:
    """Return the table of the rules for row lengths up to `longest`. Rules with equal conditions share a table."""
    conditions = {id(each): each for rule in rules for each in rule.conditions}
    own = {number: made_of(each) for number, each in conditions.items()}
    if any(own[number] is each for number, each in conditions.items()):
        return _evaluated_owners(rules, nonzeros, longest + 1, always)
    key = (nonzeros.shape, *(tuple([own[id(each)] for each in rule.conditions]) for rule in rules))
    known = _owners_of.get(key, np.zeros(0, "int32"))
    if known is not None and len(known) <= longest:
        if len(_owners_of) >= MOST_KNOWN:
            _owners_of.clear()
        known = _owners_of[key] = _evaluated_owners(rules, nonzeros, 2 << longest.bit_length(), always)
    return None if known is None else known[: longest + 1]


def _evaluated_owners(
    rules: Sequence[FormatRewriteRule], nonzeros: AllNonzeros, count: int, always: dict[int, bool]
) -> Array | None:
    lengths = np.arange(count)
    owners = np.full(count, len(rules), "int32")
    facts = functools.partial(_LengthFacts, nonzeros.shape)
    for number, rule in enumerate(rules):
        left = _left(rule, nonzeros, facts, lengths, always)
        if left is None:
            return None
        own = left > 0
        owners[own] = np.where(owners[own] == len(rules), number, SEVERAL)
    return owners


def _rows_by_conditions_on_lengths(
    rules: Sequence[FormatRewriteRule], nonzeros: AllNonzeros, every: TakenRows, always: dict[int, bool]
) -> list[TakenRows] | None:
    """Compute :func:`rows_of_rules` by a table of lengths. Return None if a condition depends on more than lengths, or
    if two rules select the same length."""
    if every.longest > len(every.of_all) + 1024:
        return None
    owners = _owners_of_lengths(rules, nonzeros, every.longest, always)
    if owners is None or owners.min() == SEVERAL:
        return None
    present = owners[every.of_all.min(initial=every.longest) :]
    if present[0] < len(rules) and (present == present[0]).all():
        none = np.zeros(0, every.indptr.dtype)
        return [every if number == present[0] else TakenRows(every.indptr, none, False) for number in range(len(rules))]
    most = np.zeros(len(rules) + 1, "int64")
    most[owners] = np.arange(len(owners))  # the largest length of each rule, since later assignments win
    offsets, order = rows_by_length(every.indptr, owners, len(rules) + 1)
    *begins, end, _ = ends = offsets.tolist()
    if end < len(order) and every.of_all[order[end:]].any():
        return None
    return [
        every.with_lengths_up_to(length, order[first:last], last - first == end)
        for first, last, length in zip(begins, ends[1:], most.tolist(), strict=False)
    ]


def _left(
    rule: FormatRewriteRule,
    nonzeros: AllNonzeros,
    facts: Callable[[Array], Any],
    lengths: Array,
    always: dict[int, bool],
) -> Array | None:
    """Return the lengths, with 0 for those that the conditions of a rule do not select. Return None if a condition
    depends on single nonzeros.

    Args:
        rule: the rule.
        nonzeros: all nonzeros.
        facts: function from lengths to the argument of conditions.
        lengths: numbers of nonzeros, of rows or of all rows of one length.
        always: whether a condition provably holds for all nonzeros, by the identity of the condition.
    """
    for condition in rule.conditions:
        holds = _holds(condition, facts(lengths), nonzeros, always)
        if holds is None:
            return None
        lengths = lengths if holds is True else lengths * holds
    return lengths


def _holds(
    condition: Callable[[Nonzeros], Any], facts: Any, nonzeros: AllNonzeros, always: dict[int, bool]
) -> Any | None:
    """Return the row lengths for which a condition holds; None if the condition depends on more than the length."""
    if always.get(id(condition)):
        return True
    try:
        holds = condition(facts)
    except Exception:  # the condition depends on nonzeros, or fails
        if id(condition) not in always:
            if holds_for_coordinates(condition, nonzeros.shape):
                always[id(condition)] = True
            elif isinstance(facts, _RowFacts):
                always[id(condition)] = always_holds(condition, nonzeros)
        return True if always.get(id(condition)) else None
    if holds is True:
        return True
    return holds.numbers if isinstance(holds, _Each) and holds.numbers.dtype == bool else None


class TakenNonzeros(AllNonzeros):
    """The nonzeros of selected rows of a matrix, with their positions among all nonzeros."""

    def __init__(self, whole: AllNonzeros, taken: TakenRows) -> None:
        mask = np.repeat(taken.lengths > 0, whole._lengths)
        self._kept = np.flatnonzero(mask).astype(whole.column.dtype)
        super().__init__(whole.shape, [along[self._kept] for along in whole.coordinates], None)
        self.__dict__.update(_lengths=taken.lengths)

    @property
    def position(self) -> Array:  # type: ignore[override]
        """Return the number of each nonzero among all nonzeros."""
        return self._kept
