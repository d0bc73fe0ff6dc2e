"""Check the compiled, unscheduled program against the reference interpreter. Candidates are compared with this program.

Each check is limited to about two seconds:

- all outputs on a small instance, if ``_core.shrink`` can reduce the sizes;
- sampled output elements at full size, each by a backward slice (``tw.ir.interpret_at``);
- all outputs at full size, if the sizes cannot be reduced or a fault at small sizes has to be confirmed.
"""

from __future__ import annotations

import contextlib
import math
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.errors import ArgumentError, Error, InternalError, ResourceError, ScriptError
from tilewright.kernel.kernel import compile_task
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.task.arguments import given_array, make_arrays
from tilewright.task.reference import (
    difference,
    interpreted,
    interpreted_at,
    is_proof,
    like,
    sample_points,
    with_hint_on_inputs,
)
from tilewright.task.task import Parameter, Task, task_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: time limit of one check, in seconds
CHECK_SECONDS = 2.0
#: maximum number of sampled elements of each output
POINTS = 24


@dataclass(frozen=True)
class Verdict:
    """How the unscheduled program was checked against the interpreter.

    Attributes:
        extent: at full size: "full", "sampled" (single elements) or "unchecked".
        note: which checks were made, or why there was none.
    """

    extent: str
    note: str

    @property
    def checked(self) -> bool:
        """Return whether outputs were checked at full size."""
        return self.extent != "unchecked"


#: allowed error, in multiples of the change of the outputs when each input changes by one ULP
_ERROR_AMPLIFICATION = 64
#: candidates may contract other multiply-adds to FMA than the unscheduled program: factor on the difference seen
#: between FMA and separate rounding
_FMA_MARGIN = 4
#: maximum difference explained by FMA contraction, relative to the larger of inputs and results
_MAX_FMA_DIFFERENCE = 1e-3
#: largest tolerance, relative to the RMS of the results, at which wrong results are still detected
_MAX_TOLERANCE = 0.1
#: a target without FMA instructions
_TARGET_WITHOUT_FMA = "llvm -mcpu=x86-64"
#: machine epsilon: relative distance of 1 to the next larger number
_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
#: float types with fewer digits than their accumulators, lowest precision first
_LOW_PRECISION = ("bfloat16", "float16")
#: the APIs that take arrays
_TAKES_INPUTS = "tw.tune or in tw.space"


def lowest_intermediate_precision(program: ir.PrimFunc) -> str | None:
    """Return the lowest-precision float type that intermediate values are rounded to; None if there is none."""
    outputs = set(program.buffer_map.values())
    found: set[str] = set()

    def rounds(node: ir.Node, dtype: str) -> bool:
        if isinstance(node, ir.Cast):
            return node.dtype == dtype and node.value.dtype in ("float32", "float64")
        return isinstance(node, ir.Add | ir.Sub | ir.Mul | ir.Div) and node.dtype == dtype

    def visit_store(node: ir.Node) -> None:
        if isinstance(node, ir.BufferStore) and node.buffer not in outputs and node.buffer.dtype in _LOW_PRECISION:
            dtype = node.buffer.dtype
            ir.visit(node.value, lambda inner: found.add(dtype) if rounds(inner, dtype) else None)

    ir.visit(program, visit_store)
    return next((dtype for dtype in _LOW_PRECISION if dtype in found), None)


