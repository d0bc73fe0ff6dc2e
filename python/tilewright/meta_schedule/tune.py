"""Tune several tasks in one session."""

from __future__ import annotations

import contextlib
import numbers
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.errors import ArgumentError, ResourceError
from tilewright.kernel.device import device
from tilewright.meta_schedule.builder import Builder
from tilewright.meta_schedule.database.database import Database
from tilewright.meta_schedule.database.kinds import check_place, database_of_session
from tilewright.meta_schedule.database.sqlite_database import SQLiteDatabase
from tilewright.meta_schedule.database.tuning_record import is_in, workload_in
from tilewright.meta_schedule.measure_callback import MeasureCallback
from tilewright.meta_schedule.measuring_pipeline import MeasuringPipeline
from tilewright.meta_schedule.module_equality import module_equality_of
from tilewright.meta_schedule.profiler import Profiler
from tilewright.meta_schedule.runner.dask_runner import DaskRunner
from tilewright.meta_schedule.runner.runner import Runner
from tilewright.meta_schedule.session_journal import end_session
from tilewright.meta_schedule.session_logs import SessionLogs
from tilewright.meta_schedule.stops import stops_of
from tilewright.meta_schedule.task_scheduler import TaskScheduler
from tilewright.report.profiler import CONCURRENT
from tilewright.support import limits
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["tune_tasks"]

#: number of candidates that are measured for each task after the search, with `post_optimization`
DESCENT_TRIALS = 100


@suggests_keywords
def tune_tasks(
    *,
    tasks: Sequence[Any],
    task_weights: Sequence[float],
    work_dir: str | os.PathLike[str],
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Builder | str = "local",
    runner: Runner | str = "local",
    database: Database | str | os.PathLike[str] = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: TaskScheduler | str = "gradient",
    module_equality: str = "structural",
    post_optimization: bool = False,
    max_seconds: float | None = None,
    patience: int | None = None,
    target_seconds: float | Mapping[str, float] | None = None,
    stop_at_roofline: bool = False,
) -> Database:
    """Search the spaces of all tasks; return the database with all measurements, also after Ctrl-C.

    Args:
        tasks: contexts, each with a program, a target, a space and a strategy.
        task_weights: how often each of the programs runs.
        work_dir: folder for the logs, for the database if it is a file, and for the journal: a session with the same
            seeds passes earlier measurements to the strategies instead of repeating them.
        max_trials_global: maximum number of trials of all tasks.
        max_trials_per_task: maximum number of trials of each task; by default that of all tasks.
        num_trials_per_iter: number of candidates in a batch.
        builder: builder or its kind. If builder and runner are "local", or call no functions of the user, candidates
            are built while others are being measured, and compared with the unscheduled program.
        runner: runner or its kind.
        database: database or its kind: "json", "memory", "sqlite"; or as in :func:`tilewright.tune`.
        cost_model: cost model or its kind: "xgb", "mlp", "random", "none".
        measure_callbacks: callbacks, or "default".
        task_scheduler: scheduler or its kind: "gradient", "round-robin".
        module_equality: equality of programs in a new database.
        post_optimization: whether to descend from the best record of each task at the end.
        max_seconds: seconds after which no batch begins.
        patience: number of trials without a faster candidate after which a task ends.
        target_seconds: seconds of a call at which a task ends, for all tasks or by task name.
        stop_at_roofline: whether a task ends when its best candidate is within 3 % of the machine's limit. Off by
            default, because TVM's sessions use all their trials; :func:`tilewright.tune` has it on.

    Raises:
        tilewright.ArgumentError: there is no task, or not one weight for each.
    """
    tasks = limits.items("tasks", tasks, "contexts")
    task_weights = limits.items("task_weights", task_weights, "numbers")
    _check_weights(tasks, task_weights)
    check_parts(cost_model, task_scheduler, module_equality, post_optimization, stop_at_roofline)
    check_asked(
        *(tasks, work_dir, max_trials_global, max_trials_per_task, num_trials_per_iter),
        *(builder, runner, database, measure_callbacks, max_seconds),
    )
    stops = stops_of(patience, target_seconds, stop_at_roofline, [task.task_name for task in tasks])
    database = database_of_session(database, work_dir, module_equality)
    own = [part for part, given in ((Builder, builder), (Runner, runner)) if isinstance(given, str)]
    made_builder, made_runner = _parts(builder, runner, tasks[0].num_threads, max_seconds)
    seed = {"seed": getattr(tasks[0], "seed", -1)} if task_scheduler == "gradient" else {}
    scheduler = TaskScheduler.create(task_scheduler, **seed)
    with SessionLogs(Path(work_dir), [task.task_name for task in tasks]) as logs:
        for task, logger in zip(tasks, logs.tasks, strict=True):
            task.logger = logger
        session = Profiler()
        try:
            with session:
                scheduler.tune(
                    tasks,
                    task_weights,
                    max_trials_global,
                    max_trials_global if max_trials_per_task is None else max_trials_per_task,
                    num_trials_per_iter,
                    made_builder,
                    made_runner,
                    MeasureCallback.create(measure_callbacks),
                    database,
                    _cost_model(cost_model, tasks[0]),
                    max_seconds=max_seconds,
                    work_dir=work_dir,
                    stops=stops,
                )
                if scheduler.stop_reason != "canceled":
                    end_session(Path(work_dir))
                    _descend(tasks if post_optimization else (), database, made_builder, made_runner)
                _add_beside(session, made_builder)
        finally:
            for kind, part in ((Builder, made_builder), (Runner, made_runner)):
                if kind in own and hasattr(part, "close"):
                    part.close()
            _report_times(session, database)
    return database


