"""What happens with each batch that was measured."""

from __future__ import annotations

import logging
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.database.origins import Origin
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.builder import BuilderResult, remove_build_dir
from tilewright.meta_schedule.profiler import Profiler
from tilewright.meta_schedule.runner.runner import RunnerResult
from tilewright.support import limits
from tilewright.support.user_lines import last_raise, said_of

if TYPE_CHECKING:
    from tilewright.meta_schedule.task_session import TaskScheduler

__all__ = ["AddToDatabase", "MeasureCallback", "PyMeasureCallback", "RemoveBuildArtifact", "UpdateCostModel"]

#: seconds that stand for a measurement that failed
FAILED = 1e10


class MeasureCallback(ABC):
    """Is called for each batch, after its results are there."""

    @abstractmethod
    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """One batch of a task; the three lists have the same length."""

    @staticmethod
    def create(kind: Any = "default") -> list[MeasureCallback]:
        """The callbacks of that kind: "default" (all three), "add-to-database", "remove-build-artifact",
        "update-cost-model"; callbacks as they are; several in a list.

        Raises:
            tilewright.ArgumentError: there is no such kind, or it is no callback.
        """
        kinds: dict[str, type[AddToDatabase] | type[RemoveBuildArtifact] | type[UpdateCostModel]] = {
            "add-to-database": AddToDatabase,
            "remove-build-artifact": RemoveBuildArtifact,
            "update-cost-model": UpdateCostModel,
        }
        if isinstance(kind, str) and kind == "default":
            return [make() for make in kinds.values()]
        if isinstance(kind, str):
            return [limits.of_kind("measure callback", kind, kinds, "callback/kind")()]
        if isinstance(kind, list | tuple):
            return [callback for each in kind for callback in MeasureCallback.create(each)]
        if isinstance(kind, type) or not callable(getattr(kind, "apply", None)):
            what = f"the class {kind.__name__}" if isinstance(kind, type) else f"{kind!r:.80}"
            raise ArgumentError.of(
                "callback/kind",
                f"measure_callbacks holds {what}, which is not a measure callback",
                "an object of a subclass of MeasureCallback, which defines apply(self, task_scheduler, task_id, "
                "measure_candidates, builder_results, runner_results); [] for none",
            )
        return [kind]


PyMeasureCallback = MeasureCallback


class AddToDatabase(MeasureCallback):
    """Keeps what was measured, failures too."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Commits one record for each candidate."""
        from tilewright.meta_schedule.database.tuning_record import TuningRecord, workload_in

        database = task_scheduler.database
        if database is None:
            return
        context = task_scheduler.tasks[task_id].ctx
        workload = workload_in(database, context.mod)
        for candidate, built, result in zip(measure_candidates, builder_results, runner_results, strict=True):
            failed = built.error_msg is not None or result.error_msg is not None or not result.run_secs
            record = TuningRecord(
                trace=candidate.sch.trace,
                workload=workload,
                run_secs=[FAILED] if failed else result.run_secs,
                target=context.target,
                args_info=candidate.args_info,
                error=built.error_msg or result.error_msg or "",
                origin=getattr(result, "origin", Origin()),
            )
            database.commit_tuning_record(record)


class RemoveBuildArtifact(MeasureCallback):
    """Removes the files that the builder made."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Those of this batch."""
        for built in builder_results:
            if built.artifact_path is not None:
                remove_build_dir(built.artifact_path)


class UpdateCostModel(MeasureCallback):
    """Lets the cost model learn. What was not built, and times that cannot be, teach nothing. A model that raises is
    reported once, and the session goes on without it."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Passes on candidates and results."""
        model = task_scheduler.cost_model
        context = task_scheduler.tasks[task_id].ctx
        if model is None or context is None:
            return
        kept = [
            (candidate, result)
            for candidate, built, result in zip(measure_candidates, builder_results, runner_results, strict=True)
            if built.error_msg is None and _teaches(result)
        ]
        if not kept:
            return
        try:
            model.update(context, [candidate for candidate, _ in kept], [result for _, result in kept])
        except Exception:
            task_scheduler.go_on_without_model()


def _teaches(result: RunnerResult) -> bool:
    return result.error_msg is not None or (bool(result.run_secs) and min(result.run_secs or [0]) > 0)


def apply_all(
    callbacks: Sequence[MeasureCallback],
    task_scheduler: TaskScheduler,
    task_id: int,
    measured: tuple[Sequence[Any], Sequence[BuilderResult], Sequence[RunnerResult]],
    logger: logging.Logger,
    raised_before: Counter[tuple[int, str]] | None = None,
) -> int:
    """Calls each; one that raises does not keep the others from their turn, and is logged.

    Args:
        callbacks: what is called.
        task_scheduler: of the session.
        task_id: of the task that the batch is of.
        measured: candidates, what was built of them, and results.
        logger: gets the first exception of each class that a callback raises.
        raised_before: how often each has, by its identity and the class; gets what is raised now.

    Returns:
        How many have raised.
    """
    raised = 0
    seen = Counter() if raised_before is None else raised_before
    for callback in callbacks:
        with Profiler.timeit(f"MeasureCallback/{type(callback).__name__}"):
            try:
                callback.apply(task_scheduler, task_id, *measured)
            except Exception as error:
                last_raise(error)
                raised += 1
                key = (id(callback), type(error).__name__)
                seen[key] += 1
                if seen[key] == 1:
                    logger.error("the callback %s raised %s", type(callback).__name__, said_of(error))
                logger.debug("%s raised\n%s", type(callback).__name__, traceback.format_exc())
    return raised


def report_counts(
    raised: Counter[tuple[int, str]], callbacks: Sequence[MeasureCallback], logger: logging.Logger
) -> None:
    """At the end of a session: how often each callback has raised, where that was more than once."""
    names = {id(callback): type(callback).__name__ for callback in callbacks}
    for (callback, error), count in raised.items():
        if count > 1:
            logger.error("the callback %s raised %s after %d batches", names[callback], error, count)
