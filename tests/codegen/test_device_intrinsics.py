"""Intrinsics on devices: each row of the core's table is computed as the interpreter does, or is in REFUSED."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source
from tilewright.script.core import script as core

#: name -> number of arguments, of rows that compute numbers of numbers
ROWS = {
    name: arity
    for name, arity, _, typing, _, _ in core.intrinsics()
    if typing in ("kSameFloat", "kSameAny", "kBool", "kInteger") or name == "clz"
}
#: that no device computes
REFUSED = {"isnullptr", "tvm_thread_invariant", "ignore_loop_partition"}
TESTS = {"isnan", "isinf", "isfinite"}
#: that take an integer second
OF_INTEGERS_TOO = {"ldexp"}
TYPES = ["float32", "float64", "int32", "uint8"]
#: units in the last place that OpenCL allows an elementary function at most, in both types
ULPS = {"float32": 16 * 2.0**-23, "float64": 16 * 2.0**-52}
N = 64


def kernel_of(names: list[str], dtype: str) -> tw.Schedule:
    """One kernel that calls each of these with elements of A, B and C."""
    buffers = ", ".join(f'{x}: T.Buffer(({N},), "{dtype}")' for x in ["A", "B", "C", *(f"R_{name}" for name in names)])
    blocks = ""
    for name in names:
        output = "bool" if name in TESTS else "int32" if name == "clz" else dtype
        arguments = [f"{x}[v]" for x in "ABC"[: ROWS[name]]]
        if name in OF_INTEGERS_TOO:
            arguments[1] = f'T.cast({arguments[1]}, "int32")'
        blocks += f"""
            with T.block("R_{name}"):
                v = T.axis.spatial({N}, i * 16 + j)
                R_{name}[v] = T.cast(T.call_intrin("{output}", "tir.{name}", {", ".join(arguments)}), "{dtype}")"""
    return tw.Schedule(
        from_source(f"""
@T.prim_func
def main({buffers}):
    for i in T.thread_binding({N // 16}, thread="blockIdx.x"):
        for j in T.thread_binding(16, thread="threadIdx.x"):{blocks}
""")
    )


@functools.cache
def names_of(dtype: str) -> list[str]:
    """The rows that take numbers of this type."""
    of_floats = dtype not in ("int32", "uint8")
    return [name for name in ROWS if _is_program(name, dtype) and not (name == "clz" and of_floats)]


def _is_program(name: str, dtype: str) -> bool:
    try:
        kernel_of([name], dtype)
    except tw.ScriptError as error:
        assert error.code == "verify/intrinsic"
        return False
    return True


def arguments(dtype: str) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    if dtype.startswith("f"):
        return [generator.uniform(0.01, 9, N).astype(dtype) for _ in "ABC"]
    return [generator.integers(0, 7, N).astype(dtype) for _ in "ABC"]


def test_each_row_takes_some_type() -> None:
    assert set(ROWS) - {"isnullptr"} == {name for dtype in TYPES for name in names_of(dtype)}


@pytest.mark.parametrize("dtype", TYPES)
def test_results_are_those_of_the_interpreter(dtype: str) -> None:
    names = [name for name in names_of(dtype) if name not in REFUSED]
    sch, given = kernel_of(names, dtype), arguments(dtype)
    found, wanted = ([np.zeros(N, dtype) for _ in names] for _ in range(2))
    tw.compile(sch, target="opencl")(*given, *found)
    ir.interpret(sch.mod, "main", *given, *wanted)
    for name, result, expected in zip(names, found, wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=ULPS.get(dtype, 0), err_msg=name)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_compiler_of_cuda_takes_them(dtype: str) -> None:
    names = [name for name in names_of(dtype) if name not in REFUSED]
    kernel = tw.compile(kernel_of(names, dtype), target="cuda -arch=sm_80")
    assert not [note for note in kernel.report["notes"] if "device" in note["code"]], kernel.report["notes"]
    assert kernel.report["kernels"], "there is neither NVRTC nor nvcc"


@pytest.mark.parametrize("target", ["opencl", "cuda"])
@pytest.mark.parametrize("name", sorted(REFUSED - {"isnullptr"}))
def test_the_others_are_refused(name: str, target: str) -> None:
    for dtype in TYPES:
        if name in names_of(dtype):
            with pytest.raises(tw.Error) as error:
                tw.compile(kernel_of([name], dtype), target=target)
            assert error.value.code == "codegen/not-on-device"


@pytest.mark.parametrize("target", ["opencl", "cuda"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats(dtype: str, target: str) -> None:
    """All rows but nextafter, which would be computed in float."""
    names = [name for name in names_of(dtype) if name not in REFUSED]
    compiled: Any = tw.compile(kernel_of([name for name in names if name != "nextafter"], dtype), target=target)
    assert not [note for note in compiled.report["notes"] if "device" in note["code"]]
    with pytest.raises(tw.Error) as error:
        tw.compile(kernel_of(["nextafter"], dtype), target=target)
    assert error.value.code == "codegen/not-on-device"
