"""Evaluates the conditions of rules that select whole rows of a matrix, such as those of the buckets of hyb, per row.

The rows that a rule selects are then converted without visiting other nonzeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.sparse.by_nonzeros import AllNonzeros, always_holds
from tilewright.sparse.format_rule import FACTS_OF_NONZEROS, FormatRewriteRule, unknown_fact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class _NotOfRows(Exception):
    """Raised if a condition uses more than a row and its length."""


class _RowFacts:
    """Properties that all nonzeros of a row share, as arrays over rows."""

    def __init__(self, shape: Sequence[int], lengths: Array) -> None:
        self.shape, self.length = tuple(shape), lengths
        self.row = np.arange(len(lengths))
        self.longest = max(1, int(lengths.max(initial=0)))

    def __getattr__(self, name: str) -> Any:
        raise _NotOfRows(name) if name in FACTS_OF_NONZEROS else unknown_fact(name, "nonzeros", FACTS_OF_NONZEROS)


def rows_of_rules(rules: Sequence[FormatRewriteRule], nonzeros: AllNonzeros) -> list[Array] | None:
    """Return for each rule how many nonzeros of each row it selects: all of them, or none.

    Returns:
        None if a condition distinguishes nonzeros of one row, or if the rules do not partition the rows.
    """
    lengths = nonzeros._lengths
    taken: list[Array] = []
    for rule in rules:
        own = lengths
        for condition in rule.conditions:
            if always_holds(condition, nonzeros):
                continue
            try:
                holds = condition(_RowFacts(nonzeros.shape, own))  # type: ignore[arg-type]
            except Exception:  # a condition about nonzeros, or one that fails for these, too
                return None
            if np.shape(holds) != np.shape(own) or np.asarray(holds).dtype != bool:
                return None
            own = np.where(holds, own, 0)
        taken.append(own)
    return taken if np.array_equal(np.sum(taken, axis=0), lengths) else None


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
