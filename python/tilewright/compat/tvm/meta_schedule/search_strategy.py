"""tvm.meta_schedule.search_strategy."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed
from tilewright.compat.tvm.meta_schedule.delegation import call_derived, delegates_to, delegating_class, initialize
from tilewright.meta_schedule.search_strategy import MeasureCandidate, ReplayFunc, ReplayTrace

__all__ = [
    "EvolutionarySearch",
    "MeasureCandidate",
    "PySearchStrategy",
    "ReplayFunc",
    "ReplayTrace",
    "SearchStrategy",
    "create",
]


class EvolutionarySearch(_core.EvolutionarySearch):
    """Evolution of traces, and what TVM's tests ask of it."""

    _initialize_with_tune_context = initialize

    def __init__(
        self,
        *,
        population_size: int = 512,
        init_measured_ratio: float = 0.2,
        init_min_unmeasured: int = 50,
        max_fail_count: int = 5,
        genetic_num_iters: int = 4,
        genetic_mutate_prob: float = 0.85,
        genetic_max_fail_count: int = 10,
        eps_greedy: float = 0.05,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(**given)
        vars(self).update(given)

    def _sample_init_population(self, num: int) -> list[Any]:
        return self.sample_init_population(num)

    def _evolve_with_cost_model(self, population: Any, num: int) -> list[Any]:
        return self.evolve_with_cost_model(population, num)


#: The strategies that TVM has, by their names.
STRATEGIES: dict[Any, Any] = {
    "evolutionary": EvolutionarySearch,
    "replay-trace": ReplayTrace,
    "replay-func": ReplayFunc,
}


def create(kind: str = "evolutionary", *args: Any, **kwargs: Any) -> _core.SearchStrategy:
    """Return a strategy by name."""
    if kind not in STRATEGIES:
        raise ValueError(f"Unknown strategy: {kind}")
    strategy: _core.SearchStrategy = STRATEGIES[kind](*args, **kwargs)
    return strategy


class SearchStrategy(metaclass=Renamed):
    """A strategy."""

    node = _core.SearchStrategy
    make = _core.SearchStrategy
    create = staticmethod(create)
    SearchStrategyType = Any


_DELEGATED = (
    "_initialize_with_tune_context",
    "generate_measure_candidates",
    "notify_runner_results",
    "post_tuning",
    "clone",
)


class _PySearchStrategy(delegating_class(_core.SearchStrategy, *_DELEGATED)):  # type: ignore[misc]
    """The component behind a PySearchStrategy."""

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Any,
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        call_derived(self, "pre_tuning", max_trials, num_trials_per_iter, design_spaces, database, cost_model)


@delegates_to(_PySearchStrategy)
class PySearchStrategy:
    """The base of strategies in Python, to be decorated with derived_object."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        raise NotImplementedError

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Any,
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        """Start a search."""
        raise NotImplementedError

    def post_tuning(self) -> None:
        """End the search."""
        raise NotImplementedError

    def generate_measure_candidates(self) -> Any:
        """Return the next batch; None if the search has ended."""
        raise NotImplementedError

    def notify_runner_results(self, measure_candidates: Any, results: Any) -> None:
        """Receive the results of measurements."""
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a copy of the strategy."""
        raise NotImplementedError
