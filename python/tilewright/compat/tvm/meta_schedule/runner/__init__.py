"""tvm.meta_schedule.runner."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.runner.config import EvaluatorConfig, RPCConfig
from tilewright.compat.tvm.meta_schedule.runner.local_runner import LocalRunner, LocalRunnerFuture
from tilewright.compat.tvm.meta_schedule.runner.rpc_runner import RPCRunner
from tilewright.compat.tvm.meta_schedule.runner.runner import (
    PyRunner,
    PyRunnerFuture,
    Runner,
    RunnerFuture,
    RunnerInput,
    RunnerResult,
    create,
)

__getattr__ = missing("tvm.meta_schedule.runner")

__all__ = [
    "EvaluatorConfig",
    "LocalRunner",
    "LocalRunnerFuture",
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
