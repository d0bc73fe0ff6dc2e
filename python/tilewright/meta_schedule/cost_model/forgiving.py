"""Cost models that a session can do without."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright._core import CostModel
from tilewright.errors import ArgumentError
from tilewright.user_lines import place_of

_LOGGER = logging.getLogger("tilewright.meta_schedule")


class ForgivingModel(CostModel):
    """Ranks as a model does until that fails: then this is said, once, and all candidates are alike.

    Args:
        model: the one that is asked.
    """

    def __init__(self, model: CostModel) -> None:
        super().__init__()
        self.model, self.failed = model, False

    def load(self, path: str) -> None:
        """What the model saved."""
        self.model.load(path)

    def save(self, path: str) -> None:
        """What the model has learned."""
        self.model.save(path)

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """The model learns."""
        self.model.update(context, candidates, results)

    def predict(self, context: Any, candidates: Sequence[Any]) -> Any:
        """What the model says; zeros after it has failed."""
        if not self.failed:
            try:
                scores = np.asarray(self.model.predict(context, candidates), "float64")
                if scores.shape == (len(candidates),):
                    return scores
                raise ArgumentError.of(
                    "search/scores",
                    f"the cost model gave {scores.size} scores for {len(candidates)} candidates",
                    "predict() returns one number for each candidate",
                )
            except Exception as error:
                self.failed = True
                said = "\n".join(part for part in (f"{type(error).__name__}: {error}", place_of(error)) if part)
                _LOGGER.error("the session goes on without its cost model, which failed: %s", said)
        return np.zeros(len(candidates))


def forgiving(model: Any) -> Any:
    """The same; of a model whose predict() is written in Python, one that does not end the session when that fails."""
    is_python = isinstance(model, CostModel) and inspect.isfunction(type(model).predict)
    return ForgivingModel(model) if is_python else model