def _check_weights(tasks: Sequence[Any], task_weights: Sequence[float]) -> None:
    for task in tasks:
        if not all(hasattr(task, name) for name in ("mod", "target", "task_name")):
            raise limits.wrong_kind("a task", task, "a TuneContext")
    for weight in task_weights:
        limits.kind("a weight", weight, numbers.Real, "a number: how often the program runs")
    if len(tasks) != len(task_weights):
        raise ArgumentError.of(
            "tune/weights",
            f"there are {len(tasks)} tasks and {len(task_weights)} weights",
            "give one weight for each task",
        )


def check_parts(
    cost_model: Any, task_scheduler: Any, module_equality: Any, post_optimization: Any, stop_at_roofline: Any
) -> None:
    """Return the other options that a session has."""
    if not isinstance(cost_model, str | None) and not hasattr(cost_model, "predict"):
        what = 'the kind of a cost model ("xgb", "none", ...), or an object of a subclass of CostModel'
        raise limits.wrong_kind("cost_model", cost_model, what)
    if not isinstance(task_scheduler, str) and not hasattr(task_scheduler, "next_task_id"):
        raise limits.wrong_kind("task_scheduler", task_scheduler, '"gradient", "round-robin", or a TaskScheduler')
    module_equality_of(module_equality)
    limits.kind("post_optimization", post_optimization, bool, "True or False")
    limits.kind("stop_at_roofline", stop_at_roofline, bool, "True or False")


def check_asked(
    tasks: Sequence[Any],
    work_dir: Any,
    max_trials_global: Any,
    max_trials_per_task: Any,
    num_trials_per_iter: Any,
    builder: Any,
    runner: Any,
    database: Any,
    measure_callbacks: Any,
    max_seconds: Any,
) -> None:
    """Refuse arguments of :func:`tune_tasks` that would fail at the first batch or at each, before anything is
    written."""
    if not tasks:
        raise ArgumentError.of("tune/no-task", "there is no task to tune", "pass at least one context")
    limits.whole("max_trials_global", max_trials_global, 1)
    limits.whole("num_trials_per_iter", num_trials_per_iter, 1, "a batch has at least 1 trial")
    if max_trials_per_task is not None:
        limits.whole("max_trials_per_task", max_trials_per_task, 1)
    limits.positive("max_seconds", max_seconds)
    limits.kind("work_dir", work_dir, str | os.PathLike, "the path of a folder")
    for name, part, method in (("builder", builder, "build"), ("runner", runner, "run")):
        if not isinstance(part, str) and not hasattr(part, method):
            raise limits.wrong_kind(name, part, f'"local", or an object with {method}()')
    check_place(database)
    MeasureCallback.create(measure_callbacks)
    kinds = [(task.task_name, "llvm" if task.target is None else task.target.kind) for task in tasks]
    if isinstance(runner, DaskRunner):
        for name, kind in kinds:
            if kind != "llvm":
                what = f"'{name}': a cluster measures on processors, not on {kind!r}"
                raise ArgumentError.of("tune/device", what, "tune on the machine of the device, without DaskRunner")
    if isinstance(builder, str) and builder == "local":
        for name, kind in kinds:
            if kind in ("opencl", "cuda") and not device(kind).exist:
                hint = "tune on a machine with one; tilewright info lists devices"
                raise ResourceError.of("measure/no-device", f"there is no {device(kind)} to measure on", hint)
            if kind not in ("llvm", "opencl", "cuda"):
                raise ArgumentError.of(
                    "target/no-code",
                    f"'{name}': programs cannot be compiled for {kind}, and so not be measured",
                    'tune for "native" or "llvm -mcpu=NAME", or pass a builder and a runner of your own',
                )


def _parts(builder: Builder | str, runner: Runner | str, workers: int, seconds: float | None) -> tuple[Builder, Runner]:
    if builder == runner == "local":
        both = MeasuringPipeline(workers, seconds=seconds)
        return both, both
    made_builder = Builder.create(builder, max_workers=workers) if isinstance(builder, str) else builder
    return made_builder, Runner.create(runner) if isinstance(runner, str) else runner


def _descend(tasks: Sequence[Any], database: Database, builder: Builder, runner: Runner) -> None:
    from tilewright.meta_schedule.post_optimization import descend

    for task in tasks:
        if is_in(database, task.mod):
            with Profiler.timeit("Descent"):
                descend(database, workload_in(database, task.mod), task.target, DESCENT_TRIALS, builder, runner)


def _add_beside(session: Profiler, builder: Builder) -> None:
    if isinstance(builder, MeasuringPipeline):
        for name, seconds in builder.beside().items():
            session.add(f"{CONCURRENT}{name}", seconds)


def _report_times(session: Profiler, database: Database) -> None:
    """Report the times to the enclosing profiler, and to the file that reports are made of."""
    outer = Profiler.current()
    for name, seconds in session.get().items():
        if outer is not None and name != "Total":
            outer.add(name, seconds)
    if isinstance(database, SQLiteDatabase):
        try:
            database.keep_times("tune_tasks", session.get())
        finally:
            with contextlib.suppress(ResourceError):  # the search itself is what matters
                database.flush()


def _cost_model(kind: Any, first: Any) -> Any:
    if not isinstance(kind, str) or kind == "none":
        return None if kind == "none" else kind
    from tilewright.meta_schedule import CostModel

    options = {"xgb": {"num_tuning_cores": first.num_threads}, "random": {"seed": getattr(first, "seed", None)}}
    return CostModel.create(kind, **options.get(kind, {}))
