"""tvm.meta_schedule.tir_integration: tuning one program."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.space_generator import ScheduleFn

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.tir_integration")

__all__ = ["compile_tir", "tune_tir"]


def tune_tir(
    mod: Any,
    target: Any,
    work_dir: str,
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "round-robin",
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    num_tuning_cores: Any = "physical",
    seed: int | None = None,
    module_equality: str = "structural",
    special_space: Any = None,
) -> Any:
    """Searches the space of a function; gives what the search found, for :func:`compile_tir`.

    How many candidates make a round (`num_trials_per_iter`) and how many cores build them is Tilewright's own matter;
    of the parts that TVM lets one replace there are the default ones.
    """
    parts = {
        "builder": (builder, "local"),
        "runner": (runner, "local"),
        "database": (database, "json"),
        "cost_model": (cost_model, "xgb"),
        "measure_callbacks": (measure_callbacks, "default"),
        "task_scheduler": (task_scheduler, "round-robin"),
        "strategy": (strategy, "evolutionary"),
        "module_equality": (module_equality, "structural"),
        "special_space": (special_space, None),
    }
    for name, (value, default) in parts.items():
        if value != default:
            raise TypeError(f"Tilewright has no tune_tir({name}={value!r}) yet")
    if num_trials_per_iter < 1:
        raise ValueError(f"num_trials_per_iter is {num_trials_per_iter}; a round has at least 1 candidate")
    if max_trials_per_task is not None:
        max_trials_global = min(max_trials_global, max_trials_per_task)
    function = space.sch_fn if isinstance(space, ScheduleFn) else space
    if not callable(function):
        raise TypeError(f"Tilewright has no space {space!r} yet: pass a ScheduleFn")
    folder = Path(work_dir)
    folder.mkdir(parents=True, exist_ok=True)
    return tw.tune(
        mod,
        space=function,
        trials=max_trials_global,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        database=folder / "database.db",
        target=str(target),
    )


def compile_tir(database: Any, mod: Any, target: Any) -> Any:
    """The best schedule that a search found, None without one."""
    if not isinstance(database, tw.TuneResult):
        raise TypeError("Tilewright takes what tune_tir gave here")
    return database.schedule if database.record is not None else None
