"""Constructs whose effect only shows when the program runs: interpreted and compiled they do the same."""

import operator
import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T


def run(func: ir.PrimFunc, array: np.ndarray, *scalars: int) -> np.ndarray:
    interpreted, compiled = array.copy(), array.copy()
    ir.interpret(ir.as_module(func), "main", interpreted, *scalars)
    tw.compile(func, schedule="as written")(compiled, *scalars)
    np.testing.assert_array_equal(interpreted, compiled)
    return compiled


def test_print(capfd: pytest.CaptureFixture[str]) -> None:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), n: T.int32):
        T.print("100% of", n, A[1], A[0:4], n > 2)
        if n > 2:
            T.print(T.int8(-3), T.uint64(5), T.float16(1.5), T.Cast("bfloat16", A[3]), T.Cast("float64", n) / 7.0)
        for i in range(2):
            T.print(i)
        T.print()

    lines = ["100% of 3 1 [0, 1, 2, 3] 1", "-3 5 1.5 3 0.42857142857142855", "0", "1", ""]
    values = np.arange(4, dtype="float32")
    ir.interpret(ir.as_module(main), "main", values, 3)
    assert capfd.readouterr().out.splitlines() == lines
    sys.stdout.flush()
    tw.compile(main, schedule="as written")(values, 3)
    assert capfd.readouterr().out.splitlines() == lines


def test_constants() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        small = T.allocate_const([1, 2, 3, -4], "int32", [4])
        S = T.Buffer((4,), "int32", data=small)
        large = T.allocate_const(np.arange(600).reshape(2, 300), "float32", [2, 300])
        L = T.decl_buffer((2, 300), "float32", data=large)
        for i, j in T.grid(2, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi * 4 + vj] = L[vi, vj] + T.Cast("float32", S[vj])

    expected = np.arange(600).reshape(2, 300)[:, :4] + [1, 2, 3, -4]
    np.testing.assert_array_equal(run(main, np.zeros(8, "float32")), expected.reshape(8))


def test_prefetch_changes_nothing() -> None:
    @T.prim_func
    def main(A: T.Buffer((8, 40), "float32"), n: T.int32):
        T.prefetch(A, [T.Range(0, 4), T.Range(0, 40)])
        for i in range(8):
            T.prefetch(A[i, 0:n])
            A[i, n] = A[i, n] + 1.0

    assert "T.prefetch(A, [T.Range(0, 4), T.Range(0, 40)])" in str(main)
    lowered = str(tw.lower(main, after="lower_prefetches"))
    assert "T.grid(4, 4)" in lowered  # 40 floats that begin anywhere lie on four lines
    expected = np.zeros((8, 40), "float32")
    expected[:, 2] = 1
    np.testing.assert_array_equal(run(main, np.zeros((8, 40), "float32"), 2), expected)


def test_prefetch_follows_its_buffer_or_holds_it() -> None:
    @T.prim_func
    def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        B = T.alloc_buffer((8, 8))
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.prefetch(B[vi, 0:8])
                C[vi, vj] = B[vi, vj] + 1.0

    sch = tw.Schedule(main)
    with pytest.raises(tw.ScheduleError, match="compute_inline/P4"):
        sch.compute_inline("B")
    with pytest.raises(tw.ScheduleError, match="transform_layout/P2"):
        sch.transform_layout("B", ("write", 0), lambda i, j: (j, i))
    sch.cache_read("C", 0, "global")
    assert "T.prefetch(B_global, [T.Range(vi, vi + 1), T.Range(0, 8)])" in str(sch.mod)
    array, result = np.ones((8, 8), "float32"), np.zeros((8, 8), "float32")
    tw.compile(sch.mod)(array, result)
    np.testing.assert_array_equal(result, np.full((8, 8), 3, "float32"))


def test_shuffle() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        A[0:4] = T.Shuffle([A[0:4], A[4:8]], [7, 0, 5, 2])
        A[7] = T.Shuffle([A[0:4]], [2])

    result = run(main, np.arange(8, dtype="float32"))
    np.testing.assert_array_equal(result, [7, 0, 5, 2, 4, 5, 6, 5])


