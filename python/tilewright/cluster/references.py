"""Check the unscheduled program's results: they count if the interpreter agrees with them, or a second worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tilewright import _core
from tilewright.errors import Error
from tilewright.support.numpy_dtype import numpy_dtype


class References:
    """Outputs of one program as its workers compute them.

    Args:
        outputs: name, dtype and shape of each output and in-out argument, in their order.
        reduction_length: what the tolerance follows from.
        rounding: by how much more results may differ, by output, once the outputs were judged.
        judge: raises an error if these are not the outputs of the program, by name; its first value is "unchecked" if
            it could not find out.
    """

    def __init__(
        self,
        outputs: list[tuple[str, str, tuple[int, ...]]],
        reduction_length: int,
        rounding: Callable[[], Mapping[str, float]],
        judge: Callable[[dict[str, bytes]], tuple[str, object]],
    ) -> None:
        self._outputs, self._reduction_length = outputs, reduction_length
        self._rounding, self._judge = rounding, judge
        #: bytes of each output
        self.sizes = [numpy_dtype(dtype).itemsize * math.prod(shape) for _, dtype, shape in outputs]
        self._expected: list[bytes] | None = None
        self.is_checked = False  #: whether the judge found out
        #: outputs by worker, while nothing shows which are right
        self.witnesses: dict[str, list[bytes]] = {}

    def judge(self, outputs: list[bytes]) -> str:
        """Return why these are not the outputs of the program; "" if they may be."""
        try:
            extent, _ = self._judge({name: got for (name, *_), got in zip(self._outputs, outputs, strict=True)})
        except Error as error:
            return f"the program as it was written is wrong there: {error.message or error}"
        self.is_checked = extent != "unchecked"
        return ""

    def witness(self, worker: str, outputs: list[bytes]) -> dict[str, str] | None:
        """Record what a worker computes. If another worker computes the same, return the ones that differ from these
        two, and how; else None."""
        self.witnesses.pop(worker, None)
        problems = {other: self._compare(outputs, known) for other, known in self.witnesses.items()}
        self.witnesses[worker] = outputs
        if all(problems.values()):
            return None
        return {other: problem for other, problem in problems.items() if problem}

    def difference(self, outputs: list[bytes]) -> str:
        """Return how outputs differ from the first ones that were accepted, which these are if there are none; "" if
        they do not."""
        if self._expected is None:
            self._expected = list(outputs)
        return self._compare(self._expected, outputs)

    def _compare(self, expected: list[bytes], outputs: list[bytes]) -> str:
        for (name, dtype, shape), first, second in zip(self._outputs, expected, outputs, strict=True):
            if first == second:
                continue
            problem = _core.compare_arrays(name, first, second, dtype, list(shape), self._reduction_length)
            if problem and name not in self._rounding():
                return str(problem)
        return ""


def disagreement(workers: str) -> bytes:
    """Return the result of a program of which workers compute different results, while nothing shows which are right.

    Args:
        workers: their names.
    """
    return _core.failed_measurement(
        "run_error",
        "cluster/workers-disagree",
        f"workers {workers} compute different results of the program as it was written, and the interpreter takes "
        "too long to decide which are right",
        "add a third worker of this kind, or remove the one that is wrong",
    )
