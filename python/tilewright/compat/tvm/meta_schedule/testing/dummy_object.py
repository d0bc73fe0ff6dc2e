"""tvm.meta_schedule.testing.dummy_object: components that do next to nothing, for tests of the others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tilewright._core import Trace
from tilewright.compat.tvm.meta_schedule.builder import BuilderInput, BuilderResult, PyBuilder
from tilewright.compat.tvm.meta_schedule.derived import derived_object
from tilewright.compat.tvm.meta_schedule.mutator import PyMutator
from tilewright.compat.tvm.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerInput, RunnerResult

__all__ = ["DummyBuilder", "DummyMutator", "DummyRunner", "DummyRunnerFuture"]


@derived_object
class DummyMutator(PyMutator):
    """Mutator that samples all decisions again."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        pass

    def apply(self, trace: Trace, _: int) -> Trace | None:
        """Return the trace without its decisions."""
        return Trace(trace.insts, {})

    def clone(self) -> Any:
        """Return another mutator."""
        return DummyMutator()


@derived_object
class DummyBuilder(PyBuilder):
    """Builder that reports success without a build."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Return the path of a nonexistent file for each input."""
        return [BuilderResult("test_path", None) for _ in build_inputs]


@derived_object
class DummyRunnerFuture(PyRunnerFuture):
    """Future that is always done."""

    def done(self) -> bool:
        """Return True."""
        return True

    def result(self) -> RunnerResult:
        """Return random seconds."""
        return RunnerResult([random.uniform(5, 30) for _ in range(random.randint(1, 10))], None)


@derived_object
class DummyRunner(PyRunner):
    """Runner that reports random times without a run."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[Any]:
        """Return a future for each input."""
        return [DummyRunnerFuture() for _ in runner_inputs]