def test_scalable_vectors_are_interpreted_and_refused_where_the_machine_has_none() -> None:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for i in range(T.ceildiv(16, 4 * T.vscale())):
            A[T.Ramp(i * 4 * T.vscale(), 1, 4 * T.vscale())] = T.Broadcast(T.float32(1), 4 * T.vscale())

    array = np.zeros(16, "float32")
    ir.interpret(ir.as_module(main), "main", array)
    np.testing.assert_array_equal(array, 1)
    ir.interpret(ir.as_module(main), "main", np.zeros(16, "float32"), vscale=4)
    with pytest.raises(tw.ArgumentError, match="vscale is 0"):
        ir.interpret(ir.as_module(main), "main", array, vscale=0)
    with pytest.raises(tw.ScriptError, match="scalable vectors, which the target does not have"):
        tw.compile(main, schedule="as written")


def test_the_interpreter_is_told_the_vscale() -> None:
    @T.prim_func
    def main(A: T.Buffer((1,), "int32")):
        A[0] = T.vscale()

    array = np.zeros(1, "int32")
    for vscale in (2, 8):
        ir.interpret(ir.as_module(main), "main", array, vscale=vscale)
        assert array[0] == vscale


@pytest.mark.timeout(120)
def test_leading_zeros_of_vectors() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "int32")):
        A[0:8] = T.clz(A[0:8])

    values = np.array([0, 1, 2, 3, -1, 1 << 30, 255, 256], "int32")
    np.testing.assert_array_equal(run(main, values), [32 - int(v).bit_length() if v >= 0 else 0 for v in values])


def test_a_call_that_says_a_wrong_type_is_refused() -> None:
    with pytest.raises(tw.ScriptError, match="of int32x8 is said to be int32"):

        @T.prim_func
        def main(A: T.Buffer((8,), "int32")):
            A[0:8] = T.Broadcast(T.call_intrin("int32", "tir.clz", A[0:8]), 8)


def test_ldexp_of_integers_and_floats() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), n: T.int32):
        for i in range(8):
            A[i] = T.ldexp(A[i], n) + T.ldexp(T.float32(1), T.float32(3))

    np.testing.assert_array_equal(run(main, np.arange(8, dtype="float32"), 2), np.arange(8) * 4.0 + 8)


def test_realized_buffers_are_allocated() -> None:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        C = T.Buffer((16,), "float32")
        with T.realize(C[0:16]):
            for i in range(16):
                C[i] = A[i] + 1.0
            for i in range(16):
                A[i] = C[15 - i]

    values = np.arange(16, dtype="float32")
    np.testing.assert_array_equal(run(main, values), values[::-1] + 1)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 2)])
def test_one_script_for_all_ranks(shape: tuple[int, ...]) -> None:
    @T.prim_func
    def main(A: T.Buffer(shape, "float32")):
        for i in T.grid(*shape):
            with T.block("b"):
                v = T.axis.remap("S" * len(shape), [*i])
                A[*v] = A[*v] + 1.0

    np.testing.assert_array_equal(run(main, np.zeros(shape, "float32")), 1)


def test_a_grid_of_one_loop_gives_its_variable() -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        for i in T.grid(4):
            A[i + 1] = 1.0
        for (i,) in T.grid(4):
            A[i] += 1.0
        for i, *rest in T.grid(2):
            A[i + len(rest)] += 1.0

    assert "for i in range(4)" in str(main)
    np.testing.assert_array_equal(run(main, np.zeros(8, "float32")), [2, 3, 2, 2, 1, 0, 0, 0])


class Pair(NamedTuple):
    first: object
    second: object


class Numbers(tuple[int, ...]):
    """Takes numbers only, like torch.Size."""

    __slots__ = ()

    def __new__(cls, items: Iterable[int]) -> "Numbers":
        return super().__new__(cls, map(operator.index, items))


def test_kinds_of_tuples() -> None:
    bounds = Numbers((1, 3))

    @T.prim_func
    def main(A: T.Buffer((8,), "int32")):
        p = Pair(A[0], A[1])
        A[0] = 100
        A[2] = p.first - p.second
        n = bounds
        A[3] = n[0] + n[1]
        for i in range(*bounds):
            A[i + 4] = i

    expected = np.array([100, 5, 7 - 5, 1 + 3, 0, 1, 2, 0], "int32")
    np.testing.assert_array_equal(run(main, np.array([7, 5, 0, 0, 0, 0, 0, 0], "int32")), expected)
