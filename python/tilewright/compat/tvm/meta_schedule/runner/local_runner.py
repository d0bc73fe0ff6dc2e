"""tvm.meta_schedule.runner.local_runner."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.runtime.ndarray import NDArray
from tilewright.meta_schedule import local_runner
from tilewright.meta_schedule.local_runner import LocalRunner, default_cleanup, default_run_evaluator

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.runner.local_runner")

__all__ = ["LocalRunner", "default_alloc_argument", "default_cleanup", "default_run_evaluator"]


def default_alloc_argument(device: Any, args_info: Any, alloc_repeat: int) -> list[list[NDArray]]:
    """Sets of random arrays."""
    sets = local_runner.default_alloc_argument(device, args_info, alloc_repeat)
    return [[array.view(NDArray) for array in arrays] for arrays in sets]
