"""tvm.meta_schedule.tune."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.meta_schedule import database  # noqa: F401  (registers the subclass)
from tilewright.compat.tvm.meta_schedule.as_tvm import as_tvm
from tilewright.meta_schedule import tune as own

__all__ = ["tune_tasks"]


def tune_tasks(*args: Any, **options: Any) -> Any:
    """Return the database of a session."""
    return as_tvm(own.tune_tasks(*args, **options))
