"""Programs without blocks get kernels: loops whose iterations are independent run on many threads, others on one."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.heuristics.gpu import with_blocks
from tilewright.script import from_source
from tilewright.script import tir as T


@T.prim_func
def scaled(A: T.Buffer((40, 60), "float32"), B: T.Buffer((40, 60), "float32")):
    for i, j in T.grid(40, 60):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func
def on_a_condition(A: T.Buffer((333,), "float32"), B: T.Buffer((333,), "float32")):
    for i in range(1, 332):
        if A[i] > 0.5:
            B[i] = A[i]
        else:
            B[i] = -A[i - 1]


@T.prim_func
def product(A: T.Buffer((33, 20), "float32"), B: T.Buffer((20, 17), "float32"), C: T.Buffer((33, 17), "float32")):
    for i, j in T.grid(33, 17):
        C[i, j] = 0.0
        for k in range(20):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]


@T.prim_func
def triangle(A: T.Buffer((33, 33), "float32"), B: T.Buffer((33, 33), "float32")):
    for i in range(33):
        for j in range(i):
            B[i, j] = A[i, j]


@T.prim_func
def by_a_temporary(A: T.Buffer((300,), "float32"), B: T.Buffer((300,), "float32")):
    C = T.alloc_buffer((300,), "float32")
    for i in range(300):
        C[i] = A[i] + 1.0
    for i in range(300):
        B[i] = C[299 - i]


@T.prim_func
def recurrence(A: T.Buffer((333,), "float32"), B: T.Buffer((333,), "float32")):
    for j in range(333):
        B[j] = T.if_then_else(j > 0, B[j - 1] * T.float32(0.5), T.float32(0)) + A[j]


@T.prim_func
def columns(A: T.Buffer((9, 300), "float32"), B: T.Buffer((9, 300), "float32")):
    for i, j in T.grid(9, 300):
        B[i, j] = T.if_then_else(i > 0, B[i - 1, j], T.float32(0)) + A[i, j]


@T.prim_func
def scatter(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    for i in range(256):
        B[A[i] % 256] = B[A[i] % 256] + 1


@T.prim_func
def one_element(A: T.Buffer((333,), "float32"), B: T.Buffer((333,), "float32")):
    B[3] = A[4]


@T.prim_func
def open_size(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        B[i] = A[i] + 1.0
    for i in range(n // 2):
        B[i * 2] = B[i * 2] * 2.0


def _recurrence(a: np.ndarray) -> np.ndarray:
    result, carried = [], np.float32(0)
    for each in a:
        carried = carried * np.float32(0.5) + each
        result.append(carried)
    return np.array(result, "float32")


def _on_a_condition(a: np.ndarray) -> np.ndarray:
    b = np.zeros_like(a)
    b[1:332] = np.where(a[1:332] > 0.5, a[1:332], -a[:331])
    return b


def _one_element(a: np.ndarray) -> np.ndarray:
    b = np.zeros_like(a)
    b[3] = a[4]
    return b


def _open_size(a: np.ndarray) -> np.ndarray:
    b = a + 1
    b[: len(b) // 2 * 2 : 2] *= 2
    return b


_float = np.random.default_rng(5).random
CASES = {
    "elements": (scaled, (40, 60), lambda a: a * 2, False),
    "a condition": (on_a_condition, (333,), _on_a_condition, False),
    "a triangle": (triangle, (33, 33), lambda a: np.tril(a, -1), False),
    "a temporary": (by_a_temporary, (300,), lambda a: (a + 1)[::-1], False),
    "a recurrence": (recurrence, (333,), _recurrence, True),
    "a recurrence in each column": (columns, (9, 300), lambda a: np.cumsum(a, axis=0), True),
    "one element": (one_element, (333,), _one_element, False),
    "no elements": (open_size, (0,), _open_size, False),
    "an open size": (open_size, (1001,), _open_size, False),
}


@pytest.mark.parametrize("name", CASES)
def test_plain_loops_run_on_a_device(name):
    program, shape, expected, on_one_thread = CASES[name]
    kernel = tw.compile(program, target="opencl")
    a, b = _float(shape, dtype="float32"), np.zeros(shape, "float32")
    kernel(a, b)
    np.testing.assert_allclose(b, expected(a), rtol=1e-5)
    assert ("lower/one-thread" in [note.code for note in kernel.notes]) == on_one_thread


def test_a_sum_inside_of_plain_loops_runs_on_a_device():
    a, b, c = _float((33, 20), dtype="float32"), _float((20, 17), dtype="float32"), np.zeros((33, 17), "float32")
    kernel = tw.compile(product, target="opencl")
    kernel(a, b, c)
    np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-5)
    assert not kernel.notes


@T.prim_func
def last_writer(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    for i in range(256):
        B[A[i] % 256] = i


def test_elements_that_data_choose_are_updated_by_all_threads_and_stored_by_one():
    """See test_atomic_updates.py. Of several stores to an element, the last one decides."""
    a = np.arange(256, dtype="int32") // 3 * 7
    last = np.zeros(256, "int32")
    last[a % 256] = np.arange(256)
    for program, expected in ((scatter, np.bincount(a % 256, minlength=256)), (last_writer, last)):
        b = np.zeros(256, "int32")
        kernel = tw.compile(program, target="opencl")
        kernel(a, b)
        np.testing.assert_array_equal(b, expected)
        assert ("lower/one-thread" in [note.code for note in kernel.notes]) == (program is last_writer)


def test_blocks_change_no_result():
    for program, shape, expected, _ in CASES.values():
        in_blocks = with_blocks(program)
        assert not in_blocks.same_as(program)
        a, b = _float(shape, dtype="float32"), np.zeros(shape, "float32")
        tw.compile(in_blocks, target="interpreter")(a, b)
        np.testing.assert_allclose(b, expected(a), rtol=1e-5)
        assert with_blocks(in_blocks).same_as(in_blocks)


DATA = """
@T.prim_func
def main(A: T.Buffer((24,), "float32"), N: T.Buffer((1,), "int32"), B: T.Buffer((24,), "float32")):
    {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(N[0]):\n        B[i] = A[i] + T.float32(1)",
        "for i in range(N[0]):\n        with T.block('B'):\n            vi = T.axis.spatial(24, i)\n"
        "            B[vi] = A[vi] + T.float32(1)",
        "for i, j in T.grid(7, N[0]):\n        with T.block('B'):\n            vi = T.axis.spatial(7, i)\n"
        "            vj = T.axis.spatial(24, j)\n            T.where(j == 0)\n"
        "            B[vi + vj] = A[vi] + T.float32(1)",
    ],
)
def test_loops_whose_extent_the_device_holds(body):
    """The host that launches the threads cannot read it."""
    a, b = np.arange(24, dtype="float32"), np.zeros(24, "float32")
    tw.compile(from_source(DATA.format(body=body)), "opencl")(a, np.array([7], "int32"), b)
    np.testing.assert_array_equal(b, np.where(np.arange(24) < 7, a + 1, 0))


@pytest.mark.parametrize("name", ["root", "B", "all"])
def test_the_block_around_all_others_has_any_name(name):
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 6), "float32")):
    with T.block("{name}"):
        T.reads(A[0:4, 0:6])
        T.writes(B[0:4, 0:6])
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
""")
    a, b = np.arange(24, dtype="float32").reshape(4, 6), np.zeros((4, 6), "float32")
    tw.compile(program, "opencl")(a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_a_program_of_one_element():
    @T.prim_func
    def one(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
        with T.block("B"):
            B[()] = A[()] + T.float32(1)

    a, b = np.array(3, "float32"), np.array(0, "float32")
    tw.compile(one, "opencl")(a, b)
    assert b == 4
