"""Tune the functions of a module."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import _core, ir
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.builder import Builder
from tilewright.meta_schedule.database.database import Database
from tilewright.meta_schedule.database.tuning_record import schedule_in
from tilewright.meta_schedule.runner.dask_runner import DaskRunner
from tilewright.meta_schedule.runner.runner import Runner
from tilewright.meta_schedule.session_journal import begin_session, seed_of_session
from tilewright.meta_schedule.stops import stops_of
from tilewright.meta_schedule.task_scheduler import TaskScheduler
from tilewright.meta_schedule.tune import check_asked, check_parts, tune_tasks
from tilewright.schedule import Schedule
from tilewright.support import limits
from tilewright.support.machine import TargetLike
from tilewright.support.wrong_arguments import explained, suggests_keywords, unexpected_arguments_error
from tilewright.task.task import module_of

__all__ = ["compile_tir", "fork_seed", "tune_tir"]


def fork_seed(seed: int | None, n: int) -> list[int]:
    """Return seeds of `n` streams, derived from one seed; random ones for None."""
    if seed is not None:
        limits.seed(seed, most=2**32 - 1)
    limits.whole("n", n, 0, most=limits.MOST_ITEMS)
    return [int(number) for number in np.random.RandomState(seed=seed).randint(1, 2**30, size=n)]


@suggests_keywords
def tune_tir(
    mod: ir.PrimFunc | ir.IRModule,
    target: TargetLike,
    work_dir: str | os.PathLike[str],
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Builder | str = "local",
    runner: Runner | str = "local",
    database: Database | str | os.PathLike[str] = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: TaskScheduler | str = "gradient",
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    num_tuning_cores: int | str = "physical",
    seed: int | None = None,
    module_equality: str = "structural",
    special_space: Mapping[str, Any] | None = None,
    post_optimization: bool = False,
    max_seconds: float | None = None,
    patience: int | None = None,
    target_seconds: float | Mapping[str, float] | None = None,
    stop_at_roofline: bool = False,
) -> Database:
    """Tune each function of a module as a task of its own; otherwise as in :func:`tune_tasks`.

    Args:
        space: space of schedules for each function.
        strategy: search strategy.
        num_tuning_cores: number of sampling threads and of build processes: an integer, "physical" or "logical".
        seed: the same seed gives the same candidates, and a session with the same seed and `work_dir` continues the
            last one. None: the seed of the interrupted session in `work_dir`, or a random one.
        special_space: other spaces for functions by name; None skips the function.

    Raises:
        tilewright.ArgumentError: there is no function to tune, or `special_space` names an unknown function.
    """
    from tilewright.meta_schedule.tune_context import SessionTask

    limits.kind("mod", mod, ir.PrimFunc | ir.IRModule, "a function under @T.prim_func, or a module of them")
    if seed is not None:
        seed = limits.seed(seed, most=2**32 - 1)
    if not isinstance(space, str | _core.SpaceGenerator | None) and not callable(space):
        raise limits.wrong_kind("space", space, "a SpaceGenerator, a function of a schedule, or the name of a space")
    limits.kind("strategy", strategy, str | _core.SearchStrategy | None, "a SearchStrategy, or the name of one")
    functions = {"main": mod} if isinstance(mod, ir.PrimFunc) else dict(mod.functions)
    limits.kind("special_space", special_space, Mapping | None, "a dict of spaces by the names of functions, or None")
    special = dict(special_space or {})
    _check_names(special, functions)
    chosen = {
        str(name): function
        for name, function in sorted(functions.items(), key=lambda item: str(item[0]))
        if isinstance(function, ir.PrimFunc) and special.get(str(name), space) is not None
    }
    resolved = _resolved(target, runner)
    limits.kind("work_dir", work_dir, str | os.PathLike, "the path of a folder")
    programs = [str(resolved), *(_core.structural_hash(function) for function in chosen.values())]
    seed = seed_of_session(Path(work_dir), programs, seed)
    tasks = [
        SessionTask(
            function,
            target=resolved,
            space_generator=_own(special.get(name, space)),
            search_strategy=_own(strategy),
            task_name=name,
            rand_state=stream,
            num_threads=num_tuning_cores,
        )
        for (name, function), stream in zip(chosen.items(), fork_seed(seed % 2**32, len(chosen)), strict=True)
    ]
    check_parts(cost_model, task_scheduler, module_equality, post_optimization, stop_at_roofline)
    asked: dict[str, Any] = {
        "work_dir": work_dir,
        "max_trials_global": max_trials_global,
        "max_trials_per_task": max_trials_per_task,
        "num_trials_per_iter": num_trials_per_iter,
        "builder": builder,
        "runner": runner,
        "database": database,
        "measure_callbacks": measure_callbacks,
        "max_seconds": max_seconds,
    }
    check_asked(tasks, **asked)
    stops_of(patience, target_seconds, stop_at_roofline, [task.task_name for task in tasks])
    begin_session(Path(work_dir), programs, seed)
    return tune_tasks(
        tasks=tasks,
        task_weights=[1.0] * len(tasks),
        cost_model=cost_model,
        task_scheduler=task_scheduler,
        module_equality=module_equality,
        post_optimization=post_optimization,
        patience=patience,
        target_seconds=target_seconds,
        stop_at_roofline=stop_at_roofline,
        **asked,
    )


def tune_tir_round_robin(*args: Any, **options: Any) -> Database:
    """Call :func:`tune_tir` as the function of this name in TVM: with positional arguments, and a round-robin
    scheduler."""
    parameters = inspect.signature(tune_tir).parameters.values()
    in_order = inspect.Signature([each.replace(kind=each.POSITIONAL_OR_KEYWORD) for each in parameters])
    try:
        asked = in_order.bind(*args, **options).arguments
    except TypeError as error:
        raise unexpected_arguments_error(tune_tir, error, options) from None
    return tune_tir(**{"task_scheduler": "round-robin", **asked})


def _own(part: Any) -> Any:
    """Return a copy for one task of a part that has the state of a task."""
    return part.clone() if hasattr(part, "clone") else part


def _check_names(special: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
    names = [str(name) for name, function in functions.items() if isinstance(function, ir.PrimFunc)]
    for name in special:
        if name not in names:
            raise ArgumentError.of(
                "tune/special-space",
                f"special_space names {name!r}, which is not a function",
                limits.closest(name, names),
            )


def _resolved(target: TargetLike, runner: Runner | str) -> _core.Target:
    if isinstance(runner, DaskRunner):
        runner.cluster.check_native(target)
    return _core.Target(target)


@explained
def compile_tir(database: Database, mod: ir.PrimFunc | ir.IRModule, target: TargetLike) -> Schedule | None:
    """Return the best schedule of a program in the database for the target; None if there is none.

    A result of :func:`tune_tir` for a module with one function is found by the module and by the function. In a module
    of several functions, which were tuned separately, each function gets its own best schedule; those without one are
    not changed.
    """
    from tilewright.meta_schedule import normalize_module

    def asked(program: ir.PrimFunc | ir.IRModule) -> Schedule | None:
        # Searches tune the function with buffers that do not overlap; the user's function need not declare this, and a
        # user-defined database may look for that form.
        found = schedule_in(database, normalize_module(program), target, "main")
        return schedule_in(database, module_of(program), target, "main") if found is None else found

    found = asked(mod)
    if found is not None or isinstance(mod, ir.PrimFunc):
        return found
    functions = {name: function for name, function in mod.functions.items() if isinstance(function, ir.PrimFunc)}
    whole = None
    for name, function in functions.items():
        own = asked(function)
        if own is None or len(functions) == len(mod.functions) == 1:
            whole = whole or own
            continue
        whole = whole or Schedule(mod)
        _core.renamed_trace(own.trace, function, function, name).apply_to_schedule(whole)
    return whole
