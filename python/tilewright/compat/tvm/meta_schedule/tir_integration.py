"""tvm.meta_schedule.tir_integration."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.meta_schedule import database  # noqa: F401  (registers the subclass)
from tilewright.compat.tvm.meta_schedule.as_tvm import as_tvm
from tilewright.meta_schedule import tir_integration as own

__all__ = ["compile_tir", "tune_tir"]


def tune_tir(*args: Any, task_name: str | None = None, **options: Any) -> Any:
    """Return the database of a session. `task_name`, of releases before v0.20, is ignored: tasks have the names of
    their functions."""
    return as_tvm(own.tune_tir(*args, **options))


def compile_tir(*args: Any, **options: Any) -> Any:
    """Return the best schedule of a database."""
    return as_tvm(own.compile_tir(*args, **options))
