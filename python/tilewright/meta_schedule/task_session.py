"""The driver of a search over many tasks: it calls tasks, builders, runners and callbacks in TVM's order.

The other driver is ``_core.TuningSession``, which ``search/session.py`` prepares for ``tw.tune``. What both decide is
decided in ``src/search/session/task_progress.h``; ``src/search/README.md`` lists what they share.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import statistics
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from tilewright import _core, ir
from tilewright.errors import ArgumentError, ResourceError
from tilewright.meta_schedule import answers
from tilewright.meta_schedule.arg_info import as_arg_info
from tilewright.meta_schedule.builder import Builder, BuilderInput, BuilderResult
from tilewright.meta_schedule.database.database import Database
from tilewright.meta_schedule.measure_callback import AddToDatabase, MeasureCallback, apply_all, report_counts
from tilewright.meta_schedule.measuring_pipeline import MeasuringPipeline
from tilewright.meta_schedule.profiler import Profiler
from tilewright.meta_schedule.runner.runner import Runner, RunnerFuture, RunnerInput, RunnerResult
from tilewright.meta_schedule.session_journal import ReportedRecords, SessionJournal
from tilewright.meta_schedule.stops import Stops
from tilewright.search.interrupts import Interrupts
from tilewright.support.user_lines import error_text, last_raise
from tilewright.tables import Table
from tilewright.task.task import open_sizes_of

__all__ = ["FAILED_MS", "TaskRecord", "TaskScheduler"]

#: latency in milliseconds of a failed trial
FAILED_MS = 1e9
_LOGGER = logging.getLogger("tilewright.meta_schedule")
#: fraction of a batch that is reported before the next batch is sampled, which is built while the rest is measured
_REPORTED_AHEAD = 0.75
Answer = TypeVar("Answer")
#: candidates with their builder results and runner futures
Batch = tuple[list[Any], list[BuilderResult], list[RunnerFuture]]


@dataclass(eq=False)
class TaskRecord:
    """A task of a session, and its progress.

    Attributes:
        ctx: the task.
        task_weight: how often the whole program runs the task's program.
        flop: operations of one call; at least 1.
        is_terminated: whether the task has ended.
        stop_reason: "trials", "exhausted" (its strategy has no candidates left), "failed", "target", "roofline",
            "patience", or how the session ended: "seconds", "canceled"; "" before the end.
        build_error_count: number of trials that were not built.
        run_error_count: number of trials that were built and not measured.
        latency_ms: milliseconds of each trial; 1e9 for failures.
        measure_candidates: the current batch, or None.
        builder_results: results of the current batch.
        runner_futures: pending results of the current batch.
    """

    ctx: Any
    task_weight: float = 1.0
    flop: float = 1.0
    is_terminated: bool = False
    stop_reason: str = ""
    build_error_count: int = 0
    run_error_count: int = 0
    latency_ms: list[float] = field(default_factory=list)
    measure_candidates: list[Any] | None = None
    builder_results: list[BuilderResult] | None = None
    runner_futures: list[RunnerFuture] | None = None

    @property
    def best_ms(self) -> float:
        """Return the milliseconds of the best trial; 1e9 if there is none."""
        return min(self.latency_ms, default=FAILED_MS)


@dataclass
class _Session:
    """State of one call of :meth:`TaskScheduler.tune`, for all tasks.

    Attributes:
        builder: the caller's builder, or the pipeline that replaces builder and runner.
        runner: the caller's runner, or the pipeline.
        max_trials: maximum number of trials of all tasks.
        end: time by ``time.monotonic()`` after which no batch begins; infinity without a limit.
        sent: number of candidates started so far.
        is_ending: whether sampling has ended.
    """

    builder: Builder
    runner: Runner
    max_trials: int
    end: float
    sent: int = 0
    is_ending: bool = False

    @property
    def is_late(self) -> bool:
        """Return whether the time of the session is over."""
        return time.monotonic() >= self.end


def operations_of(mod: ir.IRModule) -> float:
    """Return the operations of one call of each function; at least 1, which also means unknown."""
    total = 0.0
    for function in mod.functions.values():
        if isinstance(function, ir.PrimFunc):
            work = _core.analyze_work(function)
            total += work["flops"] or work["int_ops"]
    return max(1.0, total)


class TaskScheduler(ABC):
    """Assigns each batch of trials to a task, and has the batch built, measured and reported.

    A session is one call of :meth:`tune`. An error of a candidate makes one trial fail. If a task's space or strategy
    fails, the task ends, and the others continue. Ctrl-C ends the session; measurements are kept.

    Attributes:
        tasks: tasks of the session.
        database: database for records, or None.
        cost_model: cost model of the session; None after a failure.
        measure_callbacks: callbacks for each batch.
        remaining_tasks: number of tasks that have not ended.
        stop_reason: "trials", "seconds", "finished" (all tasks have ended by themselves, for their own `stop_reason`)
            or "canceled".
    """

    tasks: list[TaskRecord]
    database: Database | None
    cost_model: Any
    measure_callbacks: list[MeasureCallback]
    remaining_tasks: int
    stop_reason: str
    create: ClassVar[Callable[..., TaskScheduler]]  #: see ``task_scheduler.py``

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.tasks, self.measure_callbacks = [], []
        self.database = self.cost_model = None
        self.remaining_tasks, self.stop_reason = 0, ""
        self._interrupts = Interrupts()
        self._pipeline: MeasuringPipeline | None = None
        self._ranking: Any = None  # the cost model in the form that strategies call
        self._failures: dict[int, Exception] = {}  # exceptions that ended tasks
        self._progress: list[_core.TaskProgress] = []  # progress of each task
        self._wrong_answers = answers.WrongAnswers()
        self._raised: Counter[tuple[int, str]] = Counter()  # batches after which a callback has raised
        self._asked: set[int] = set()  # tasks whose strategy was called for candidates
        self._begun: set[int] = set()  # tasks whose strategy must be notified of the end
        self._journals: dict[int, SessionJournal] = {}
        # The next batch of a task if sampled early; None if there are no more.
        self._ahead: dict[int, Batch | None] = {}
        self._session: _Session | None = None

    @abstractmethod
    def next_task_id(self) -> int:
        """Return the task for the next batch, which must have no running batch; -1 if all tasks have ended."""

    def tune(
        self,
        tasks: Sequence[Any],
        task_weights: Sequence[float],
        max_trials_global: int,
        max_trials_per_task: int,
        num_trials_per_iter: int,
        builder: Builder,
        runner: Runner,
        measure_callbacks: Sequence[MeasureCallback],
        database: Database | None = None,
        cost_model: Any = None,
        *,
        max_seconds: float | None = None,
        work_dir: str | os.PathLike[str] | None = None,
        stops: Stops | None = None,
    ) -> None:
        """Run one session. If no other task can be next, the next batch is sampled and built while the last quarter of
        the current one is measured.

        Args:
            tasks: the tasks, each with its space and its strategy.
            task_weights: weight of each task.
            max_trials_global: maximum number of trials of all tasks; the last batch may exceed it.
            max_trials_per_task: maximum number of trials of each task.
            num_trials_per_iter: number of candidates in a batch.
            builder: builder of the candidates.
            runner: runner of the candidates.
            measure_callbacks: callbacks for each batch, in this order.
            database: database for strategies and callbacks; it is flushed at the end, also after an error.
            cost_model: cost model that ranks candidates, or None.
            max_seconds: seconds after which no batch begins.
            work_dir: folder with the journal, by which a session with the same seeds continues with the same
                candidates, or None.
            stops: conditions that end a task before its trials are used up.

        Raises:
            tilewright.ArgumentError: the numbers of weights and tasks differ.
            Exception: the error of the first task, if every task failed and no candidate was measured.
        """
        if len(tasks) != len(task_weights):
            raise ArgumentError.of(
                "tune/weights",
                f"there are {len(tasks)} tasks and {len(task_weights)} weights",
                "give one weight for each task",
            )
        self._forget()
        self.database, self.cost_model = database, cost_model
        self.measure_callbacks = list(measure_callbacks)
        self._interrupts = interrupts = Interrupts()
        end = math.inf if max_seconds is None else time.monotonic() + max_seconds
        rules = functools.partial((stops or Stops()).of, runner=runner)
        with _kept(database), MeasuringPipeline.over(builder, runner, max_seconds) as (builder, runner):
            self._pipeline = builder if isinstance(builder, MeasuringPipeline) else None
            self._session = _Session(builder, runner, max_trials_global, end)
            try:
                with interrupts, interrupts.raised():
                    self._progress = [_core.TaskProgress(max_trials_per_task, rules(task)) for task in tasks]
                    self._begin(tasks, task_weights, max_trials_per_task, num_trials_per_iter, work_dir)
                    self.stop_reason = self._run_batches(self._session)
            except KeyboardInterrupt:  # a host program's handler may raise it, too
                interrupts.seen = True
            if interrupts.seen:
                _LOGGER.warning("interrupted; what was measured is kept")
                self.stop_reason = "canceled"
            self._finish(interrupts.seen)
            for task_id, task in enumerate(self.tasks):
                if self._pipeline is not None and (failure := self._pipeline.failure_of(task.ctx)) is not None:
                    self._failures.setdefault(task_id, failure)
            if len(self._failures) == len(self.tasks) and all(task.best_ms >= FAILED_MS for task in self.tasks):
                raise next(iter(self._failures.values()))

    def _run_batches(self, session: _Session) -> str:
        """Run one batch after the other until the session ends; return the reason of the end."""
        while session.sent < session.max_trials and not self._interrupts.seen:
            if session.is_late:
                return "seconds"
            task_id = answers.task_of(self.next_task_id(), self.tasks)
            if task_id == -1:
                return "finished"
            session.sent += self._start_batch(task_id)
        return "trials"

    def _may_sample(self, task_id: int) -> bool:
        """Return whether the next batch is certainly of this task, so that it may be sampled before the current one
        ends."""
        session, strategy = self._session, getattr(self.tasks[task_id].ctx, "search_strategy", None)
        return (
            session is not None
            and not session.is_ending
            and self._pipeline is not None
            and self.remaining_tasks == 1
            and self._progress[task_id].wants_more
            and session.sent < session.max_trials
            and not session.is_late
            and not self._interrupts.seen
            and bool(getattr(strategy, "takes_parts", False))
        )

    def _begin(
        self,
        tasks: Sequence[Any],
        weights: Sequence[float],
        trials: int,
        batch: int,
        work_dir: str | os.PathLike[str] | None,
    ) -> None:
        model = self.cost_model
        if isinstance(model, _core.CostModel):
            model = self._ranking = _core.ForgivingModel(model, self._lose_model)
        for task_id, (context, weight) in enumerate(zip(tasks, weights, strict=True)):
            record = TaskRecord(context, float(weight), operations_of(context.mod))
            self.tasks.append(record)
            self.remaining_tasks += 1
            context.logger.info("Initializing Task #%d: %r", task_id, context.task_name)
            with Profiler.timeit("InitializeTask"):
                spaces = self._try(
                    task_id, getattr(context, "failing", "its space"), functools.partial(answers.designs_of, context)
                )
                if spaces is None:
                    continue
                context.logger.info("Total %d design space(s) generated", len(spaces))
                for number, space in enumerate(spaces):
                    context.logger.debug("Design space #%d:\n%s\n%s", number, space.mod.script(), space.trace)
                database = (
                    self.database
                    if work_dir is None or not hasattr(context, "seed")
                    else self._resumed(task_id, batch, Path(work_dir))
                )
                begin = functools.partial(context.pre_tuning, trials, batch, spaces, database, model)
                self._try(task_id, "its strategy", begin)
                if not record.is_terminated:
                    self._begun.add(task_id)

    def go_on_without_model(self) -> None:
        """Report an error of the cost model once, and continue without the model; called while handling the
        exception."""
        error = sys.exception()
        reason = "it cannot be asked" if error is None else error_text(last_raise(error))
        _LOGGER.debug("%s", traceback.format_exc())
        if self._ranking is not None:
            self._ranking.give_up(reason)
        elif self.cost_model is not None:
            self._lose_model(f"the search continues without its cost model, which failed: {reason}")

    def _lose_model(self, text: str) -> None:
        self.cost_model = None
        _LOGGER.error("%s", text)

    def _resumed(self, task_id: int, batch: int, work_dir: Path) -> Database | None:
        """Load the results of an earlier session of the task. Return the database as it was when that session began."""
        context = self.tasks[task_id].ctx
        journal = SessionJournal(work_dir, context, batch, self.cost_model, self.database)
        self._journals[task_id] = journal
        if not journal.unreported_count or self.database is None:
            return self.database
        _LOGGER.info(
            "Task #%d: %r continues a session of %d trials, which are not measured again",
            task_id,
            context.task_name,
            journal.unreported_count,
        )
        return ReportedRecords(self.database, journal)

    def _try(self, task_id: int, what: str, action: Callable[[], Answer]) -> Answer | None:
        """Return the result of an action; an error ends only the task."""
        try:
            return action()
        except Exception as error:
            self._failures.setdefault(task_id, error)
            name = self.tasks[task_id].ctx.task_name
            # If every task fails, the exception itself is raised.
            _LOGGER.error("Task #%d: %r ends: %s failed: %s", task_id, name, what, error_text(error))
            _LOGGER.debug("%s", traceback.format_exc())
            self.tasks[task_id].stop_reason = "failed"
            self.terminate_task(task_id)
            return None

    def _start_batch(self, task_id: int) -> int:
        """Submit the next batch of a task; return its number of candidates."""
        task, progress = self.tasks[task_id], self._progress[task_id]
        batch = self._ahead.pop(task_id) if task_id in self._ahead else None
        if batch is None and progress.wants_more:
            batch = self._sample_batch(task_id)
        if batch is None or not (batch[0] or progress.wants_more):
            if not task.is_terminated:
                task.stop_reason = progress.end_reason
                self.terminate_task(task_id)
            return 0
        task.measure_candidates, task.builder_results, task.runner_futures = batch
        return len(batch[0])

    def _sample_batch(self, task_id: int) -> Batch | None:
        """Sample the next candidates of a task and submit them to builder and runner. Return None if there are none, or
        the task has failed."""
        assert self._session is not None
        builder, runner, task = self._session.builder, self._session.runner, self.tasks[task_id]
        self._asked.add(task_id)
        strategy = getattr(task.ctx, "search_strategy", None)
        before = _scopes_of(strategy)
        with Profiler.timeit("GenerateCandidates"):
            candidates = self._try(
                task_id, "its strategy", lambda: answers.candidates_of(task.ctx.generate_measure_candidates())
            )
        if (profiler := Profiler.current()) is not None:
            for scope, seconds in _scopes_of(strategy).items():
                profiler.add(scope, seconds - before.get(scope, 0.0))
        progress = self._progress[task_id]
        progress.sampled(None if candidates is None else len(candidates))
        if candidates is None:
            return None
        if candidates:
            self._wrong_answers.look_at_refusals(_name_of(task_id, task), strategy)
        journal = self._journals.get(task_id)
        known = [None if journal is None else journal.take(candidate) for candidate in candidates]
        fresh = [candidate for candidate, before in zip(candidates, known, strict=True) if before is None]
        if fresh and self._pipeline is not None:
            work_on = functools.partial(self._pipeline.work_on, task.ctx)
            with Profiler.timeit("StartPipeline"):
                self._try(task_id, "the program as it was written", work_on)
            if task.is_terminated:
                return None
        with Profiler.timeit("SendToBuilder"):
            built = _build(builder, fresh, task.ctx.target) if fresh else []
        with Profiler.timeit("SendToRunner"):
            futures = _run(runner, task, fresh, built)
        sent = zip(built, futures, strict=True)
        pairs = [next(sent) if before is None else (before[0], _future_of(before[1])) for before in known]
        progress.submitted(len(candidates))
        return candidates, [each for each, _ in pairs], [future for _, future in pairs]

    def _finish(self, interrupted: bool) -> None:
        if self._session is not None:
            self._session.is_ending = True
        for task_id, task in enumerate(self.tasks):
            ahead = self._ahead.pop(task_id, None)
            for batch in ((task.measure_candidates, task.builder_results, task.runner_futures), ahead):
                if batch is None or batch[2] is None:
                    continue
                task.measure_candidates, task.builder_results, task.runner_futures = batch
                if interrupted:
                    task.runner_futures = [f if answers.is_done(f) else _CANCELED for f in batch[2]]
                self.join_running_task(task_id)
            if not task.is_terminated:
                task.stop_reason = self.stop_reason
                self.terminate_task(task_id)
            if task.best_ms >= FAILED_MS:
                self._wrong_answers.report_failures(_name_of(task_id, task))
            if task_id not in self._begun:
                continue
            try:
                task.ctx.post_tuning()
            except Exception as error:
                text = error_text(last_raise(error))
                _LOGGER.error("%s: post_tuning() of its strategy raised %s", _name_of(task_id, task), text)
                _LOGGER.debug("%s", traceback.format_exc())
        report_counts(self._raised, self.measure_callbacks, _LOGGER)

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Wait for the batch of a task, and report it to strategy and callbacks.

        Raises:
            tilewright.ArgumentError: the task has no running batch.
        """
        task = self.tasks[task_id]
        if task.runner_futures is None or task.measure_candidates is None or task.builder_results is None:
            raise ArgumentError.of(
                "tune/nothing-under-way", f"task #{task_id} has no batch under way", "ask its runner_futures first"
            )
        results: list[RunnerResult] = []
        if task_id not in self._ahead and self._may_sample(task_id):
            results += self._join_first(task_id, self._progress[task_id].due(_REPORTED_AHEAD))
            if not task.is_terminated and self._may_sample(task_id):
                self._ahead[task_id] = self._sample_batch(task_id)
        results += self._join_first(task_id, None)
        self.print_tuning_statistics()
        return results

    def _join_first(self, task_id: int, count: int | None) -> list[RunnerResult]:
        """Wait for the first `count` running candidates, or for all, and report their results."""
        futures, progress = self.tasks[task_id].runner_futures, self._progress[task_id]
        assert futures is not None
        with Profiler.timeit("JoinRunnerFutures"):
            results: list[RunnerResult] = []
            for future in futures[:count]:
                result = _CANCELED_RESULT if progress.stop_reason else answers.result_of(future)
                results.append(result)
                if result is not _CANCELED_RESULT:
                    milliseconds = _milliseconds(result)
                    progress.measured(milliseconds * 1e-3 if milliseconds < FAILED_MS else math.inf)
        progress.reported(len(results))
        with self._interrupts.deferred():
            return self._report(task_id, count, results)

    def _report(self, task_id: int, count: int | None, results: list[RunnerResult]) -> list[RunnerResult]:
        """Report the results of the first `count` running candidates, or of all if `count` is None."""
        task = self.tasks[task_id]
        candidates, built, futures = task.measure_candidates, task.builder_results, task.runner_futures
        assert candidates is not None and built is not None and futures is not None
        if count is None:
            task.measure_candidates = task.builder_results = task.runner_futures = None
        else:
            task.measure_candidates, task.builder_results = candidates[count:], built[count:]
            task.runner_futures = futures[count:]
        kept = [i for i, result in enumerate(results) if result is not _CANCELED_RESULT]
        if count is not None and not kept:
            return []
        candidates, built = [candidates[i] for i in kept], [built[i] for i in kept]
        results = [results[i] for i in kept]
        journal = self._journals.get(task_id)
        if journal is not None:
            journal.note(candidates, built, results)
        self._note(task_id, candidates, built, results)
        if not task.is_terminated:
            report = functools.partial(task.ctx.notify_runner_results, candidates, results)
            with Profiler.timeit("NotifyRunnerResults"):
                self._try(task_id, "its strategy", report)
        fresh = [i for i, each in enumerate(candidates) if journal is None or not journal.is_recorded(each)]
        for callback in self.measure_callbacks:
            reported = (candidates, built, results)
            if isinstance(callback, AddToDatabase):
                reported = tuple([each[i] for i in fresh] for each in reported)  # type: ignore[assignment]
            apply_all([callback], self, task_id, reported, _LOGGER, self._raised)
        if journal is not None:
            journal.note_reported(candidates)
        self._look_whether_to_stop(task_id)
        return results

    def _look_whether_to_stop(self, task_id: int) -> None:
        task = self.tasks[task_id]
        if task.is_terminated:
            return
        if reason := self._progress[task_id].stop_reason:
            task.stop_reason = reason
            self._ahead.pop(task_id, None)
            if task.runner_futures is not None:  # do not wait for running candidates
                task.runner_futures = [_CANCELED] * len(task.runner_futures)
            if self._pipeline is not None:
                self._pipeline.leave(task.ctx)
            self.terminate_task(task_id)

    def _note(
        self, task_id: int, candidates: list[Any], built: list[BuilderResult], results: list[RunnerResult]
    ) -> None:
        task = self.tasks[task_id]
        logger = task.ctx.logger
        for candidate, build, result in zip(candidates, built, results, strict=True):
            error = build.error_msg or result.error_msg
            self._wrong_answers.look_at(_name_of(task_id, task), build, result)
            milliseconds = FAILED_MS if error is not None else _milliseconds(result)
            if build.error_msg is not None:
                task.build_error_count += 1
            elif error is not None or not result.run_secs:
                task.run_error_count += 1
            task.latency_ms.append(milliseconds)
            trial = f"[Task #{task_id}: {task.ctx.task_name}] Trial #{len(task.latency_ms)}:"
            if milliseconds < FAILED_MS:
                speeds = [task.flop / max(ms, 1e-9) / 1e6 for ms in (milliseconds, task.best_ms)]
                logger.info(
                    "%s GFLOPs: %.4f. Time: %.4f us. Best GFLOPs: %.4f", trial, speeds[0], milliseconds * 1e3, speeds[1]
                )
            else:
                where = "building" if build.error_msg is not None else "running"
                logger.info("%s Error in %s:\n%s", trial, where, error or "no time was measured")
                logger.debug("%s\n%s", candidate.sch.mod.script(), candidate.sch.trace)

    def touch_task(self, task_id: int) -> None:
        """Join the batch of a task if all of it is done."""
        futures = self.tasks[task_id].runner_futures
        if not self.tasks[task_id].is_terminated and futures is not None and all(map(answers.is_done, futures)):
            self.join_running_task(task_id)

    def terminate_task(self, task_id: int) -> None:
        """End a task.

        Raises:
            tilewright.ArgumentError: the task has ended already.
        """
        task = self.tasks[task_id]
        if task.is_terminated:
            raise ArgumentError.of(
                "tune/terminated", f"task #{task_id} has ended already", "ask its is_terminated first"
            )
        task.is_terminated = True
        self.remaining_tasks -= 1
        if not task.latency_ms and task.measure_candidates is None and task_id not in self._failures:
            why = _why_none(task.ctx) if task_id in self._asked else _why_not_asked(self.stop_reason)
            _LOGGER.warning("Task #%d: %r ends without a trial: %s", task_id, task.ctx.task_name, why)
        why = f" ({task.stop_reason})" if task.stop_reason else ""
        _LOGGER.info("Task #%d has finished%s. Remaining task(s): %d", task_id, why, self.remaining_tasks)

    def statistics(self) -> Table:
        """Return a table with the progress of each task."""
        rows: list[tuple[str, ...]] = []
        for number, task in enumerate(self.tasks):
            measured = task.best_ms < FAILED_MS
            latency = task.best_ms * 1e3
            speed = f"{task.flop / max(task.best_ms, 1e-9) / 1e6:.4f}" if measured else "N/A"
            times = (f"{latency:.4f}", f"{latency * task.task_weight:.4f}") if measured else ("N/A", "N/A")
            weight, done = f"{task.task_weight:g}", "Y" if task.is_terminated else ""
            trials = str(len(task.latency_ms))
            rows.append((str(number), task.ctx.task_name, f"{task.flop:.0f}", weight, speed, *times, trials, done))
        total = sum(task.best_ms * task.task_weight for task in self.tasks if task.best_ms < FAILED_MS) * 1e3
        trials = str(sum(len(task.latency_ms) for task in self.tasks))
        rows.append(("", "Total", "", "", "", "", f"{total:.4f}", trials, ""))
        columns = ("ID", "Name", "FLOP", "Weight", "Speed (GFLOPS)", "Latency (us)", "Weighted Latency (us)", "Trials")
        return Table("Tasks", (*columns, "Done"), tuple(rows))

    def print_tuning_statistics(self) -> None:
        """Log the progress of each task."""
        _LOGGER.info("%s", self.statistics())


