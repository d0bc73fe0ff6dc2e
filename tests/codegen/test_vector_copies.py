"""Vectors in kernels: loaded and stored at once where they begin at multiples of their size, one by one elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from lower.test_software_pipelines import check_every_stage, in_vectors
from samples import seeds
from tilewright import _core
from tilewright.script import from_source

DTYPES = [("float32", 4), ("float32", 2), ("float16", 8), ("int8", 16), ("int8", 4), ("uint16", 2), ("int64", 2)]
DTYPES += [("float64", 2), ("int32", 4)]


def program(expression: str, place: str, dtype: str, lanes: int, size: int = 512) -> Any:
    """R[place] = expression, by vectors of 32 threads; indices with `v` for the vector's beginning."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({size},), "{dtype}"), B: T.Buffer(({size},), "{dtype}"), R: T.Buffer(({size},), "{dtype}")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            for lane in T.vectorized({lanes}):
                R[{place.replace("v", f"(tx * {lanes}) + lane")}] = {expression.replace("v", f"(tx * {lanes}) + lane")}
""")


def run_everywhere(given: Any, dtype: str, size: int = 512) -> tuple[np.ndarray, str]:
    """Return what PoCL leaves in R, which is what the interpreter leaves after every pass, and the kernel's text."""
    draw = np.random.default_rng(0)
    arrays = [draw.integers(-9, 9, size).astype(dtype) for _ in range(2)] + [np.full(size, 99, dtype)]
    expected = [each.copy() for each in arrays]
    module = _core.as_module(given)
    _core.interpret(module, "main", *expected)
    for name, after in _core.lower_stages(module, "cuda"):
        found = [each.copy() for each in arrays]
        _core.interpret(after, "main", *found)
        np.testing.assert_array_equal(found[-1], expected[-1], err_msg=f"{name}\n{after.script()}")
    kernel = tw.compile(given, target="opencl")
    kernel(*arrays)
    np.testing.assert_array_equal(arrays[-1], expected[-1])
    return arrays[-1], kernel.inspect("opencl")


@pytest.mark.parametrize(("dtype", "lanes"), DTYPES)
def test_a_copy_is_one_access_on_each_side(dtype, lanes):
    given = program("A[v]", "v", dtype, lanes)
    _, text = run_everywhere(given, dtype)
    assert f"vstore{lanes}(vload{lanes}(0, &A" in text, text
    bits = np.dtype(dtype).itemsize * lanes * 8
    ptx = compiled(given).inspect("ptx")
    wide = {128: "v4", 64: "v2", 32: "u32"}[bits]
    assert f"{wide}" in ptx and "ld.global" in ptx, ptx


@pytest.mark.parametrize(("dtype", "lanes"), DTYPES)
def test_operands_and_results_are_one_access_each(dtype, lanes):
    _, text = run_everywhere(program("A[v] + B[v]", "v", dtype, lanes), dtype)
    assert text.count(f"vload{lanes}(0, &A") == text.count(f"vload{lanes}(0, &B") == 1, text
    assert text.count(f"vstore{lanes}(") == 3, text


@pytest.mark.parametrize(
    ("expression", "place", "loads", "stores"),
    [
        ("A[v + 4]", "v", True, True),
        ("A[v + 1]", "v", False, True),
        ("A[v]", "v + 3", True, False),
        ("A[(v) * 2]", "v", False, True),
        ("A[511 - (v)]", "v", False, True),
        ("A[v] + B[v + 2]", "v", True, True),
        ("T.if_then_else(tx < 9, A[v], B[v])", "v", False, True),
        ("A[v] * T.float32(2)", "(v) * 3", True, False),
    ],
)
def test_only_what_begins_at_a_multiple_of_its_size(expression, place, loads, stores):
    _, text = run_everywhere(program(expression, place, "float32", 4), "float32")
    assert ("vload4(0, &A" in text) == loads and (", 0, &R" in text) == stores, text


def test_elements_that_are_read_and_overwritten():
    """All values are there before the first one is stored, also where reads and writes overlap."""
    for shift in (0, 4, 5):
        given = from_source(f"""
@T.prim_func
def main(A: T.Buffer((32,)), B: T.Buffer((32,)), R: T.Buffer((32,))):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(1, thread="threadIdx.x"):
            for lane in T.vectorized(4):
                R[lane] = R[lane + {shift}] + A[lane]
""")
        draw = np.random.default_rng(shift)
        a, r = draw.random(32, "float32"), draw.random(32, "float32")
        expected = r.copy()
        expected[:4] = r[shift : shift + 4] + a[:4]
        tw.compile(given, target="opencl")(a, a, r)
        np.testing.assert_array_equal(r, expected)


def test_parts_of_arrays_on_a_device():
    """OpenCL loads vectors from wherever an element may be: views at any offset are taken, with and without copies."""
    device = tw.device("opencl:0")
    kernel = tw.compile(program("A[v] + B[v + 4]", "v", "float32", 4, 68), target="opencl")
    assert "vload4" in kernel.inspect("opencl")
    values = np.arange(160, dtype="float32")
    for shift in (0, 1, 2, 4, 7):
        first, second = slice(shift, shift + 68), slice(80 + shift, 148 + shift)
        result, host = device.zeros(80)[first], np.zeros(80, "float32")[first]
        kernel(device.array(values)[first], device.from_dlpack(device.array(values)[second]), result)
        kernel(values[first], values[second], host)
        expected = values[first][:64] + values[second][4:]
        np.testing.assert_array_equal(result.numpy()[:64], expected)
        np.testing.assert_array_equal(host[:64], expected)


def test_random_offsets_and_strides():
    for seed in seeds(0, 6):
        draw = np.random.default_rng(seed)
        dtype, lanes = DTYPES[int(draw.integers(len(DTYPES)))]
        shifts = [int(draw.integers(0, 9)) * int(draw.choice([1, lanes])) for _ in range(3)]
        run_everywhere(program(f"A[v + {shifts[0]}] + B[v + {shifts[1]}]", f"v + {shifts[2]}", dtype, lanes), dtype)


@pytest.mark.parametrize(("dtype", "lanes"), [("float32", 4), ("float16", 8)])
def test_tiles_are_fetched_by_vectors(dtype, lanes):
    sch = in_vectors(lanes, dtype)
    a = np.random.default_rng(0).integers(-2, 3, (32, 64)).astype(dtype)
    b = np.random.default_rng(1).integers(-2, 3, (64, 32)).astype(dtype)
    expected = (a.astype("int64") @ b.astype("int64")).astype(dtype)
    check_every_stage(sch.mod, "opencl", [a, b, np.zeros((32, 32), dtype)], expected)
    kernel = tw.compile(sch, target="opencl")
    c = np.zeros((32, 32), dtype)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, expected)
    assert f"vstore{lanes}(vload{lanes}(0, &A" in kernel.inspect("opencl")
