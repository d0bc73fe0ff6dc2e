"""Buffers of vectors in kernels, which compute with scalars: their elements are contiguous, as the caller has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from tilewright import _core
from tilewright.script import from_source

KERNEL = """
@T.prim_func
def main({parameters}):
{views}
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
{body}
"""


def programs(types: dict[str, tuple[int, str]], body: str) -> list[Any]:
    """Return a kernel whose parameters are arrays of vectors, and one that views arrays of scalars as such.

    Args:
        types: size and type of each parameter, by name.
        body: statements of a thread.
    """
    indented = "\n".join(" " * 12 + line for line in body.strip("\n").split("\n"))
    vectors, scalars, views = [], [], []
    for name, (size, dtype) in types.items():
        element, lanes = dtype.split("x")
        vectors.append(f'{name}: T.Buffer(({size},), "{dtype}")')
        scalars.append(f'{name}_: T.Buffer(({size}, {lanes}), "{element}")')
        views.append(f'    {name} = T.decl_buffer(({size},), "{dtype}", data={name}_.data)')
    return [
        from_source(KERNEL.format(parameters=", ".join(parameters), views="\n".join(lines), body=indented))
        for parameters, lines in ((vectors, []), (scalars, views))
    ]


def check(types: dict[str, tuple[int, str]], body: str, *arrays: np.ndarray, expected: np.ndarray) -> str:
    """Return the OpenCL text; the interpreter after every pass and PoCL leave `expected` in the last array."""
    of_vectors, of_scalars = programs(types, body)
    for target in ("cuda", "opencl"):
        module = _core.as_module(of_scalars)
        for name, after in [("source", module), *_core.lower_stages(module, target)]:
            given = [each.copy() for each in arrays]
            _core.interpret(after, "main", *given)
            np.testing.assert_array_equal(given[-1], expected, err_msg=f"{name}\n{after.script()}")
    compiled(of_vectors)
    for target in ("opencl", "interpreter"):
        given = [each.copy() for each in arrays]
        tw.compile(of_vectors, target=target)(*given)
        np.testing.assert_array_equal(given[-1], expected, err_msg=target)
    return str(tw.compile(of_vectors, target="opencl").inspect("opencl"))


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float32", 4), ("float32", 2), ("int8", 16), ("float16", 8), ("int64", 3)]
)
def test_a_vector_is_one_access(dtype: str, lanes: int) -> None:
    vector = f"{dtype}x{lanes}"
    a = numbers(32, lanes, dtype=dtype)
    types = dict.fromkeys("AB", (32, vector))
    text = check(types, "B[bx * 8 + tx] = A[bx * 8 + tx] + A[bx * 8 + tx]", a, np.zeros_like(a), expected=a + a)
    if lanes != 3:
        assert f"vload{lanes}(0, &A" in text and ", 0, &B" in text, text


def test_rows_of_vectors_with_strides_and_an_index_from_memory() -> None:
    func = from_source("""
@T.prim_func
def main(a: T.handle, I: T.Buffer((32,), "uint8"), B: T.Buffer((32, 2), "float32x4")):
    s = T.int32()
    A = T.match_buffer(a, (300, 2), "float32x4", strides=(s, 1))
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            for j in range(2):
                B[bx * 8 + tx, j] = A[I[bx * 8 + tx], 1 - j]
""")
    wide = numbers(300, 3, 4)
    index = np.arange(224, 256, dtype="uint8")
    compiled(func)
    for target in ("opencl", "interpreter"):
        found = np.zeros((32, 2, 4), "float32")
        tw.compile(func, target=target)(wide[:, :2], index, found)
        np.testing.assert_array_equal(found, wide[index][:, [1, 0]])


def test_tiles_in_shared_memory_and_registers() -> None:
    body = """
S = T.decl_buffer((8,), "float32x4", scope="shared")
L = T.decl_buffer((2,), "float32x4", scope="local")
S[tx] = A[bx * 8 + tx]
T.tvm_storage_sync("shared")
L[0] = S[7 - tx]
for i in range(2):
    L[1] = L[0] * T.Broadcast(T.float32(2), 4)
    L[0] = L[1] + S[tx]
B[bx * 8 + tx] = L[0]
"""
    a = numbers(32, 4)
    rows = a.reshape(4, 8, 4)
    expected = (4 * rows[:, ::-1] + 3 * rows).reshape(32, 4)
    check(dict.fromkeys("AB", (32, "float32x4")), body, a, np.zeros_like(a), expected=expected)


def test_a_vector_has_a_name() -> None:
    body = """
x: T.int32x4 = A[bx * 8 + tx]
y: T.int32x4 = x * T.Broadcast(tx, 4) + T.Ramp(0, 1, 4)
A[bx * 8 + tx] = T.Broadcast(0, 4)
B[bx * 8 + tx] = T.Select(tx % 2 == 0, x, y)
"""
    a = numbers(32, 4, dtype="int32")
    thread = np.arange(32)[:, None] % 8
    expected = np.where(thread % 2 == 0, a, a * thread + np.arange(4)).astype("int32")
    check(dict.fromkeys("AB", (32, "int32x4")), body, a, np.zeros_like(a), expected=expected)


def test_vectors_of_vectors() -> None:
    body = "B[T.Ramp((bx * 8 + tx) * 4, 1, 4)] = A[T.Ramp((bx * 8 + tx) * 4 + 3, -1, 4)]"
    a = numbers(128, 2)
    expected = a.reshape(32, 4, 2)[:, ::-1].reshape(128, 2)
    check(dict.fromkeys("AB", (128, "float32x2")), body, a, np.zeros_like(a), expected=expected)


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_sum_of_vectors_by_a_schedule(vectorized: bool) -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((64, 24), "float32x4"), B: T.Buffer((64,), "float32x4")):
    for i, k in T.grid(64, 24):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.Broadcast(T.float32(0), 4)
            B[vi] = B[vi] + A[vi, vk]
""")
    a = numbers(64, 24, 4)
    if not vectorized:  # as the heuristics have it
        kernel = tw.compile(func, target="opencl")
        assert not kernel.notes, kernel.notes
        np.testing.assert_array_equal(kernel(a), a.sum(1))
        return
    sch = tw.Schedule(func)
    i, _ = sch.get_loops("B")
    i, tx, lane = sch.split(i, [None, 8, 2])
    sch.reorder(i, tx, sch.get_loops("B")[-1], lane)
    sch.bind(i, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    sch.vectorize(lane)
    kernel = tw.compile(sch, target="opencl")
    np.testing.assert_array_equal(kernel(a), a.sum(1))
    assert any("there are vectors inside of it already" in str(note) for note in kernel.notes)
