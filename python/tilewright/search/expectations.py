"""Arguments of a search's kernels, and the expected results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.search import reference_check
from tilewright.search.reference_check import ReferenceCheck, Verdict
from tilewright.task.arguments import kernel_arguments, make_arrays
from tilewright.task.task import Task

#: maximum seconds of one call of the unscheduled program
REFERENCE_DEADLINE = 300.0
#: maximum share of a short search's seconds for one run of the interpreter
CHECK_SHARE = 0.1


class Expectations:
    """Arguments of a task, and the results of the unscheduled program, with which every candidate is compared.

    Args:
        task: the program.
        inputs: arguments for which random values make no sense, by name.
        seed: seed of the other arguments.
        seconds: time limit of the search; None for no limit.
    """

    def __init__(self, task: Task, inputs: Mapping[str, Any], seed: int, *, seconds: float | None = None) -> None:
        self.task, self.inputs, self.seed = task, inputs, seed
        longest = reference_check.CHECK_SECONDS
        self.check_seconds = longest if seconds is None else min(longest, CHECK_SHARE * seconds)
        self.check: ReferenceCheck | None = None

    @property
    def verdict(self) -> Verdict | None:
        """Return how the unscheduled program was itself checked; None before that."""
        return self.check.verdict if self.check else None

    def arguments(self) -> list[tuple[Any, ...]]:
        """Return the arguments of the kernels: for each array its description and initial bytes, then those of
        scalars."""
        initial = make_arrays(self.task, self.inputs, self.seed)
        self.check = ReferenceCheck(self.task.sized, self.inputs, initial, check_seconds=self.check_seconds)
        self.check.prepare()
        return kernel_arguments(self.task, initial)

    def judge(self, outputs: dict[str, bytes]) -> tuple[str, dict[str, float]]:
        """Compare the outputs of the unscheduled program with those of the interpreter.

        Returns:
            How much was compared, in words, and by how much more the outputs of candidates may differ, by name, if the
            program amplifies rounding errors.
        """
        assert self.check is not None
        return self.check.compare(outputs), self.check.extra_tolerance
