"""reindex_cache_read and reindex_cache_write."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def test_a_read():
    @T.prim_func
    def after(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
        B = T.alloc_buffer((4, 6))
        C = T.alloc_buffer((4, 6))
        B_shared = T.alloc_buffer((6, 2, 2), scope="shared")
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(4, 6):
            with T.block("B_shared"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_shared[vj, vi // 2, vi % 2] = B[vi, vj]
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B_shared[vj, vi // 2, vi % 2] * T.float32(2)
        for i, j in T.grid(4, 6):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] - A[vi, vj]

    def transform(sch):
        block = sch.reindex_cache_read("C", 0, "shared", lambda i, j: (j, i // 2, i % 2))
        assert sch.get(block).name_hint == "B_shared"

    check(workloads.elementwise_chain(4, 6), transform, after)


def test_a_parameter_for_one_reader_only():
    sch = check(
        workloads.elementwise_chain(4, 6),
        lambda sch: sch.reindex_cache_read("D", "A", "global", lambda i, j: (j, i)),
    )
    assert "C[vi, vj] - A_global[vj, vi]" in sch.mod.script() and "A[vi, vj] + T.float32(1.0)" in sch.mod.script()


def test_a_write():
    sch = check(
        workloads.elementwise_chain(4, 6), lambda sch: sch.reindex_cache_write("B", 0, "global", lambda i, j: (j, i))
    )
    assert "B_global[vj, vi] = A[vi, vj]" in sch.mod.script() and "B[vi, vj] = B_global[vj, vi]" in sch.mod.script()
    assert [sch.get(b).name_hint for b in sch.get_child_blocks("root")] == ["B", "B_global", "C", "D"]


def test_a_reduction():
    def transform(sch):
        sch.reindex_cache_write("C", 0, "local", lambda i, j, k: [j, i])
        sch.reindex_cache_read("C", 0, "global", lambda i, j, k: (k, i))
        sch.reindex_cache_read("C", "B", "global", lambda i, j, k: (j // 3, k, j % 3))

    text = check(workloads.matmul(4, 6, 5), transform).mod.script()
    assert "C_local[vj, vi] = C_local[vj, vi] + A_global[vl, vi] * B_global[vj // 3, vl, vj % 3]" in text


def test_below_the_loops_of_a_consumer():
    def transform(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        sch.reindex_cache_read("C", "B", "local", lambda i, j: (j, i))
        sch.reindex_cache_write("B", 0, "local", lambda i, j: (j, i))

    check(workloads.elementwise_chain(4, 6), transform)


def test_masked_loops():
    def transform(sch):
        sch.split(sch.get_loops("C")[0], [None, 3])
        sch.reindex_cache_read("C", 0, "global", lambda i, j: (j, i))
        sch.reindex_cache_write("C", 0, "global", lambda i, j: (j, i))

    check(workloads.elementwise_chain(4, 6), transform)


def test_indices_of_64_bits():
    @T.prim_func
    def wide(A: T.Buffer((T.int64(8), T.int64(4))), B: T.Buffer((T.int64(8), T.int64(4)))):
        for i, j in T.grid(T.int64(8), T.int64(4)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    sch = check(wide, lambda sch: sch.reindex_cache_read("B", 0, "global", lambda i, j: (j, i // 2, i % 2)))
    assert "A_global = T.alloc_buffer((T.int64(4), T.int64(4), T.int64(2)))" in sch.mod.script()


@T.prim_func
def read_then_written(A: T.Buffer((8,)), B: T.Buffer((4, 8))):
    for t in range(4):
        for i in range(8):
            with T.block("B"):
                vt, v = T.axis.remap("SS", [t, i])
                B[vt, v] = A[v]
        for i in range(8):
            with T.block("A"):
                vt, v = T.axis.remap("SS", [t, i])
                A[v] = T.Cast("float32", vt)


@T.prim_func
def loose(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.if_then_else(v >= 1, A[v - 1], T.float32(0))


@T.prim_func
def rows(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            for j in range(4):
                B[v, j] = A[v, j]


@T.prim_func
def updated(A: T.Buffer((8,))):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = A[v] * T.float32(2)


@T.prim_func
def bare(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
    A[0] = T.float32(0)


def read(index_map, scope="global", block="C", index=0):
    return lambda sch: sch.reindex_cache_read(block, index, scope, index_map)


def write(index_map, scope="global", block="C", index=0):
    return lambda sch: sch.reindex_cache_write(block, index, scope, index_map)


def split_reduction(sch):
    sch.split(sch.get_loops("C")[2], [None, 2])
    sch.reindex_cache_write("C", 0, "global", lambda i, j, k: (j, i))


CHAIN, PRODUCT = workloads.elementwise_chain(4, 6), workloads.matmul(4, 6, 5)


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
        (CHAIN, read(lambda i, j: (j, i), block="root"), "reindex_cache_read/P1"),
        (CHAIN, read(lambda i, j: (j, i), index=1), "reindex_cache_read/P1"),
        (CHAIN, read(lambda i, j: (j, i), "nowhere"), "reindex_cache_read/P2"),
        (read_then_written, read(lambda t, i: (i,), block="B"), "reindex_cache_read/P3"),
        (updated, read(lambda i: (i,), block="A"), "reindex_cache_read/P3"),
        (rows, read(lambda i: (i,), block="B"), "reindex_cache_read/P4"),
        (CHAIN, read(lambda i, j: (j * 2,)), "reindex_cache_read/P5"),
        (CHAIN, read(lambda i: (i,)), "reindex_cache_read/P5"),
        (CHAIN, read(lambda i, j: (i + j,)), "reindex_cache_read/P5"),
        (CHAIN, read(lambda i, j: (i - 1, j)), "reindex_cache_read/P5"),
        (bare, read(lambda i: (i,), block="B"), "reindex_cache_read/P7"),
        (bare, write(lambda i: (i,), block="B"), "reindex_cache_write/P7"),
        (loose, read(lambda i: (i,), block="B"), "reindex_cache_read/P6"),
        (CHAIN, write(lambda i, j: (j, i), block="root"), "reindex_cache_write/P1"),
        (CHAIN, write(lambda i, j: (j, i), index=1), "reindex_cache_write/P1"),
        (CHAIN, write(lambda i, j: (j, i), "nowhere"), "reindex_cache_write/P2"),
        (updated, write(lambda i: (i,), block="A"), "reindex_cache_write/P3"),
        (read_then_written, write(lambda t, i: (i,), block="A"), "reindex_cache_write/P3"),
        (rows, write(lambda i: (i,), block="B"), "reindex_cache_write/P4"),
        (CHAIN, write(lambda i, j: i), "reindex_cache_write/P5"),
        (PRODUCT, write(lambda i, j, k: (j, i, k)), "reindex_cache_write/P5"),
        (PRODUCT, split_reduction, "reindex_cache_write/P7"),
        (backwards, lambda sch: sch.reindex_cache_write("C", 0, "global", lambda i, k: (i,)), "reindex_cache_write/P6"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_a_copy_of_nothing_has_no_elements():
    @T.prim_func
    def zeros(a: T.handle):
        m = T.int32()
        A = T.match_buffer(a, (m,))
        for i in range(m):
            with T.block("A"):
                vi = T.axis.spatial(m, i)
                A[vi] = T.float32(0)

    sch = check(zeros, lambda sch: sch.reindex_cache_write("A", 0, "global", lambda i: (i * 2,)))
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        for size in (0, 1, 5):
            a = np.ones(size, "float32")
            kernel(a)
            assert (a == 0).all()


@pytest.mark.parametrize("is_late", [True, False])
def test_conditions_of_a_copy_have_their_data_by_then(is_late):
    """The copy of A would stand in front of all blocks, and ask M, which one of them makes first."""
    makes = """for i in range(8):
        with T.block("M"):
            v = T.axis.spatial(8, i)
            M[v] = A[v] > T.float32(0)
