"""Steps that would make iterations of parallel or thread-bound loops depend on one another are refused."""

import pytest

from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def twice_parallel(A: T.Buffer((24,)), C: T.Buffer((4, 6))):
    B = T.alloc_buffer((6, 4))
    for j in T.parallel(6):
        for i in T.parallel(4):
            for k in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(24, j * 4 + k)
                    B[vi // 4, vi % 4] = A[vi]
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj, vi]


@T.prim_func
def whole_copy_each(A: T.Buffer((24,)), C: T.Buffer((4, 6))):
    B = T.alloc_buffer((6, 4))
    for i in T.parallel(4):
        for k in range(24):
            with T.block("B"):
                vi = T.axis.spatial(24, k)
                B[vi // 4, vi % 4] = A[vi]
        for j in range(6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj, vi]


@T.prim_func
def masked(A: T.Buffer((12,)), C: T.Buffer((6,))):
    B = T.alloc_buffer((12,))
    for i in T.parallel(6):
        for p, q in T.grid(3, 4):
            for k in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(12, i * 2 + p * 8 + q * 2 + k)
                    T.where(p * q + p + q < 1)
                    B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(6, i + p * 4 + q)
                T.where(p * q + p + q < 1)
                C[vi] = T.max(B[vi * 2], B[vi * 2 + 1])


@T.prim_func
def overhanging(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
    C = T.alloc_buffer((4, 6))
    for i, j_0 in T.grid(4, 1):
        for j_1 in T.thread_binding(2, thread="threadIdx.y"):
            for j_2 in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.spatial(6, j_0 * 8 + j_1 * 4 + j_2)
                    T.where((j_0 * 2 + j_1) * 4 + j_2 < 6)
                    C[vi, vj] = A[vi, vj]
            for k in range(4):
                with T.block("D"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.spatial(6, j_1 * 4 + k)
                    T.where(j_1 * 4 + k < 6)
                    D[vi, vj] = C[vi, vj]


@T.prim_func
def selected_sums(F: T.Buffer((6,), "int32"), A: T.Buffer((6, 8), "int32"), C: T.Buffer((6,), "int32")):
    """Data say which sums there are."""
    for i, k in T.grid(6, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(F[i] > 0)
            with T.init():
                C[vi] = 0
            C[vi] += A[vi, vk]


def tiled_matmul(sch):
    i, *_ = sch.get_loops("C")
    i_0, i_1 = sch.split(i, [4, None])
    sch.bind(i_0, "threadIdx.x")
    sch.decompose_reduction("C", i_1)


def consumer_leaves(sch):
    """What only the iterations of i used is used elsewhere, too."""
    sch.cache_write("C", 0, "global")
    sch.compute_at("C", sch.get_loops("C_global")[0])


@T.prim_func
def halo_lanes(A: T.Buffer((10,)), C: T.Buffer((8,))):
    P = T.alloc_buffer((10,))
    for k in range(3):
        for i in T.vectorized(8):
            with T.block("P"):
                vi = T.axis.spatial(10, i + k)
                P[vi] = A[vi]
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + P[vi + vk]


@T.prim_func
def lanes_share(A: T.Buffer((4,)), C: T.Buffer((4, 6))):
    B = T.alloc_buffer((4,))
    for i in T.vectorized(4):
        for j in range(6):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi]


def test_threads_begin_the_sums_that_they_go_on_with():
    """The last of four threads has no rows, which the two blocks say in different words."""
    check(workloads.matmul(6, 8, 10), tiled_matmul)


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (halo_lanes, lambda sch: sch.reorder(*reversed(sch.get_loops("C"))), "reorder/P6"),
        (twice_parallel, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[2]), "reverse_compute_at/P9"),
        (twice_parallel, consumer_leaves, "compute_at/P9"),
        (whole_copy_each, lambda sch: sch.reverse_compute_inline("C"), "reverse_compute_inline/P9"),
        (masked, lambda sch: sch.compute_inline("B"), "compute_inline/P9"),
        (overhanging, lambda sch: sch.cache_read("D", 0, "global"), "cache_read/P9"),
        (overhanging, lambda sch: sch.cache_write("C", 0, "global"), "cache_write/P9"),
        (selected_sums, tiled_matmul, "decompose_reduction/P9"),
    ],
)
def test_refusals(program, transform, code):
    check(program, lambda sch: None)
    error = check_refused(program, transform, code)
    assert "would no longer be independent" in str(error)


def test_lanes_of_a_vector_share_buffers():
    check_refused(lanes_share, lambda sch: sch.parallel(sch.get_loops("C")[1]), "parallel/P4")
