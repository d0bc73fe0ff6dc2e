"""Feature extractors: numbers that describe candidates, for cost models.

A subclass gives one matrix for each candidate, of as many rows as it likes::

    class Sizes(FeatureExtractor):
        def extract_from(self, context, candidates):
            return [np.array([[len(c.sch.trace.insts)]], "float64") for c in candidates]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright._core import FeatureExtractor, PerStoreFeature
from tilewright.support import limits

__all__ = [
    "FeatureExtractor",
    "PerStoreFeature",
    "PyFeatureExtractor",
    "RandomFeatureExtractor",
    "create",
]

PyFeatureExtractor = FeatureExtractor


class RandomFeatureExtractor(FeatureExtractor):
    """Random matrices: for tests of what uses features.

    Args:
        feature_size: columns.
        max_block_num: rows are 1 to this number.
        seed: seed of the random stream, whose state is ``random_state``.
    """

    def __init__(self, *, feature_size: int = 30, max_block_num: int = 5, seed: int = 0) -> None:
        super().__init__()
        self.feature_size = feature_size
        self.max_block_num = max_block_num
        self._random = np.random.RandomState(seed)

    @property
    def random_state(self) -> Any:
        """Return the state of the random stream; the property can be set to an earlier state."""
        return self._random.get_state()

    @random_state.setter
    def random_state(self, state: Any) -> None:
        self._random.set_state(state)

    def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[NDArray[np.float64]]:
        """Return a random matrix for each candidate."""
        count = len(limits.items("candidates", candidates, "candidates"))
        rows = [int(self._random.randint(1, self.max_block_num + 1)) for _ in range(count)]
        return [self._random.rand(count, self.feature_size) for count in rows]


def create(kind: str, *args: Any, **kwargs: Any) -> FeatureExtractor:
    """Return an extractor by name: "per-store-feature"."""
    made = limits.of_kind("feature extractor", kind, {"per-store-feature": PerStoreFeature}, "features/kind")
    return made(*args, **kwargs)
