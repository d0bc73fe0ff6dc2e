"""Arguments to try a program with: random where nothing is known, and what it should compute from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.errors import ArgumentError
from tilewright.numpy_dtype import numpy_dtype
from tilewright.timing import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.kernel import Kernel

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

    @property
    def program(self) -> ir.PrimFunc:
        """The function itself."""
        return _prim_func(self.module, self.function)

    def compile(self, scheduled: Any = None, target: str = "native") -> Kernel:
        """The kernel of the function, of the program as it is or as a schedule has made it."""
        from tilewright.kernel import KernelModule, compile_quietly

        kernel = compile_quietly(self.module if scheduled is None else scheduled, target)
        return kernel[self.entry] if isinstance(kernel, KernelModule) else kernel


def _prim_func(module: ir.Module, name: str) -> ir.PrimFunc:
    function = module.functions[name]
    if not isinstance(function, ir.PrimFunc):
        raise ArgumentError(f"the function {name} is no tensor program, so it cannot be tuned")
    return function


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
    program_function = _prim_func(module, function)
    entry = program_function.attrs.get("global_symbol")
    if entry is None:
        raise ArgumentError(f"the function {function} is private, so no kernel of that name exists")
    facts = _core.analyze_workload(program_function)
    parameters = tuple(Parameter(name, dtype, tuple(shape), role) for name, dtype, shape, role in facts["params"])
    floats = [p.dtype for p in parameters if "float" in p.dtype]
    work = Work(facts["flops"] or facts["int_ops"], facts["bytes"], floats[0] if floats else "int32", facts["exact"])
    return Task(module, function, entry, parameters, work, int(facts["reduction_length"]))


def work_of(function: ir.PrimFunc, args: Sequence[Any]) -> Work:
    """What a call with these arguments computes and moves; they give symbolic sizes and scalars their values."""
    sizes: dict[ir.Var, int] = {}
    dtypes: list[str] = []
    for param, value in zip(function.params, args, strict=True):
        buffer = function.buffer_map.get(param)
        if buffer is None:
            if isinstance(value, int | np.integer):
                sizes[param] = int(value)
            continue
        dtypes.append(buffer.dtype)
        shape = value.shape if hasattr(value, "shape") else np.shape(value)
        sizes |= {extent: n for extent, n in zip(buffer.shape, shape, strict=True) if isinstance(extent, ir.Var)}
    constants: dict[Any, Any] = {var: ir.IntImm(var.dtype, n) for var, n in sizes.items()}
    sized = _core.substitute(function, constants)
    assert isinstance(sized, ir.PrimFunc)
    facts = _core.analyze_work(sized)
    floats = [dtype for dtype in dtypes if "float" in dtype]
    return Work(facts["flops"] or facts["int_ops"], facts["bytes"], floats[0] if floats else "int32", facts["exact"])


def random_array(parameter: Parameter, generator: np.random.Generator) -> Array:
    """Signed random values: floats in [-1, 1), integers small enough that sums of a few thousand fit."""
    dtype = numpy_dtype(parameter.dtype)
    if parameter.dtype == "bool":
        return generator.integers(0, 2, parameter.shape).astype(bool)
    if "float" in parameter.dtype:
        return (generator.random(parameter.shape, dtype=np.float32) * 2 - 1).astype(dtype)
    low, high = (0, 8) if parameter.dtype.startswith("uint") else (-8, 8)
    return generator.integers(low, high, parameter.shape).astype(dtype)


def aligned(array: Array) -> Array:
    """A copy that begins at a multiple of 64 bytes, as the arguments of candidates do: where vectors cross the lines of
    the cache, a kernel takes up to half as long again."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


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
            fill = (
                np.nan if "float" in parameter.dtype else (False if parameter.dtype == "bool" else np.iinfo(dtype).min)
            )
            arrays[parameter.name] = np.full(parameter.shape, fill, dtype)
        else:
            arrays[parameter.name] = random_array(parameter, generator)
    return arrays
