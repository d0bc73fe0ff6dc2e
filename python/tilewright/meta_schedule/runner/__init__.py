"""Runners: measure the times of built files."""

from tilewright.meta_schedule.evaluator import EvaluatorConfig
from tilewright.meta_schedule.runner.dask_runner import DaskRunner
from tilewright.meta_schedule.runner.kinds import create
from tilewright.meta_schedule.runner.local_runner import LocalRunner
from tilewright.meta_schedule.runner.rpc import RPCConfig, RPCRunner
from tilewright.meta_schedule.runner.runner import Runner, RunnerFuture, RunnerInput, RunnerResult

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

PyRunner = Runner
PyRunnerFuture = RunnerFuture
