"""Run a program in the reference interpreter: as a whole, or single elements by a backward slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core
from tilewright.errors import Error, ScriptError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.task.task import Parameter, Task

    Array = NDArray[Any]

Point = tuple[int, ...]

#: error codes of the interpreter for programs that it cannot run; they prove nothing about the program
CANNOT_RUN = ("interpret/unsupported", "interpret/undefined", "interpret/no-function")


def is_proof(error: Error) -> bool:
    """Return whether an error proves that the program has undefined behavior; unsupported programs and timeouts prove
    nothing."""
    return isinstance(error, ScriptError) and error.code not in CANNOT_RUN


def interpreted(module: Any, function: str, arrays: Mapping[str, Array], seconds: float) -> dict[str, Array]:
    """Return the values of all arguments after a call.

    Raises:
        tilewright.ScriptError: the program has undefined behavior, or an operation that the interpreter does not
            support.
        tilewright.ResourceError: the call takes longer than `seconds`.
    """
    after = {name: array.copy() for name, array in arrays.items()}
    _core.interpret(module, function, *after.values(), timeout=seconds)
    return after


def interpreted_at(
    module: Any, function: str, arrays: Mapping[str, Array], points: Mapping[str, Sequence[Point]], seconds: float
) -> dict[str, list[tuple[Point, Any]]]:
    """Return the requested elements that could be computed, with their values after a call.

    Raises:
        tilewright.ScriptError: the program has undefined behavior, or an operation that the interpreter does not
            support.
        tilewright.ResourceError: the call takes longer than `seconds`.
    """
    positions = {name: position for position, name in enumerate(arrays)}
    wanted = {positions[name]: list(places) for name, places in points.items()}
    values = _core.interpret_at(module, function, *arrays.values(), points=wanted, timeout=seconds)
    found = {name: zip(wanted[positions[name]], values[positions[name]], strict=True) for name in points}
    return {name: [(at, value) for at, value in known if value is not None] for name, known in found.items()}


def difference(task: Task, parameter: Parameter, want: Array, got: Array) -> str:
    """Return how two results for a parameter differ by more than the rounding of reassociated sums; "" if they do
    not."""
    problem: str = _core.compare_arrays(
        parameter.name,
        want.tobytes(),
        got.tobytes(),
        parameter.dtype,
        list(want.shape),
        max(task.reduction_length, 1),
        task.accumulation_dtype(parameter),
    )
    return problem


def sample_points(shape: tuple[int, ...], count: int, generator: np.random.Generator) -> list[Point]:
    """Return distinct indices by priority: the two corners first, then random ones, which favor edges."""
    if 0 in shape:
        return []
    points = [tuple(0 for _ in shape), tuple(n - 1 for n in shape)]
    for _ in range(4 * count):
        kinds = generator.integers(0, 4, len(shape))  # first two, last two, anywhere twice as often
        near = generator.integers(0, 2, len(shape))
        anywhere = [int(generator.integers(0, n)) for n in shape]
        choices = zip(kinds, near, anywhere, shape, strict=True)
        points.append(
            tuple(
                min(int(step), n - 1) if kind == 0 else max(n - 1 - int(step), 0) if kind == 1 else at
                for kind, step, at, n in choices
            )
        )
    return list(dict.fromkeys(points))[:count]


def like(error: Error, text: str) -> ScriptError:
    """Return a copy of an error with another text."""
    other = ScriptError(text)
    other.code, other.message, other.span = error.code, error.message, error.span
    return other


def with_hint_on_inputs(error: Error, task: Task, inputs: Mapping[str, Any], where: str) -> Error:
    """Return an error with a hint that the random values of integer inputs may be its cause; `where` names the
    parameter or option for other values."""
    sampled = [p.name for p in task.parameters if p.role == "input" and "int" in p.dtype and p.name not in inputs]
    needed = {"interpret/out-of-bounds": "arrays of indices", "interpret/divide-by-zero": "arrays without zeros"}
    if error.code not in needed:
        return error
    text = str(error).partition("\n  hint:")[0]
    given = [p.name for p in task.parameters if p.role == "input" and "int" in p.dtype and p.name in inputs]
    if not sampled and given:
        return like(
            error,
            f"{text}\n  hint: with the values of {', '.join(given)} in inputs=; if these are what calls have, the "
            "program has to check them",
        )
    if not sampled:
        return error
    return like(
        error,
        f"{text}\n  hint: {', '.join(sampled)} held random values; give {needed[error.code]} with "
        f"inputs={{{sampled[0]!r}: array}}, in {where}",
    )
