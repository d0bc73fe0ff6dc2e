"""tvm.meta_schedule.runner."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.meta_schedule.delegation import call_derived, delegates_to
from tilewright.compat.tvm.meta_schedule.runner.local_runner import LocalRunner, LocalRunnerFuture
from tilewright.compat.tvm.meta_schedule.runner.rpc_runner import RPCConfig, RPCRunner
from tilewright.meta_schedule.runner import EvaluatorConfig, Runner, RunnerFuture, RunnerInput, RunnerResult

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

create = Runner.create


@delegates_to(Runner)
class PyRunner:
    """The base of runners in Python, which ``derived_object`` decorates."""

    def run(self, runner_inputs: Any) -> Any:
        """Return one future for each input."""
        raise NotImplementedError


class _PyRunnerFuture(RunnerFuture):
    """The future that a decorated subclass of PyRunnerFuture becomes."""

    def __init__(self) -> None:
        """Create the object; subclasses define the methods below."""

    def done(self) -> bool:
        return bool(call_derived(self, "done"))

    def result(self) -> Any:
        return call_derived(self, "result")


@delegates_to(_PyRunnerFuture)
class PyRunnerFuture:
    """The base of futures in Python, which ``derived_object`` decorates."""

    def done(self) -> bool:
        """Return whether the result is available."""
        raise NotImplementedError

    def result(self) -> Any:
        """Return the result."""
        raise NotImplementedError
