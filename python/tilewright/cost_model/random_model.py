"""A cost model with random scores, as a baseline."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright._core import CostModel
from tilewright.cost_model.features_of import candidates_in
from tilewright.errors import ResourceError
from tilewright.support import limits
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["RandomModel"]


class RandomModel(CostModel):
    """Cost model with random scores from 0 to ``max_range``.

    Args:
        seed: seed of the random stream; None takes one from the system.
        path: a file that :meth:`save` wrote, to continue from.
        max_range: the greatest score.
    """

    @suggests_keywords
    def __init__(self, *, seed: int | None = None, path: str | None = None, max_range: int = 100) -> None:
        super().__init__()
        if seed is not None:
            limits.seed(seed, most=2**32 - 1)
        limits.kind("path", path, str | os.PathLike | None, "a path, or None")
        limits.kind("max_range", max_range, numbers.Real, "a number")
        self.max_range = max_range
        self._random = np.random.RandomState(seed)
        if path is not None:
            self.load(path)

    @property
    def random_state(self) -> Any:
        """Return the state of the random stream; the property can be set to an earlier state."""
        return self._random.get_state()

    @random_state.setter
    def random_state(self, state: Any) -> None:
        self._random.set_state(state)

    def load(self, path: str) -> None:
        """Continue from the state in a file of :meth:`save`."""
        try:
            with open(path, "rb") as file:
                state = np.load(file, allow_pickle=False)
            self._random.set_state(("MT19937", state[:-1].astype("uint32"), int(state[-1]), 0, 0.0))
        except (EOFError, ValueError, TypeError, IndexError) as error:
            raise ResourceError.of(
                "cost_model/file", f"'{path}' is not a saved random model: {error}", "give a file of save()"
            ) from error

    def save(self, path: str) -> None:
        """Write the state of the random stream."""
        state: Any = self._random.get_state()
        with open(path, "wb") as file:
            np.save(file, np.append(state[1].astype("int64"), state[2]))

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Ignore the measurements."""

    def predict(self, context: Any, candidates: Sequence[Any]) -> NDArray[np.float64]:
        """Return a random score for each candidate."""
        return self._random.rand(len(candidates_in(candidates))) * self.max_range
