"""reindex."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def transposed(A: T.Buffer((4, 8)), B: T.Buffer((8, 4))):
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] * T.float32(2)


def test_a_read():
    @T.prim_func
    def after(A: T.Buffer((4, 8)), B: T.Buffer((8, 4))):
        A_reindex = T.alloc_buffer((8, 4))
        for ax0, ax1 in T.grid(8, 4):
            with T.block("A_reindex_reindex"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_reindex[v0, v1] = A[v1, v0]
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_reindex[vi, vj] * T.float32(2)

    def transform(sch):
        assert sch.get(sch.reindex("B", ("read", 0))).name_hint == "A_reindex_reindex"

    check(transposed, transform, after)
    check(transposed, lambda sch: sch.reindex("B", "A"), after)
    check(transposed, lambda sch: sch.reindex("B", sch.get(sch.get_block("B")).reads[0].buffer), after)


@T.prim_func
def conv(A: T.Buffer((10, 3)), W: T.Buffer((3, 3, 2)), B: T.Buffer((4, 2))):
    for i, o, r, c in T.grid(4, 2, 3, 3):
        with T.block("B"):
            vi, vo, vr, vc = T.axis.remap("SSRR", [i, o, r, c])
            with T.init():
                B[vi, vo] = T.float32(0)
            B[vi, vo] = B[vi, vo] + A[vi * 2 + vr, vc] * W[vr, vc, vo]


def test_all_operands_of_a_convolution():
    def transform(sch):
        sch.reindex("B", ("read", 0))
        sch.reindex("B", ("read", 1))
        block = sch.reindex("B", ("write", 0))
        assert sch.get(block).name_hint == "B_reindex"

    text = check(conv, transform).mod.script()
    assert "A_reindex[v0, v1, v2] = A[v0 * 2 + v1, v2]" in text
    assert "B_reindex[vi, vo] = B_reindex[vi, vo] + A_reindex[vi, vr, vc] * W_reindex[vo, vr, vc]" in text


def test_axes_of_one_value_stay_indices():
    """As in TVM: what simplifies to a constant keeps its form."""

    @T.prim_func
    def one(A: T.Buffer((1, 8)), B: T.Buffer((8,))):
        for n, i in T.grid(1, 8):
            with T.block("B"):
                vn, vi = T.axis.remap("SS", [n, i])
                B[vi] = A[vn, vi]

    text = check(one, lambda sch: sch.reindex("B", ("read", 0))).mod.script()
    assert "A_reindex = T.alloc_buffer((1, 8))" in text and "A_reindex[v0, v1] = A[v0, v1]" in text


def test_masked_loops():
    def transform(sch):
        sch.split(sch.get_loops("B")[0], [None, 3])
        sch.reindex("B", ("read", 0))
        sch.reindex("B", ("write", 0))

    check(transposed, transform)


def test_below_parallel_loops():
    def transform(sch):
        sch.parallel(sch.get_loops("B")[0])
        sch.reindex("B", ("read", 0))
        sch.reindex("B", ("write", 0))

    check(transposed, transform)


@T.prim_func
def two_reads(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] + A[vi, vj]


@T.prim_func
def nested(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("O"):
            vo = T.axis.spatial(8, i)
            for j in range(1):
                with T.block("B"):
                    B[vo] = A[vo]


@T.prim_func
def together(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = B[v]


@T.prim_func
def updated(A: T.Buffer((8,))):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = A[v] * T.float32(2)


@T.prim_func
def padded(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.if_then_else(v >= 1, A[v - 1], T.float32(0))


@T.prim_func
def half(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]


@T.prim_func
def unwritten(A: T.Buffer((8,)), B: T.Buffer((8,))):
    X = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("X"):
            v = T.axis.spatial(8, i)
            X[v] = A[v]
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.if_then_else(v < 4, X[v], T.float32(0))


@T.prim_func
def threads(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in T.parallel(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.reads(A[0:8])
            T.writes(B[v])
            B[v] = A[7 - v] + A[7 - v]


@T.prim_func
def backwards(A: T.Buffer((4, 5)), C: T.Buffer((4,))):
    for i, k in T.grid(4, 5):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            vk = T.axis.reduce(5, 4 - k)
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + A[v, vk]


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (transposed, lambda sch: sch.reindex("root", ("read", 0)), "reindex/P1"),
        (transposed, lambda sch: sch.reindex("B", ("read", 1)), "reindex/P1"),
        (transposed, lambda sch: sch.reindex("B", "X"), "reindex/P1"),
        (two_reads, lambda sch: sch.reindex("B", ("read", 0)), "reindex/P2"),
        (nested, lambda sch: sch.reindex("O", ("read", 0)), "reindex/P2"),
        (together, lambda sch: sch.reindex("B", ("read", 0)), "reindex/P3"),
        (updated, lambda sch: sch.reindex("A", ("read", 0)), "reindex/P4"),
        (updated, lambda sch: sch.reindex("A", ("write", 0)), "reindex/P4"),
        (padded, lambda sch: sch.reindex("B", ("read", 0)), "reindex/P5"),
        (half, lambda sch: sch.reindex("B", ("write", 0)), "reindex/P5"),
        (unwritten, lambda sch: sch.reindex("B", ("read", 0)), "reindex/P5"),
        (backwards, lambda sch: sch.reindex("C", ("write", 0)), "reindex/P5"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_loose_declarations():
    """What counts is what the block touches."""
    check(threads, lambda sch: sch.reindex("B", ("read", 0)))


def test_a_producer_and_its_consumer():
    def transform(sch):
        sch.reindex("C", ("write", 0))
        sch.reindex("D", ("read", 0))

    check(workloads.matmul_relu(4, 6, 5), transform)


def test_a_copy_runs_where_its_block_does():
    """A block that a size of 0 keeps from running has nothing to read."""

    @T.prim_func
    def main(a: T.handle, c: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n, m))
        C = T.match_buffer(c, (n,))
        B = T.alloc_buffer((n,))
        for i, k in T.grid(n, m):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi, 0]
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                T.where(m > 0)
                C[vi] = B[vi]

    sch = tw.Schedule(main)
    sch.reindex("C", ("read", 0))
    module, a, c = sch.mod, np.zeros((5, 0), "float32"), np.zeros(5, "float32")
    tw.ir.interpret(module, "main", a, c)
    a = np.ones((5, 2), "float32")
    tw.ir.interpret(module, "main", a, c)
    assert (c == 1).all()


def test_p5_axes_of_more_values_than_the_block_around_reads():
    @T.prim_func
    def part(A: T.Buffer((4, 4)), C: T.Buffer((4,))):
        B = T.alloc_buffer((4, 4))
        for i, j in T.grid(4, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i in range(4):
            with T.block("outer"):
                vo = T.axis.spatial(4, i)
                for j in range(1):
                    with T.block("C"):
                        vj = T.axis.spatial(4, j)
                        C[vo] = B[vj, vj]

    check_refused(part, lambda sch: sch.reindex("C", ("read", 0)), "reindex/P5")