@contextlib.contextmanager
def _kept(database: Database | None) -> Iterator[None]:
    """Flush the database at the end of the context, also after an error."""
    try:
        yield
    finally:
        if isinstance(database, Database):
            with contextlib.suppress(ResourceError):  # the search itself is what matters
                database.flush()


def _name_of(task_id: int, task: TaskRecord) -> str:
    return f"Task #{task_id}: {task.ctx.task_name!r}"


def _why_none(context: Any) -> str:
    """Return why a search has no candidates: the fate of its samples."""
    strategy = getattr(context, "search_strategy", None)
    refusals = getattr(strategy, "refusals", None)
    if refusals:
        messages = getattr(strategy, "first_refusals", {})
        reasons = [answers.refused(code, n, messages.get(code, "")) for code, n in sorted(refusals.items())]
        hint = ""
        if "DisallowDynamicLoop" in refusals and open_sizes_of(context.mod):
            hint = (
                "\n  hint: the program leaves sizes open: tw.tune(..., sizes={...}) tunes it for those that are usual"
            )
        between = ",\n" if any("\n" in reason for reason in reasons) else ", "
        return f"its space has no valid point: {between.join(reasons)}{hint}"
    return "its strategy gave no candidates"


def _why_not_asked(stop_reason: str) -> str:
    """Return why a task was never selected."""
    whys = {
        "trials": "the other tasks used up all trials of the session",
        "seconds": "the time of the session was over before its turn",
        "canceled": "the session was interrupted before its turn",
    }
    return whys.get(stop_reason, "it was ended before its turn")


