"""Tensor intrinsics of mma.m16n8k8: a warp of 32 threads, as PTX describes it, runs what they are written as."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import arith, ir
from tilewright.tensor_intrin import TensorIntrin, cuda
from tilewright.testing.check import check_equivalent

ROWS, COLUMNS, STEPS = 64, 96, 24  # of a warp
PAD = 8  # elements between rows in shared memory


def _call(impl: ir.PrimFunc, op: str) -> Any:
    calls: list[Any] = []
    ir.visit(impl.body, lambda node: calls.append(node) if isinstance(node, ir.Call) and node.op.name == op else None)
    (call,) = calls
    return call


class _Numbers:
    """The values of arguments where the buffers of an implementation begin at these elements, in rows of these."""

    def __init__(self, impl: ir.PrimFunc, *places: tuple[int, int]) -> None:
        self.values: dict[Any, int] = {}
        self.threads: list[Any] = []
        for param, (offset, stride) in zip(impl.params, places, strict=True):
            buffer = impl.buffer_map[param]
            self.values |= {buffer.elem_offset: offset, buffer.strides[0]: stride, buffer.strides[1]: 1}
        ir.visit(impl.body, lambda node: self.threads.append(node.loop_var) if isinstance(node, ir.For) else None)

    def of(self, expr: Any, thread: int = 0) -> int:
        known = self.values | dict.fromkeys(self.threads, thread)
        return int(arith.Analyzer().simplify(ir.substitute(expr, known)))


def _load(name: str, shared: np.ndarray, row: int, column: int, registers: np.ndarray, stride: int) -> None:
    """ldmatrix.x4: thread t says where row t % 8 of matrix t // 8 begins, and gets two elements of each matrix."""
    impl = TensorIntrin.get(name).impl
    call = _call(impl, "tir.ptx_ldmatrix")
    trans, count, _, _, first, pointer, row_of_thread = call.args
    assert int(count) == 4
    numbers = _Numbers(impl, (row * shared.shape[1] + column, shared.shape[1]), (row * stride + column, stride))
    memory = shared.reshape(-1)
    for matrix in range(4):
        begins = [numbers.of(pointer.args[2]) + numbers.of(row_of_thread, 8 * matrix + i) for i in range(8)]
        elements = np.array([memory[begin : begin + 8] for begin in begins])
        if bool(trans):
            elements = elements.T
        for thread in range(32):
            for e in (0, 1):
                register = numbers.of(first, thread) + 2 * matrix + e
                registers[thread, register] = elements[thread // 4, thread % 4 * 2 + e]


def _multiply(name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, place: tuple[int, int, int]) -> None:
    """mma.m16n8k8: of each matrix of 8x8 elements a thread has the pair with ldmatrix."""
    impl = TensorIntrin.get(name).impl
    args = _call(impl, "tir.ptx_mma").args
    i, j, k = place
    numbers = _Numbers(impl, (i * STEPS + k, STEPS), (k * COLUMNS + j, COLUMNS), (i * COLUMNS + j, COLUMNS))
    at_a, at_b, at_c = (numbers.of(args[position]) for position in (7, 9, 11))
    left, right = np.zeros((16, 8)), np.zeros((8, 8))
    pairs = [(thread, e, thread // 4, thread % 4 * 2 + e) for thread in range(32) for e in (0, 1)]
    for thread, e, row, column in pairs:
        left[row, column], left[row + 8, column] = a[thread, at_a + e], a[thread, at_a + 2 + e]
        right[column, row] = b[thread, at_b + e]
    product = left @ right
    for thread, e, row, column in pairs:
        c[thread, at_c + e] += product[row, column]
        c[thread, at_c + 2 + e] += product[row + 8, column]


@pytest.mark.parametrize("out_dtype", ["float16", "float32"])
def test_a_warp_multiplies_matrices(out_dtype: str) -> None:
    group = cuda.get_m16n8k8_intrin_group(out_dtype)
    random = np.random.default_rng(3)
    left, right = (random.integers(-4, 5, shape).astype("float64") for shape in ((ROWS, STEPS), (STEPS, COLUMNS)))
    a, b, c = (np.zeros((32, rows * columns // 32)) for rows, columns in (left.shape, right.shape, (ROWS, COLUMNS)))
    for k in range(0, STEPS, 8):
        for i in range(0, ROWS, 32):
            _load(group["load_a"], np.pad(left, ((0, 0), (0, PAD))), i, k, a, STEPS)
        for j in range(0, COLUMNS, 32):
            _load(group["load_b"], np.pad(right, ((0, 0), (0, PAD))), k, j, b, COLUMNS)
    for i in range(0, ROWS, 16):
        for j in range(0, COLUMNS, 8):
            for k in range(0, STEPS, 8):
                _multiply(group["compute"], a, b, c, (i, j, k))
    registers = c.reshape(32, ROWS // 16, COLUMNS // 8, 2, 2)
    got = np.array(
        [
            [registers[(4 * (i % 8) + j % 8 // 2, *cuda.index_map_m16n8k8_matrixC([i, j]))] for j in range(COLUMNS)]
            for i in range(ROWS)
        ]
    )
    np.testing.assert_array_equal(got, left @ right)


def test_registers_of_results_count_as_the_map_has_them() -> None:
    registers = np.arange(ROWS * COLUMNS // 32).reshape(ROWS // 16, COLUMNS // 8, 2, 2)
    for i in range(0, ROWS, 8):
        for j in range(0, COLUMNS, 8):
            first = registers[tuple(cuda.index_map_m16n8k8_matrixC([i, j]))]
            assert cuda.get_index_C(i * COLUMNS + j, COLUMNS) == first


@pytest.mark.parametrize("kind", ["init", "store"])
@pytest.mark.parametrize("out_dtype", ["float16", "float32"])
def test_what_threads_set_and_store_is_what_they_are_said_to(kind: str, out_dtype: str) -> None:
    intrin = TensorIntrin.get(cuda.get_m16n8k8_intrin_group(out_dtype)[kind])
    check_equivalent(intrin.desc, intrin.impl)


def test_there_is_no_product_with_other_results() -> None:
    with pytest.raises(tw.ArgumentError, match="mma_init_m16n8k8_int32"):
        cuda.get_m16n8k8_intrin_group("int32")
