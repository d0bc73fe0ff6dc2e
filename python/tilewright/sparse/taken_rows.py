"""Evaluates the conditions of rules that select whole rows of a matrix, such as those of the buckets of hyb, per row.

The rows that a rule selects are then converted without visiting other nonzeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.sparse.by_nonzeros import AllNonzeros, always_holds
from tilewright.sparse.format_rule import FACTS_OF_NONZEROS, FormatRewriteRule, Nonzeros, unknown_fact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class _NotOfRows(Exception):
    """Raised if a condition uses more than a row and its length."""


class _RowFacts:
    """Properties that all nonzeros of a row share, as arrays over rows."""

    def __init__(self, shape: Sequence[int], lengths: Array) -> None:
        self.shape, self.length = tuple(shape), lengths

    @functools.cached_property
    def row(self) -> Array:
        """Return the number of each row."""
        return np.arange(len(self.length))

    @functools.cached_property
    def longest(self) -> int:
        """Return the largest length, at least 1."""
        return max(1, int(self.length.max(initial=0)))

    def __getattr__(self, name: str) -> Any:
        raise _NotOfRows(name) if name in FACTS_OF_NONZEROS else unknown_fact(name, "nonzeros", FACTS_OF_NONZEROS)


def rows_of_rules(rules: Sequence[FormatRewriteRule], nonzeros: AllNonzeros) -> list[Array] | None:
    """Return for each rule how many nonzeros of each row it selects: all of them, or none.

    Returns:
        None if a condition distinguishes nonzeros of one row, or if the rules do not partition the rows.
    """
    lengths = nonzeros._lengths
    if len(rules) == 1 and not rules[0].conditions:
        return [lengths]
    always: dict[int, bool] = {}
    taken: list[Array] = []
    times = np.zeros(len(lengths), np.uint8)
    if len(rules) > np.iinfo(times.dtype).max:
        return None
    for rule in rules:
        own = lengths
        for condition in rule.conditions:
            holds = _holds(condition, nonzeros, own, always)
            if holds is None:
                return None
            own = np.where(holds, own, 0)
        times += own > 0
        taken.append(own)
    return taken if np.array_equal(times, lengths > 0) else None


def _holds(
    condition: Callable[[Nonzeros], Any], nonzeros: AllNonzeros, lengths: Array, always: dict[int, bool]
) -> Any | None:
    """For which rows a condition holds; None where it is about nonzeros.

    Args:
        condition: condition of a rule.
        nonzeros: all of them.
        lengths: number of nonzeros of each row that earlier conditions have left.
        always: conditions that are proved to hold for all nonzeros, or not, by their identity.
    """
    try:
        holds = condition(_RowFacts(nonzeros.shape, lengths))  # type: ignore[arg-type]
    except Exception:  # a condition about nonzeros, or one that fails for these, too
        if id(condition) not in always:
            always[id(condition)] = always_holds(condition, nonzeros)
        return True if always[id(condition)] else None
    if holds is True:
        return True
    return holds if np.shape(holds) == np.shape(lengths) and np.asarray(holds).dtype == bool else None


class TakenNonzeros(AllNonzeros):
    """The nonzeros of selected rows of a matrix, with their positions and places among all nonzeros."""

    def __init__(self, whole: AllNonzeros, lengths: Array) -> None:
        mask = np.repeat(lengths > 0, whole._lengths)
        self._kept = np.flatnonzero(mask).astype(whole.column.dtype)
        super().__init__(whole.shape, [along[self._kept] for along in whole.coordinates], None)
        self.__dict__.update(_lengths=lengths, _begins=whole._begins)

    @property
    def position(self) -> Array:  # type: ignore[override]
        """Return the number of each nonzero among all nonzeros."""
        return self._kept
