"""Search strategies: choose the candidates to measure, and their order."""

from __future__ import annotations

from tilewright._core import EvolutionarySearch, MeasureCandidate, ReplayFunc, ReplayTrace, SearchStrategy

__all__ = [
    "EvolutionarySearch",
    "MeasureCandidate",
    "PySearchStrategy",
    "ReplayFunc",
    "ReplayTrace",
    "SearchStrategy",
]

PySearchStrategy = SearchStrategy
create = SearchStrategy.create
