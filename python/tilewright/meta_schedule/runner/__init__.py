"""Runners: measure the times of built files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.support.lazy_names import lazy

if TYPE_CHECKING:
    from tilewright.meta_schedule.runner.dask_runner import DaskRunner
    from tilewright.meta_schedule.runner.kinds import create
    from tilewright.meta_schedule.runner.local_runner import LocalRunner
    from tilewright.meta_schedule.runner.rpc import RPCConfig, RPCRunner
    from tilewright.meta_schedule.runner.runner import EvaluatorConfig as EvaluatorConfig
    from tilewright.meta_schedule.runner.runner import (
        PyRunner,
        PyRunnerFuture,
        Runner,
        RunnerFuture,
        RunnerInput,
        RunnerResult,
    )

#: public name -> the module of this package that defines it
_NAMES = {
    "EvaluatorConfig": "runner",
    "DaskRunner": "dask_runner",
    "create": "kinds",
    "LocalRunner": "local_runner",
    "RPCConfig": "rpc",
    "RPCRunner": "rpc",
    "Runner": "runner",
    "RunnerFuture": "runner",
    "RunnerInput": "runner",
    "RunnerResult": "runner",
    "PyRunner": "runner",
    "PyRunnerFuture": "runner",
}

__all__ = [
    "DaskRunner",
    "EvaluatorConfig",
    "LocalRunner",
    "PyRunner",
    "PyRunnerFuture",
    "RPCConfig",
    "RPCRunner",
    "Runner",
    "RunnerFuture",
    "RunnerInput",
    "RunnerResult",
    "create",
]

__getattr__ = lazy(__name__, _NAMES)
