"""tvm.meta_schedule.runner.local_runner."""

from __future__ import annotations

import functools
from typing import Any

from tilewright.compat.tvm.runtime.module import as_tvm
from tilewright.compat.tvm.runtime.ndarray import NDArray
from tilewright.meta_schedule.builder import resolved
from tilewright.meta_schedule.runner import RunnerFuture, RunnerResult, local_runner
from tilewright.meta_schedule.runner.local_runner import default_cleanup, default_run_evaluator

__all__ = ["LocalRunner", "LocalRunnerFuture", "default_alloc_argument", "default_cleanup", "default_run_evaluator"]


def _evaluate(function: Any, module: Any, *args: Any) -> Any:
    """Return the measurements of a function that takes TVM's modules, or of the registered function with that name."""
    return resolved(function, local_runner.SHIPPED)(as_tvm(module), *args)


class LocalRunner(local_runner.LocalRunner):
    """Measures in a process of this machine; functions of the user get modules with TVM's methods."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        alloc, evaluator, cleanup = self._functions
        if evaluator not in (default_run_evaluator, "meta_schedule.runner.default_run_evaluator"):
            self._functions = (alloc, functools.partial(_evaluate, evaluator), cleanup)


class LocalRunnerFuture(RunnerFuture):
    """The future of a measurement that is over: its seconds, or why there are none."""

    def __init__(self, res: list[float] | None = None, error_message: str | None = None) -> None:
        if res is None and error_message is None:
            raise ValueError("Either res or error_message says how the measurement ended")
        result = RunnerResult(res, error_message)
        super().__init__(lambda: True, lambda: result)
        self.res, self.error_message = res, error_message


def default_alloc_argument(device: Any, args_info: Any, alloc_repeat: int) -> list[list[NDArray]]:
    """Return sets of random arrays."""
    sets = local_runner.default_alloc_argument(device, args_info, alloc_repeat)
    return [[array.view(NDArray) for array in arrays] for arrays in sets]
