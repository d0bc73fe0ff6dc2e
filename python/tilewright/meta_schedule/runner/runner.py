"""Runners: measure the times of built files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.database.origins import Origin
from tilewright.meta_schedule.arg_info import ArgInfo
from tilewright.meta_schedule.evaluator import EvaluatorConfig
from tilewright.support.wrong_arguments import explained

__all__ = [
    "EvaluatorConfig",
    "PyRunner",
    "PyRunnerFuture",
    "Runner",
    "RunnerFuture",
    "RunnerInput",
    "RunnerResult",
]


@dataclass(frozen=True)
class RunnerInput:
    """A built file, the kind of device ("llvm"), and the descriptions of its arguments."""

    artifact_path: str
    device_type: str
    args_info: Sequence[ArgInfo]


class RunnerResult:
    """Seconds per call, one number for each sample, or the error.

    Args:
        run_secs: the seconds.
        error_msg: the error.
        origin: machine and versions that measured, for the records; unknown by default.
    """

    @explained
    def __init__(self, run_secs: Sequence[Any] | None, error_msg: str | None, *, origin: Origin | None = None) -> None:
        self.run_secs = None if run_secs is None else [float(getattr(s, "value", s)) for s in run_secs]
        self.error_msg = error_msg
        self.origin = origin or Origin()

    def __repr__(self) -> str:
        return f"RunnerResult({self.run_secs}, {self.error_msg!r})"


class RunnerFuture:
    """A result that may not be available yet. Subclasses define both methods; others pass two functions.

    Args:
        f_done: returns whether the result is available.
        f_result: waits for the result and returns it.
    """

    def __init__(
        self, f_done: Callable[[], bool] | None = None, f_result: Callable[[], RunnerResult] | None = None
    ) -> None:
        self._done, self._result = f_done, f_result

    def done(self) -> bool:
        """Return whether :meth:`result` returns without waiting."""
        if self._done is None:
            raise NotImplementedError(f"{type(self).__name__} does not define done()")
        return self._done()

    def result(self) -> RunnerResult:
        """Wait for the result and return it."""
        if self._result is None:
            raise NotImplementedError(f"{type(self).__name__} does not define result()")
        return self._result()


class Runner(ABC):
    """Measures many kernels."""

    @abstractmethod
    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Return one future for each input, in order; errors are part of the results."""

    @staticmethod
    def create(kind: Runner | str = "local", *args: Any, **kwargs: Any) -> Runner:
        """Return the runner of a kind, see :func:`tilewright.meta_schedule.runner.create`."""
        from tilewright.meta_schedule.runner import create

        return create(kind, *args, **kwargs)


PyRunner = Runner
PyRunnerFuture = RunnerFuture
