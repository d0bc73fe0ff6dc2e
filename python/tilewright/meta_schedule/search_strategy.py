"""Strategies: which candidates are measured, and in which order."""

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
