"""Validate the reference outputs of the unscheduled program on each worker: they are accepted if the interpreter
agrees, or a second worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tilewright import _core
from tilewright.errors import Error
from tilewright.support.numpy_dtype import numpy_dtype


class References:
    """Outputs of the unscheduled program on each worker, and which of them are right.

    Args:
        outputs: name, dtype and shape of each output and in-out argument, in their order.
        reduction_length: length of the longest reduction, which determines the tolerance.
        rounding: extra tolerance by output, known once outputs were checked.
        judge: compares outputs, by name, with the interpreter. Raises an error if they are wrong; its first value is
            "unchecked" if the interpreter takes too long.
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
        self.is_checked = False  #: whether the interpreter has checked outputs
        #: outputs by worker, until some are accepted
        self.recorded: dict[str, list[bytes]] = {}

    def check_with_interpreter(self, outputs: list[bytes]) -> str:
        """Return how outputs differ from the interpreter's; "" if they agree or the interpreter takes too long."""
        try:
            extent, _ = self._judge({name: got for (name, *_), got in zip(self._outputs, outputs, strict=True)})
        except Error as error:
            return f"the unscheduled program computes wrong results on this worker: {error.message or error}"
        self.is_checked = extent != "unchecked"
        return ""

    def record_worker(self, worker: str, outputs: list[bytes]) -> dict[str, str] | None:
        """Record the outputs of a worker. If they agree with another worker's, return how the remaining workers
        differ; else None."""
        self.recorded.pop(worker, None)
        problems = {other: self._compare(outputs, known) for other, known in self.recorded.items()}
        self.recorded[worker] = outputs
        if all(problems.values()):
            return None
        return {other: problem for other, problem in problems.items() if problem}

    def compare_or_set_reference(self, outputs: list[bytes]) -> str:
        """Compare outputs with the reference, and return the difference or "". The first call sets the reference."""
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
    """Return the failed measurement of a program whose workers disagree, without a majority.

    Args:
        workers: names of the workers.
    """
    return _core.failed_measurement(
        "run_error",
        "cluster/workers-disagree",
        f"workers {workers} compute different results of the unscheduled program, and the interpreter takes too "
        "long to decide which are right",
        "add a third worker of this kind, or remove the one that is wrong",
    )