class ReferenceCheck:
    """The interpreter's results for one program and its arguments, to check the compiled program's results."""

    def __init__(
        self,
        task: Task,
        inputs: Mapping[str, Any],
        arrays: dict[str, Array],
        *,
        check_seconds: float = CHECK_SECONDS,
    ) -> None:
        self.check_seconds = check_seconds
        self.task, self.inputs, self.arrays = task, inputs, arrays
        self.outputs = [p for p in task.parameters if p.role != "input"]
        self.notes: list[str] = []
        #: outputs from the interpreter, if the program is small enough
        self.expected: dict[str, Array] = {}
        #: sampled elements: (index, value) by output
        self.sampled_elements: dict[str, list[tuple[tuple[int, ...], Any]]] = {}
        #: extra absolute tolerance by output, because its rounding errors are amplified
        self.extra_tolerance: dict[str, float] = {}
        #: the lowest-precision float type of intermediate values
        self.low_precision = lowest_intermediate_precision(task.program)
        #: why the check is incomplete
        self.reason = "the interpreter takes too long"
        self.verdict: Verdict | None = None

    def prepare(self) -> None:
        """Run the checks that need no results of the compiled program at full size.

        Raises:
            tilewright.ScriptError: the program itself is wrong (out of bounds, uninitialized memory, a race), or its
                inputs are.
            tilewright.InternalError: compiled code and interpreter differ on small shapes.
        """
        small = _core.shrink(self.task.program)
        if _core.structural_equal(small, self.task.program):
            self._interpret_all()
        else:
            self._check_small(task_of(small, labels=[p.name for p in self.task.parameters]))
        if not self.expected:
            self._interpret_points()

    def compare(self, results: Mapping[str, bytes]) -> str:
        """Compare the results of the compiled program with the interpreter's; return the extent of the check.

        Raises:
            tilewright.InternalError: the results differ.
        """
        for parameter in self.outputs:
            dtype = numpy_dtype(parameter.dtype)
            got = np.frombuffer(results[parameter.name], dtype).reshape(parameter.shape)
            self._allow_for_low_precision(parameter, got)
            if parameter.name in self.expected:
                self._compare_all(self.task, self.arrays, parameter, self.expected[parameter.name], got, "")
            if points := self.sampled_elements.get(parameter.name):
                # The tolerance is relative to the root mean square of all results, not only of the sampled ones.
                allowed = _core.allowance(
                    results[parameter.name],
                    parameter.dtype,
                    self.task.reduction_length,
                    self.task.accumulation_dtype(parameter),
                )
                for point, value in points:
                    self._compare_element(parameter, point, value, got, allowed)
        count = sum(map(len, self.sampled_elements.values()))
        if self.expected or not self.outputs:
            text = "unscheduled program: all results agree with the interpreter"
            self.verdict = Verdict("full", "; ".join([text, *self.notes]))
        elif count:
            text = f"unscheduled program: {count} sampled results agree with the interpreter, at full size"
            self.verdict = Verdict("sampled", "; ".join([text, *self.notes]))
        else:
            text = f"unscheduled program: unchecked at full size ({self.reason})"
            self.verdict = Verdict("unchecked", "; ".join([text, *self.notes]))
        return self.verdict.extent

    def _allow_for_low_precision(self, parameter: Parameter, got: Array) -> None:
        """Allow for intermediate sums that are rounded to a low-precision type. Another order of terms changes some of
        them by one unit in the last place, which shows in results of which only a few are compared here."""
        if self.low_precision is None or "float" not in parameter.dtype:
            return
        finite = got.astype(np.float64)[np.isfinite(got.astype(np.float64))]
        if not finite.size:
            return
        more = _EPSILON[self.low_precision] / 2 * float(np.sqrt(np.mean(finite**2)))
        if more > self.extra_tolerance.get(parameter.name, 0.0):
            self.extra_tolerance[parameter.name] = more
            note = f"intermediate values are {self.low_precision}: results in {parameter.name} may differ by {more:.2g}"
            self.notes.append(note)

    def _interpret_all(self) -> None:
        try:
            after = interpreted(self.task.module, self.task.function, self.arrays, self.check_seconds)
        except (ResourceError, ScriptError) as error:
            self._raise_if_proved(error)
            return
        self.expected = {p.name: after[p.name] for p in self.outputs}

    def _check_small(self, small: Task) -> None:
        arrays = make_arrays(small, self._small_inputs(small), seed=1)
        shapes = ", ".join(f"{p.name}{list(p.shape)}" for p in small.parameters)
        try:
            expected = interpreted(small.module, small.function, arrays, self.check_seconds)
        except (ResourceError, ScriptError) as error:
            if not is_proof(error):
                return
            # Prefer to report the error at the user's own shapes, if it also occurs there within the time limit.
            self._interpret_all()
            if self.expected:
                return
            text = f"{error}\n  (at the small shapes {shapes}, which the program scales to)"
            raise with_hint_on_inputs(like(error, text), self.task, self.inputs, _TAKES_INPUTS) from None
        results = {name: array.copy() for name, array in arrays.items()}
        compile_task(small)(*results.values())
        for parameter in small.parameters:
            if parameter.role != "input":
                name = parameter.name
                self._compare_all(small, arrays, parameter, expected[name], results[name], " at small shapes")
        self.notes.append(f"all results at {shapes}")

    def _small_inputs(self, small: Task) -> dict[str, Array]:
        """Return the leading elements of the user's arrays. Dimensions that data indexes are not shrunk, so index
        values stay valid."""
        return {
            p.name: np.asarray(given_array(p.name, self.inputs[p.name])[tuple(slice(n) for n in p.shape)], order="C")
            for p in small.parameters
            if p.name in self.inputs
        }

    def _interpret_points(self) -> None:
        generator = np.random.default_rng(3)
        wanted = {p.name: sample_points(p.shape, POINTS, generator) for p in self.outputs}
        end = time.monotonic() + self.check_seconds
        # Outputs alternate, so that each gets samples within the time limit. Few calls: statements that cannot be
        # sliced run once per call.
        for first in range(0, POINTS, POINTS // 3):
            part = {name: points[first : first + POINTS // 3] for name, points in wanted.items()}
            left = end - time.monotonic()
            if left <= 0:
                return
            try:
                values = interpreted_at(self.task.module, self.task.function, self.arrays, part, left)
            except (ResourceError, ScriptError) as error:
                self._raise_if_proved(error)
                return
            for name, known in values.items():
                if known:
                    self.sampled_elements.setdefault(name, []).extend(known)

    def _raise_if_proved(self, error: ResourceError | ScriptError) -> None:
        if is_proof(error):
            raise with_hint_on_inputs(error, self.task, self.inputs, _TAKES_INPUTS) from None
        self.reason = error.message or str(error)

    def _compare_all(
        self, task: Task, arrays: dict[str, Array], parameter: Parameter, want: Array, got: Array, where: str
    ) -> None:
        problem = difference(task, parameter, want, got)
        if problem:
            self._accept_rounding_or_raise(
                task,
                parameter,
                f"{where}: {problem}",
                want,
                got,
                lambda: self._unfused(task, arrays)[parameter.name],
                lambda: self._all_of(task, parameter, self._with_perturbed_inputs(arrays)),
            )

    def _all_of(self, task: Task, parameter: Parameter, arrays: dict[str, Array]) -> Array:
        return interpreted(task.module, task.function, arrays, self.check_seconds)[parameter.name]

    def _unfused(self, task: Task, arrays: dict[str, Array]) -> dict[str, Array]:
        """Return the results of a kernel that rounds each product before adding it, as the interpreter does."""
        if platform.machine() != "x86_64":
            raise ResourceError.of("tune/rounding", "kernels for this processor always fuse")
        results = {name: array.copy() for name, array in arrays.items()}
        compile_task(task, target=_TARGET_WITHOUT_FMA)(*task.call(results).values())
        return results

    def _with_perturbed_inputs(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Return the arrays with each float input perturbed by one ULP up or down."""
        generator = np.random.default_rng(7)
        perturbed = {}
        for name, array in arrays.items():
            epsilon = _EPSILON.get(str(array.dtype), 0.0)
            factors = 1 + epsilon * (2 * generator.integers(0, 2, array.shape) - 1)
            perturbed[name] = (array.astype(np.float64) * factors).astype(array.dtype) if epsilon else array
        return perturbed

    def _tolerance_for_rounding(
        self,
        task: Task,
        parameter: Parameter,
        want: Array,
        got: Array,
        unfused: Callable[[], Array],
        perturbed: Callable[[], Array],
    ) -> float:
        """Return the absolute tolerance for a difference that rounding explains; infinity if rounding does not explain
        it.

        Rounding is the cause if a kernel that rounds as the interpreter does agrees with it, or if the interpreter's
        own results change as much when the inputs change by one ULP.
        """
        if "float" not in parameter.dtype:
            return math.inf
        known = want.astype(np.float64)
        change = np.abs(got.astype(np.float64) - known)
        with contextlib.suppress(Error):
            size = max([float(np.abs(known).max()), *self._largest_inputs()])
            if change.max() <= _MAX_FMA_DIFFERENCE * size and not difference(task, parameter, want, unfused()):
                return float(_FMA_MARGIN * change.max())
        with contextlib.suppress(ResourceError, ScriptError):
            allowed = _ERROR_AMPLIFICATION * np.abs(perturbed().astype(np.float64) - known).max()
            return float(allowed) if (change <= allowed).all() else math.inf
        return math.inf

    def _accept_rounding_or_raise(
        self,
        task: Task,
        parameter: Parameter,
        text: str,
        want: Array,
        got: Array,
        unfused: Callable[[], Array],
        perturbed: Callable[[], Array],
    ) -> None:
        """Accept a difference that rounding explains, with a larger tolerance, unless wrong results could then no
        longer be detected.

        Raises:
            tilewright.InternalError: rounding is not the cause.
            tilewright.ArgumentError: wrong results could no longer be detected.
        """
        known = want.astype(np.float64)
        tolerance = self._tolerance_for_rounding(task, parameter, want, got, unfused, perturbed)
        if not tolerance < np.inf:
            raise InternalError.of("tune/reference", f"the compiled program differs from the interpreter{text}")
        if tolerance <= _MAX_TOLERANCE * np.sqrt(np.mean(known**2)):
            self.extra_tolerance[parameter.name] = max(tolerance, self.extra_tolerance.get(parameter.name, 0.0))
            note = f"rounding errors are amplified in {parameter.name}: results may differ by {tolerance:.2g}"
            self.notes = [*(n for n in self.notes if not n.startswith(note[: note.index(":")])), note]
            return
        sampled = [
            p.name for p in task.parameters if p.role == "input" and "float" in p.dtype and p.name not in self.inputs
        ]
        usual = ", ".join(f"{name!r}: array" for name in sampled)
        raise ArgumentError.of(
            "tune/rounding",
            f"with {'random values' if sampled else 'these inputs'} rounding grows too much in '{task.entry}' to "
            f"distinguish right and wrong results{text}",
            f"give arrays as in usual calls: inputs={{{usual}}}, in {_TAKES_INPUTS}"
            if sampled
            else "compute what grows in float64, or give other arrays (smaller ones, or fewer steps)",
        )

    def _largest_inputs(self) -> list[float]:
        """Return the largest finite element of each float input."""
        floats = [self.arrays[p.name] for p in self.task.parameters if p.role != "output" and "float" in p.dtype]
        return [float(np.abs(np.where(np.isfinite(each), each, 0)).max(initial=0)) for each in floats]

    def _compare_element(
        self, parameter: Parameter, point: tuple[int, ...], value: Any, got: Array, allowed: tuple[float, float]
    ) -> None:
        want, have = (float(value), float(got[point])) if "float" in parameter.dtype else (value, got[point].item())
        relative, absolute = allowed
        if want == have or (want != want and have != have):  # both are NaN
            return
        # An infinite result must match exactly.
        if math.isfinite(want) and abs(have - want) <= relative * abs(want) + absolute:
            return

        def perturbed() -> Array:
            points = {parameter.name: [point]}
            arrays = self._with_perturbed_inputs(self.arrays)
            values = interpreted_at(self.task.module, self.task.function, arrays, points, self.check_seconds)
            return np.array([other for _, other in values[parameter.name]] or [want])

        def unfused() -> Array:
            return np.array([self._unfused(self.task, self.arrays)[parameter.name][point]])

        text = f": {parameter.name}{list(point)} is {have}, not {want}"
        dtype = got.dtype
        self._accept_rounding_or_raise(
            self.task, parameter, text, np.array([want], dtype), np.array([have], dtype), unfused, perturbed
        )
