"""The arguments of one search."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.schedule import Schedule
from tilewright.search.result import Progress
from tilewright.search.spaces import Space

if TYPE_CHECKING:
    from tilewright.cluster.connection import Cluster

__all__ = ["SearchRequest"]


@dataclasses.dataclass(frozen=True)
class SearchRequest:
    """The checked arguments of one call of :func:`tilewright.tune`.

    Attributes:
        database: database of the call, as given or open.
        model_name: the name of `cost_model`, where it was given by name; else "".
        cluster: where candidates are built and measured; None for this machine.
        among_others: how many searches run at the same time; 0 for this one alone.
    """

    space: Space | _core.SpaceGenerator | Callable[[Schedule], object] | str | None
    inputs: Mapping[str, Any]
    sizes: Mapping[str, float]
    cold: bool
    threads: int
    target: str
    trials: int = 64
    seconds: float | None = None
    patience: int | None = None
    target_seconds: float | None = None
    seed: int = 0
    strategy: _core.SearchStrategy | str = "guided"
    batch: int | None = None
    fresh: bool = False
    database: Any = None
    cost_model: _core.CostModel | None = None
    model_name: str = ""
    progress: Callable[[Progress], None] | str | None = None
    cluster: Cluster | None = None
    among_others: int = 0
