"""Callbacks for each measured batch."""

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
from tilewright.support.user_lines import error_text, last_raise

if TYPE_CHECKING:
    from tilewright.meta_schedule.task_session import TaskScheduler

__all__ = ["AddToDatabase", "MeasureCallback", "PyMeasureCallback", "RemoveBuildArtifact", "UpdateCostModel"]

#: run_secs of a failed measurement
FAILED = 1e10


class MeasureCallback(ABC):
    """Callback for each batch, called with its results."""

    @abstractmethod
    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Process one batch of a task; the three lists have the same length."""

    @staticmethod
    def create(kind: Any = "default") -> list[MeasureCallback]:
        """Return the callbacks of a kind: "default" (all three), "add-to-database", "remove-build-artifact",
        "update-cost-model". Callbacks are returned unchanged; a list may have several kinds.

        Raises:
            tilewright.ArgumentError: the kind does not exist, or the value is not a callback.
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
    """Commits records of measurements, including failures, to the database."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Commit one record for each candidate."""
        from tilewright.meta_schedule.database.tuning_record import TuningRecord, trace_in, workload_in

        database = task_scheduler.database
        if database is None:
            return
        context = task_scheduler.tasks[task_id].ctx
        workload = workload_in(database, context.mod)
        for candidate, built, result in zip(measure_candidates, builder_results, runner_results, strict=True):
            failed = built.error_msg is not None or result.error_msg is not None or not result.run_secs
            record = TuningRecord(
                trace=trace_in(workload, context.mod, candidate.sch.trace),
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
        """Remove the files of this batch."""
        for built in builder_results:
            if built.artifact_path is not None:
                remove_build_dir(built.artifact_path)


class UpdateCostModel(MeasureCallback):
    """Updates the cost model. Candidates without a build and invalid times are ignored. A failing model is reported
    once, and the session continues without it."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[Any],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Pass candidates and results on."""
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
    """Call all callbacks; an error of one is logged and does not affect the others.

    Args:
        callbacks: the callbacks.
        task_scheduler: scheduler of the session.
        task_id: number of the batch's task.
        measured: candidates, builder results and runner results.
        logger: logger for the first exception of each class that a callback raises.
        raised_before: number of earlier exceptions by the identity of the callback and the class; updated.

    Returns:
        The number of callbacks that raised an exception.
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
                    logger.error("the callback %s raised %s", type(callback).__name__, error_text(error))
                logger.debug("%s raised\n%s", type(callback).__name__, traceback.format_exc())
    return raised


def report_counts(
    raised: Counter[tuple[int, str]], callbacks: Sequence[MeasureCallback], logger: logging.Logger
) -> None:
    """Log at the end of a session how often each callback raised an exception, if more than once."""
    names = {id(callback): type(callback).__name__ for callback in callbacks}
    for (callback, error), count in raised.items():
        if count > 1:
            logger.error("the callback %s raised %s after %d batches", names[callback], error, count)
