"""Arguments to run a program with: random arrays, unless the caller or the program determines their values."""

from __future__ import annotations

import hashlib
import math
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError, ResourceError
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.task.declared_values import declared_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.task.task import Parameter, Task

    Array = NDArray[Any]


def random_array(parameter: Parameter, generator: np.random.Generator, *, with_ties: bool = False) -> Array:
    """Return random signed values: floats in [-1, 1), integers small enough that sums of a few thousand fit.

    Floats rarely repeat. `with_ties` samples multiples of 1/4: an argmax of equal elements shows which one it selects.
    """
    values: Any
    if parameter.dtype == "bool":
        values = generator.integers(0, 2, parameter.shape)
    elif "float" in parameter.dtype:
        values = generator.random(parameter.shape, dtype=np.float32) * 2 - 1
        values = np.floor(values * 4) / 4 if with_ties else values
    else:
        low, high = (0, 8) if parameter.dtype.startswith("uint") else (-8, 8)
        values = generator.integers(low, high, parameter.shape)
    # For an empty shape, NumPy samples a scalar instead of an array.
    return np.asarray(values).astype(numpy_dtype(parameter.dtype))


def aligned_zeros(shape: Sequence[int], dtype: Any) -> Array:
    """Return zeros aligned to 64 bytes. If vectors cross cache lines, a kernel takes up to 1.5 times as long; NumPy
    aligns its own arrays to 16 bytes only."""
    return _aligned(np.zeros, shape, dtype)


def aligned_empty(shape: Sequence[int], dtype: Any) -> Array:
    """Return an array aligned to 64 bytes whose elements are undefined: for results that are stored completely."""
    return _aligned(np.empty, shape, dtype)