def _scopes_of(strategy: Any) -> dict[str, float]:
    """Return the time breakdown of a strategy; each scope includes its nested scopes."""
    own: dict[str, float] = getattr(strategy, "seconds_by_scope", {})
    return {scope: sum(seconds for name, seconds in own.items() if f"{name}/".startswith(f"{scope}/")) for scope in own}


def _milliseconds(result: RunnerResult) -> float:
    return statistics.median(result.run_secs) * 1e3 if result.error_msg is None and result.run_secs else FAILED_MS


_CANCELED_RESULT = RunnerResult(None, "the session was canceled")
_CANCELED = RunnerFuture(lambda: True, lambda: _CANCELED_RESULT)


def _build(builder: Builder, candidates: Sequence[Any], target: Any) -> list[BuilderResult]:
    inputs = [BuilderInput(candidate.sch.mod, target) for candidate in candidates]
    return answers.from_builder(builder, inputs)


def _run(
    runner: Runner,
    task: TaskRecord,
    candidates: Sequence[Any],
    results: Sequence[BuilderResult],
) -> list[RunnerFuture]:
    """Return a future for each candidate; failed ones for candidates that were not built."""
    target = task.ctx.target
    device = "llvm" if target is None else str(target.kind)
    inputs, places = [], []
    futures: list[RunnerFuture] = []
    for candidate, built in zip(candidates, results, strict=True):
        futures.append(_future_of(RunnerResult(None, built.error_msg)))
        if built.error_msg is None and built.artifact_path is not None:
            places.append(len(futures) - 1)
            infos = [as_arg_info(info) for info in candidate.args_info or ()]
            inputs.append(RunnerInput(built.artifact_path, device, infos))
    for place, future in zip(places, answers.from_runner(runner, inputs), strict=True):
        futures[place] = future
    return futures


def _future_of(result: RunnerResult) -> RunnerFuture:
    return RunnerFuture(lambda: True, lambda: result)
