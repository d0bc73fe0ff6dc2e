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
    space: Any = "post-order-apply",
    seed: int | None = None,
) -> Any:
    """Searches the space of a function; gives what the search found, for :func:`compile_tir`."""
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