"""
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,)), N: T.Buffer((8,), "bool"), B: T.Buffer((8,))):
    M = T.alloc_buffer((8,), "bool")
    {makes}
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            T.where({"M" if is_late else "N"}[i])
            B[v] = A[v] + T.float32(1)
""")

    def transform(sch):
        sch.reindex_cache_read("B", 0, "local", lambda v: (v,))

    if is_late:
        check_refused(program, transform, "reindex_cache_read/P6")
    else:
        check(program, transform)


def test_a_copy_ahead_of_loops_that_may_have_no_iteration():
    """There the block has no instance, and the last row no number."""

    @T.prim_func
    def last_row(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 3))
        B = T.match_buffer(b, (n, 3))
        for i, j in T.grid(n, 3):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                vl = T.axis.spatial(n, n - 1)
                vj = T.axis.spatial(3, j)
                B[vi, vj] = A[vl, vj] * T.float32(2)

    sch = tw.Schedule(last_row)
    sch.reindex_cache_read("B", 0, "global", lambda vi, vl, vj: (vj, vl))
    assert "T.where(n > 0)" in sch.mod["main"].script()
    for n in (0, 1, 3):
        a, b = np.arange(3 * n, dtype="float32").reshape(n, 3), np.zeros((n, 3), "float32")
        tw.compile(sch, target="interpreter")(a, b)
        np.testing.assert_array_equal(b, np.broadcast_to(a[-1:] * 2, (n, 3)))
