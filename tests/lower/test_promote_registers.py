"""Registers of tiles that are cut off: what a predicate leaves out is kept where something may read it, only there."""

from typing import Any

import numpy as np
import pytest
from tests.lower.passes import TARGET, check

import tilewright as tw
from tilewright import te
from tilewright.script import tir as T
from tilewright.testing import check_equivalent


@T.prim_func
def sums_of_some_lanes(A: T.Buffer((4, 5), "float32"), B: T.Buffer((5,), "float32")):
    with T.block("root"):
        X = T.alloc_buffer((8,), scope="local")
        for j in T.vectorized(8):
            if j < 5:
                X[j] = T.float32(0)
        for i in range(4):
            for j in T.vectorized(8):
                if j < 5:
                    X[j] = X[j] + A[i, j]
        for j in T.vectorized(8):
            if j < 5:
                B[j] = X[j]


@T.prim_func
def sums_of_fewer_lanes(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32")):
    with T.block("root"):
        X = T.alloc_buffer((8,), scope="local")
        for j in T.vectorized(8):
            X[j] = T.float32(1)
        for i in range(4):
            for j in T.vectorized(8):
                if j < 5:
                    X[j] = X[j] + A[i, j]
        for j in T.vectorized(8):
            B[j] = X[j]


@T.prim_func
def lanes_that_depend(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    with T.block("root"):
        X = T.alloc_buffer((8,), scope="local")
        for j in T.vectorized(8):
            X[j] = T.float32(0)
        for i in range(8):
            for j in T.vectorized(8):
                if j < i:
                    X[j] = X[j] + A[i, j]
            for j in T.vectorized(8):
                if j < i:
                    B[i, j] = X[j]


@T.prim_func
def lanes_of_a_call(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
    with T.block("root"):
        X = T.alloc_buffer((8,), scope="local")
        for j in T.vectorized(8):
            if j < n:
                X[j] = T.float32(0)
        for i in range(4):
            for j in T.vectorized(8):
                if j < n:
                    X[j] = X[j] + A[i, j]
        for j in T.vectorized(8):
            if j < n:
                B[j] = X[j]


def blends(program: object) -> int:
    return str(tw.lower(program, after="promote_registers", target=TARGET).script()).count("T.Select")


@pytest.mark.parametrize("program", [sums_of_some_lanes, lanes_of_a_call])
def test_lanes_that_nothing_reads_are_not_kept(program) -> None:
    assert blends(program) == 0


@pytest.mark.parametrize("program", [sums_of_fewer_lanes, lanes_that_depend])
def test_lanes_that_are_read_later_are_kept(program) -> None:
    assert blends(program) > 0


@pytest.mark.parametrize("program", [sums_of_some_lanes, sums_of_fewer_lanes, lanes_that_depend])
def test_lanes_hold_what_they_should(program) -> None:
    check_equivalent(program, tw.lower(program, after="promote_registers", target=TARGET))
    kernel = tw.compile(program, target=TARGET, schedule="as written")
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, [int(d) for d in b.shape]).astype("float32") for b in program.buffer_map.values()]
    expected = [a.copy() for a in arrays]
    tw.compile(program, target="interpreter")(*expected)
    kernel(*arrays)
    np.testing.assert_array_equal(arrays[-1], expected[-1])


@pytest.mark.parametrize("n", range(9))
def test_lanes_of_a_call_hold_what_they_should(n) -> None:
    kernel = tw.compile(lanes_of_a_call, target=TARGET, schedule="as written")
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.full(8, -1, "float32")
    kernel(a, b, n)
    np.testing.assert_array_equal(b, np.where(np.arange(8) < n, a.sum(0), -1).astype("float32"))


def test_a_tile_that_is_cut_off_is_not_blended_with_itself() -> None:
    """21 columns are two vectors of 16 lanes."""
    a, b, k = te.placeholder((26, 48), name="A"), te.placeholder((48, 21), name="B"), te.reduce_axis((0, 48), name="k")
    product = te.create_prim_func([a, b, te.compute((26, 21), lambda i, j: te.sum(a[i, k] * b[k, j], axis=[k]))])
    kernel = tw.compile(product, target="llvm -mcpu=skylake-avx512 -num-cores=1", schedule="by rules")
    assert "T.Select" not in kernel.inspect("tir")


def test_accumulators_become_slots() -> None:
    @T.prim_func
    def before(A: T.Buffer((64, 16), "float32"), B: T.Buffer((16,), "float32")):
        with T.block("root"):
            X = T.alloc_buffer((2, 8), scope="local")
            for i in range(2):
                for j in T.vectorized(8):
                    X[i, j] = T.float32(0)
            for k in range(64):
                for i in range(2):
                    for j in T.vectorized(8):
                        X[i, j] = X[i, j] + A[k, i * 8 + j]
            for i in range(2):
                for j in T.vectorized(8):
                    B[i * 8 + j] = X[i, j]

    @T.prim_func
    def expected(A: T.Buffer((64, 16), "float32"), B: T.Buffer((16,), "float32")):
        A_1 = T.decl_buffer((1024,), "float32", data=A.data)
        B_1 = T.decl_buffer((16,), "float32", data=B.data)
        x = T.decl_buffer((1,), "float32x8", scope="local")
        y = T.decl_buffer((1,), "float32x8", scope="local")
        x[0] = T.Broadcast(T.float32(0), 8)
        y[0] = T.Broadcast(T.float32(0), 8)
        for k in range(64):
            x[0] = x[0] + A_1[k * 16 : k * 16 + 8]
            y[0] = y[0] + A_1[k * 16 + 8 : k * 16 + 8 + 8]
        B_1[0:8] = x[0]
        B_1[8:16] = y[0]

    check(before, "promote_registers", expected)
    promotion = tw.compile(before, target=TARGET, schedule="as written").report["promotions"][0]
    assert promotion.pop("where").startswith(__file__)
    assert promotion == {"function": "before", "buffer": "X", "promoted": True, "registers": 2, "reason": ""}


def refusal(program: Any) -> str:
    report = tw.compile(program, target=TARGET, schedule="as written").report["promotions"][0]
    assert not report["promoted"]
    return str(report["reason"])


def test_what_cannot_live_in_registers_is_reported() -> None:
    @T.prim_func
    def large(A: T.Buffer((1000,), "float32")):
        with T.block("root"):
            X = T.alloc_buffer((1000,), scope="local")
            for i in range(1000):
                X[i] = T.float32(1)
            for i in range(1000):
                A[i] = X[i]

    @T.prim_func
    def selected(A: T.Buffer((8,), "float32"), n: T.int32):
        with T.block("root"):
            X = T.alloc_buffer((8,), scope="local")
            for i in range(8):
                X[i] = A[i]
            A[0] = X[n]

    @T.prim_func
    def shared(A: T.Buffer((8,), "float32")):
        with T.block("root"):
            X = T.alloc_buffer((8,), scope="local")
            for i in range(8):
                X[i] = A[i]
            for j in T.parallel(8):
                A[j] = X[0]

    assert "4000 bytes" in refusal(large)
    assert "not constant" in refusal(selected)
    assert "parallel loop 'j'" in refusal(shared)


def test_what_a_let_points_into_stays_in_memory() -> None:
    @T.prim_func
    def through_pointer(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        B = T.alloc_buffer((16,))
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                T.reads(A[vi])
                T.writes(B[vi])
                p: T.handle("float32") = T.address_of(B[vi])
                Q = T.decl_buffer((1,), "float32", data=p)
                Q[0] = A[vi] + T.float32(1)
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = B[vi]

    sch = tw.Schedule(through_pointer)
    sch.set_scope("B", 0, "local")
    assert refusal(sch.mod) == "its address is used"
    a, c = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    tw.compile(sch.mod, target=TARGET, schedule="as written")(a, c)
    np.testing.assert_array_equal(c, a + 1)