def _aligned(allocate: Callable[[int, Any], Array], shape: Sequence[int], dtype: Any) -> Array:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = allocate(size + 64, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64
    array: Array = memory[start : start + size].view(dtype).reshape(shape)
    return array


def aligned(array: Array) -> Array:
    """Return a copy aligned to 64 bytes, as the arguments of candidates are."""
    copy = aligned_zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def _unwritten(parameter: Parameter, generator: np.random.Generator) -> Array:
    dtype = numpy_dtype(parameter.dtype)
    if "float" in parameter.dtype:
        return np.full(parameter.shape, np.nan, dtype)
    if parameter.dtype == "bool":
        return random_array(parameter, generator) if parameter.partly else np.zeros(parameter.shape, dtype)
    bounds = np.iinfo(dtype)
    return np.full(parameter.shape, bounds.min or bounds.max, dtype)


def wrong_values(dtype: str, expected: Array) -> Array:
    """Return contents for an output that differ from the expected ones everywhere, so that elements that a program does
    not write are wrong: NaN, or the complement of the bits."""
    if "float" in dtype and dtype != "float4_e2m1fn":
        return np.where(np.isnan(expected), np.ones_like(expected), np.full_like(expected, np.nan))
    if dtype == "bool":
        return np.asarray(~expected)  # without dimensions, NumPy computes a scalar
    bits = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
    wrong: Array = (~bits).view(expected.dtype).reshape(expected.shape)
    return wrong


def given_array(name: str, value: Any) -> Array:
    """Return the argument for a parameter as an array.

    Raises:
        tilewright.ArgumentError: NumPy cannot convert the value to an array.
    """
    torch = sys.modules.get("torch")
    try:
        if torch is not None and isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16:
            # Tensor.numpy() supports all data types but this one.
            halves: Array = value.detach().cpu().contiguous().view(torch.int16).numpy().view(numpy_dtype("bfloat16"))
            return halves
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError.of(
            "tune/inputs", f"inputs[{name!r}] is not an array: {error}", "pass an array of numbers"
        ) from None


def digest_of_integers(inputs: Mapping[str, Any]) -> str:
    """Return a digest of integer arrays, which determine the accesses or iterations of a kernel: a schedule that is
    fast with some values may be slow with others. Empty if there are none."""
    arrays = {name: given_array(name, value) for name, value in sorted(inputs.items())}
    places = {name: array for name, array in arrays.items() if array.ndim > 0 and array.dtype.kind in "iub"}
    digest = hashlib.blake2b(digest_size=4)
    for name, array in places.items():
        digest.update(f" {name} {array.dtype} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest() if places else ""


def _declared(task: Task, inputs: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """Return arrays for the parameters whose values the program declares, except those in `inputs`."""
    program = task.program
    buffers = [position for position, param in enumerate(program.params) if param in program.buffer_map]
    by_position = dict(zip(buffers, task.parameters, strict=True))
    given = {
        position: given_array(parameter.name, inputs[parameter.name])
        for position, parameter in by_position.items()
        if parameter.name in inputs
    }
    shapes = {position: parameter.shape for position, parameter in by_position.items()}
    made = declared_arrays(program, shapes, given, np.random.default_rng(seed))
    return {by_position[position].name: array for position, array in made.items()}


def make_arrays(task: Task, inputs: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """Return an array for each parameter, in order: arrays from `inputs`, random ones for the others. Outputs are
    filled with NaN, or with integers that few programs compute.

    Raises:
        tilewright.ArgumentError: `inputs` holds an array of another dtype or shape.
        tilewright.ResourceError: the arrays do not fit into memory.
    """
    generator = np.random.default_rng(seed)
    declared = _declared(task, inputs, seed)
    arrays: dict[str, Array] = {}
    with_ties = _core.selects_pairs(task.program)
    for parameter in task.parameters:
        dtype = numpy_dtype(parameter.dtype)
        if parameter.name in inputs:
            value = given_array(parameter.name, inputs[parameter.name])
            if value.dtype != dtype or value.shape != parameter.shape:
                raise ArgumentError.of(
                    "tune/inputs",
                    f"inputs[{parameter.name!r}]: expected {parameter.dtype}{list(parameter.shape)}, got "
                    f"{value.dtype}{list(value.shape)}",
                    "pass an array of exactly that dtype and shape",
                )
            arrays[parameter.name] = np.asarray(value, order="C")
            continue
        if parameter.name in declared and parameter.role != "output":
            arrays[parameter.name] = declared[parameter.name]
            continue
        try:
            if parameter.role == "output":
                arrays[parameter.name] = _unwritten(parameter, generator)
            else:
                arrays[parameter.name] = random_array(parameter, generator, with_ties=with_ties)
        except MemoryError:
            size = math.prod(parameter.shape) * dtype.itemsize / 2**30
            raise ResourceError.of(
                "tune/memory",
                f"the parameter {parameter.name} of {size:,.1f} GiB does not fit into memory",
                "tune the program for smaller sizes",
            ) from None
    return arrays


def kernel_arguments(task: Task, initial: Mapping[str, Array]) -> list[tuple[Any, ...]]:
    """Return the arguments of a kernel for the measuring pipeline: the role, the initial bytes and the data type of the
    sums of each array, then of each scalar."""
    return [
        *(
            (p.name, p.dtype, list(p.shape), _role(p), initial[p.name].tobytes(), task.accumulation_dtype(p))
            for p in task.parameters
        ),
        *((name, dtype, [], "scalar", _bits(dtype, value), dtype) for name, (dtype, value) in task.scalars.items()),
    ]


def _bits(dtype: str, value: float) -> bytes:
    """Return the bytes of a scalar as kernels expect it (`tw_scalar` in runtime/abi.h)."""
    return struct.pack("<d", float(value)) if "float" in dtype else struct.pack("<Q", int(value) % 2**64)


def _role(parameter: Parameter) -> str:
    """Return the role of a parameter. Unwritten elements must be detected: a NaN marks them; integers need their value
    before the call."""
    marks_unwritten = parameter.dtype in ("float16", "bfloat16", "float32", "float64")
    return "inout" if parameter.role == "output" and parameter.partly and not marks_unwritten else parameter.role
