"""tvm.meta_schedule.runner.runner."""

from __future__ import annotations

from typing import Any, ClassVar

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.derived import asking, call_derived
from tilewright.meta_schedule.runner import Runner, RunnerFuture, RunnerInput, RunnerResult

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.runner.runner")

__all__ = ["PyRunner", "PyRunnerFuture", "Runner", "RunnerFuture", "RunnerInput", "RunnerResult", "create"]

create = Runner.create


class PyRunner:
    """The base of runners in Python, which ``derived_object`` decorates."""

    _tvm_metadata: ClassVar[dict[str, Any]] = {
        "cls": asking(Runner, "run"),
        "methods": ["run", "__str__"],
        "fields": [],
    }

    def run(self, runner_inputs: Any) -> Any:
        """One future for each input."""
        raise NotImplementedError


class _PyRunnerFuture(RunnerFuture):
    """The future that a decorated subclass of PyRunnerFuture becomes."""

    def __init__(self) -> None:
        """The methods below say all."""

    def done(self) -> bool:
        return bool(call_derived(self, "done"))

    def result(self) -> Any:
        return call_derived(self, "result")


class PyRunnerFuture:
    """The base of futures in Python, which ``derived_object`` decorates."""

    _tvm_metadata: ClassVar[dict[str, Any]] = {"cls": _PyRunnerFuture, "methods": ["done", "result"], "fields": []}

    def done(self) -> bool:
        """Whether the result is there."""
        raise NotImplementedError

    def result(self) -> Any:
        """The result."""
        raise NotImplementedError
