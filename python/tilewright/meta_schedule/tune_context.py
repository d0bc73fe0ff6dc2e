"""One task of a search."""

from __future__ import annotations

import logging
import numbers
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright import _core, ir
from tilewright.cost_model.features_of import results_for
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.space_generator import ScheduleFn, SpaceGenerator, SpaceGeneratorUnion
from tilewright.search.spaces import SPACES, design_spaces
from tilewright.support import limits
from tilewright.support.wrong_arguments import explained
from tilewright.task.task import with_public_name

if TYPE_CHECKING:
    from tilewright.meta_schedule.search_strategy import SearchStrategy

__all__ = ["SessionTask", "TuneContext", "normalize_module"]

_SPACES: dict[str, Callable[[], SpaceGenerator]] = {
    **SPACES,
    "union": lambda: SpaceGeneratorUnion([]),
}


def normalize_module(program: ir.PrimFunc | ir.IRModule) -> ir.IRModule:
    """Return the program in the form that a search tunes: a module whose only function is called "main"; buffers do not
    overlap.

    Args:
        program: a function or a module.
    """
    if isinstance(program, ir.IRModule):
        functions = dict(program.functions.items())
        if len(functions) != 1:
            return program
        ((name, function),) = functions.items()
        if not isinstance(function, ir.PrimFunc) or name == "main":
            return program
        return ir.IRModule({"main": with_public_name(function)})
    return ir.IRModule({"main": with_public_name(program).with_attr("tir.noalias", True)})


def _threads(number: int | str) -> int:
    if isinstance(number, str):
        kinds = {"physical": "cores", "logical": "processors"}
        if number not in kinds:
            raise ArgumentError.of(
                "tune-context/num-threads",
                f"num_threads is {number!r}",
                'it is a number, "physical" (cores) or "logical" (processors)',
            )
        return max(1, int(_core.host_cpu()[kinds[number]]))
    limits.kind("num_threads", number, numbers.Integral, 'a number, "physical" or "logical"')
    if number < 1:
        raise ArgumentError.of("tune-context/num-threads", f"num_threads is {number}; there is at least 1")
    return int(number)


def _space(space: Any) -> SpaceGenerator | None:
    if isinstance(space, str):
        return limits.of_kind("space", space, _SPACES, "tune-context/space")()
    if space is not None and not isinstance(space, SpaceGenerator) and callable(space):
        return ScheduleFn(space)
    return space  # type: ignore[no-any-return]


class TuneContext(_core.TuneContext):
    """One task of a search: a program, a target, and the components that work on it.

    Args:
        mod: the program; a function becomes the "main" of a module.
        target: target of the program.
        space_generator: space of schedules: an object, a function of a schedule, "post-order-apply", "cpu-rules" or
            "union".
        search_strategy: strategy: an object, "evolutionary", "replay-trace" or "replay-func".
        task_name: name of the task in logs.
        rand_state: seed of everything that is sampled; -1 for a random one.
        num_threads: number of threads that sample candidates: an integer, "physical" or "logical".
        logger: logger for messages of the search.
    """

    @explained
    def __init__(
        self,
        mod: ir.PrimFunc | ir.IRModule | None = None,
        *,
        target: Any = None,
        space_generator: Any = None,
        search_strategy: Any = None,
        task_name: str = "main",
        rand_state: int = -1,
        num_threads: int | str = "physical",
        logger: logging.Logger | None = None,
    ) -> None:
        import tilewright.tensor_intrin  # noqa: F401  (rules name what this registers)

        super().__init__()
        self.mod = None if mod is None else normalize_module(mod)
        self.target = _core.Target(target) if isinstance(target, str | dict) else target
        self.space_generator = _space(space_generator)
        if isinstance(search_strategy, str):
            search_strategy = _core.SearchStrategy.create(search_strategy)
        self.search_strategy = search_strategy
        self.task_name = task_name
        self.seed = 1 + secrets.randbelow(2**31 - 2) if rand_state == -1 else rand_state
        self.num_threads = _threads(num_threads)
        self.logger = logger or logging.getLogger("tilewright.meta_schedule")
        self.initialize()

    def _generator(self) -> SpaceGenerator:
        if self.space_generator is None:
            raise ArgumentError.of("tune-context/space", "space_generator is not provided", "pass one to TuneContext")
        return self.space_generator

    def _strategy(self) -> SearchStrategy:
        if self.search_strategy is None:
            raise ArgumentError.of(
                "tune-context/strategy", "search_strategy is not provided", "pass one to TuneContext"
            )
        return self.search_strategy

    def _module(self) -> ir.IRModule:
        if self.mod is None:
            raise ArgumentError.of("tune-context/module", "mod is not provided", "pass a program to TuneContext")
        return self.mod

    def generate_design_space(self) -> list[_core.Schedule]:
        """Return the schedules of the program, one for each alternative of the space."""
        return design_spaces(self._generator(), self._module())

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int = 64,
        design_spaces: Sequence[_core.Schedule] | None = None,
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        """Start a search.

        Args:
            max_trials: maximum number of measured candidates.
            num_trials_per_iter: number of candidates in a batch.
            design_spaces: schedules to sample from; by default those of the space generator.
            database: database of measurements; by default one in memory if the strategy needs one.
            cost_model: cost model that ranks candidates; by default a random one if the strategy needs one.
        """
        strategy = self._strategy()
        if design_spaces is None:
            design_spaces = self.generate_design_space()
        spaces = limits.items("design_spaces", design_spaces, "schedules")
        strategy.pre_tuning(max_trials, num_trials_per_iter, spaces, database, cost_model)

    def generate_measure_candidates(self) -> list[_core.MeasureCandidate] | None:
        """Return the next batch; None if the search is over."""
        return self._strategy().generate_measure_candidates()

    @explained
    def notify_runner_results(self, measure_candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Pass results of measurements to the strategy.

        Args:
            measure_candidates: the measured candidates.
            results: a result for each, with `run_secs` and `error_msg`.
        """
        candidates = limits.items("measure_candidates", measure_candidates, "MeasureCandidates")
        checked = results_for(results, len(candidates))
        self._strategy().notify_runner_results(candidates, checked)

    def post_tuning(self) -> None:
        """End the search."""
        self._strategy().post_tuning()

    def clone(self) -> TuneContext:
        """Return a copy of this task with its own components, and another random stream."""
        generator = None if self.space_generator is None else self.space_generator.clone()
        strategy = None if self.search_strategy is None else self.search_strategy.clone()
        return TuneContext(
            self.mod,
            target=self.target,
            space_generator=generator,
            search_strategy=strategy,
            task_name=self.task_name,
            rand_state=(self.seed * 48271 + 1) % (2**31 - 1) + 1,
            num_threads=self.num_threads,
            logger=self.logger,
        )


class SessionTask(TuneContext):
    """One task of several: an error while initializing its parts fails this task when it begins, not the other tasks.

    Attributes:
        failure: the exception of the initialization.
        failing: the part that failed, or would.
    """

    failure: Exception | None = None
    failing = "its space"

    def initialize(self) -> None:
        """Initialize the space generator, then the strategy; store an exception instead of raising it."""
        try:
            if self.space_generator is not None:
                self.space_generator.initialize(self)
            self.failing = "its strategy"
            if self.search_strategy is not None:
                self.search_strategy.initialize(self)
            self.failing = "its space"
        except Exception as error:
            self.failure = error

    def generate_design_space(self) -> list[_core.Schedule]:
        """Return the schedules of the program; raise the exception of the initialization, if any."""
        if self.failure is not None:
            raise self.failure
        return super().generate_design_space()
