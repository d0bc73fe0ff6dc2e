"""Arguments to try a program with: random where nothing is known, and what it should compute from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.errors import ArgumentError, ScriptError
from tilewright.timing import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a program: ``role`` is "input", "output" or "inout" (read before it is written)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str


@dataclass(frozen=True)
class Task:
    """A program with constant shapes, and what is known of it by looking at it.

    Attributes:
        function: its name in the module.
        entry: the name that its kernel is exported under.
        reduction_length: the longest sum that a result depends on; error bounds grow with its root.
        work: operations and compulsory traffic of one call.
    """

    module: ir.Module
    function: str
    entry: str
    parameters: tuple[Parameter, ...]
    work: Work
    reduction_length: int


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """NumPy's dtype for one of ours; the narrow floats are ml_dtypes'."""
    if dtype.startswith(("bfloat", "float8", "float4")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, dtype))
    return np.dtype(dtype)


def task_of(program: ir.PrimFunc | ir.Module) -> Task:
    """Looks at a program.

    Raises:
        tilewright.ArgumentError: a module with several functions and none called "main"; a parameter whose size is not
            constant, or that is neither a buffer nor has a value.
    """
    module = ir.Module({"main": program}) if isinstance(program, ir.PrimFunc) else program
    names = list(module.functions)
    function = names[0] if len(names) == 1 else "main"
    if function not in names:
        raise ArgumentError(
            f"the module has the functions {', '.join(names)}; which one is to be tuned?\n"
            "  hint: call one of them main, or pass a module with that function alone"
        )
    entry = module.functions[function].attrs.get("global_symbol")
    if entry is None:
        raise ArgumentError(f"the function {function} is private, so no kernel of that name exists")
    facts = _core.analyze_workload(module.functions[function])
    parameters = tuple(Parameter(name, dtype, tuple(shape), role) for name, dtype, shape, role in facts["params"])
    floats = [p.dtype for p in parameters if "float" in p.dtype]
    work = Work(facts["flops"] or facts["int_ops"], facts["bytes"], floats[0] if floats else "int32", facts["exact"])
    return Task(module, function, entry, parameters, work, int(facts["reduction_length"]))


def random_array(parameter: Parameter, generator: np.random.Generator) -> Array:
    """Signed random values: floats in [-1, 1), integers small enough that sums of a few thousand fit."""
    dtype = numpy_dtype(parameter.dtype)
    if parameter.dtype == "bool":
        return generator.integers(0, 2, parameter.shape).astype(bool)
    if "float" in parameter.dtype:
        return (generator.random(parameter.shape, dtype=np.float32) * 2 - 1).astype(dtype)
    low, high = (0, 8) if parameter.dtype.startswith("uint") else (-8, 8)
    return generator.integers(low, high, parameter.shape).astype(dtype)


def make_arrays(task: Task, inputs: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """An array for each parameter, in order: given ones from `inputs`, the others random; outputs are filled with NaN
    or the type's smallest value.

    Raises:
        tilewright.ArgumentError: `inputs` names no parameter, or holds an array of another dtype or shape.
    """
    unknown = set(inputs) - {p.name for p in task.parameters}
    if unknown:
        known = ", ".join(p.name for p in task.parameters)
        raise ArgumentError(f"inputs has {', '.join(sorted(unknown))}, but the parameters are {known}")
    generator = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for parameter in task.parameters:
        dtype = numpy_dtype(parameter.dtype)
        if parameter.name in inputs:
            value = np.asarray(inputs[parameter.name])
            if value.dtype != dtype or value.shape != parameter.shape:
                raise ArgumentError(
                    f"inputs[{parameter.name!r}]: expected {parameter.dtype}{list(parameter.shape)}, got "
                    f"{value.dtype}{list(value.shape)}\n  hint: pass an array of exactly that dtype and shape"
                )
            arrays[parameter.name] = np.ascontiguousarray(value)
        elif parameter.role == "output":
            fill = np.nan if "float" in parameter.dtype else (False if dtype == bool else np.iinfo(dtype).min)
            arrays[parameter.name] = np.full(parameter.shape, fill, dtype)
        else:
            arrays[parameter.name] = random_array(parameter, generator)
    return arrays


@dataclass(frozen=True)
class Verdict:
    """Whether the compiled untuned program agrees with the interpreter on small shapes; `note` says what was done."""

    checked: bool
    note: str


def check_untuned(task: Task) -> Verdict:
    """Compiles the program with its shapes made small, runs it, and compares with the reference interpreter.

    Raises:
        tilewright.ScriptError: the program itself is wrong (out of bounds, uninitialized memory, a race).
        tilewright.InternalError: the two differ.
    """
    from tilewright.kernel import compile as compile_program

    small = task_of(_core.shrink(task.module.functions[task.function]))
    arrays = make_arrays(small, {}, seed=1)
    expected = {name: array.copy() for name, array in arrays.items()}
    try:
        compile_program(small.module, target="interpreter")(*expected.values())
    except ScriptError as error:
        if small.module is not task.module and any("int" in p.dtype for p in small.parameters):
            return Verdict(
                False, f"not checked against the interpreter: no valid inputs for small shapes ({error.code})"
            )
        raise
    compile_program(small.module)(*arrays.values())
    for parameter in small.parameters:
        if parameter.role == "input":
            continue
        problem = _core.compare_arrays(
            parameter.name,
            expected[parameter.name].tobytes(),
            arrays[parameter.name].tobytes(),
            parameter.dtype,
            list(parameter.shape),
            small.reduction_length,
        )
        if problem:
            from tilewright.errors import InternalError

            raise InternalError(f"the compiled program differs from the interpreter at small shapes: {problem}")
    shapes = ", ".join(f"{p.name}{list(p.shape)}" for p in small.parameters)
    return Verdict(True, f"untuned program checked against the interpreter at {shapes}")
