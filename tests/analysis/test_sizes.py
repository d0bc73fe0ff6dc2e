"""Sizes that a program leaves open: not negative, and not 0 inside of a loop over all of them."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check


@T.prim_func
def stages(a: T.handle, c: T.handle):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (m, n))
    C = T.match_buffer(c, (m, n))
    B = T.alloc_buffer((m, n))
    for i, j in T.grid(m, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(m, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


@T.prim_func
def sums(a: T.handle, c: T.handle):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (m, n, 4))
    C = T.match_buffer(c, (m, n))
    B = T.alloc_buffer((m, n))
    for i, j, k in T.grid(m, n, 4):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] += A[vi, vj, vk]
    for i, j in T.grid(m, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


def under_producer(sch):
    i, j = sch.get_loops("B")[:2]
    sch.reverse_compute_at("C", sch.fuse(i, j))


def under_consumer(sch):
    sch.compute_at("B", sch.fuse(*sch.get_loops("C")))


@pytest.mark.parametrize("move", [under_producer, under_consumer])
@pytest.mark.parametrize("program", [stages, sums])
def test_a_block_moves_under_a_loop_over_all(program, move):
    """f // n and f % n are one element in each iteration, and nothing is computed again."""
    check(program, move)
    sch = tw.Schedule(program)
    move(sch)
    assert len(sch.get_loops("B")) == (2 if program is sums else 1) and len(sch.get_loops("C")) == 1
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        for m, n in ((3, 5), (1, 1), (0, 4), (4, 0)):
            a = np.random.default_rng(0).integers(-4, 5, (m, n) if program is stages else (m, n, 4)).astype("float32")
            c = np.full((m, n), 9, "float32")
            kernel(a, c)
            np.testing.assert_array_equal(c, (a * 2 if program is stages else a.sum(2)) + 1)


def test_one_of_the_sizes_is_constant():
    @T.prim_func
    def rows(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (32, n))
        C = T.match_buffer(c, (32, n))
        B = T.alloc_buffer((32, n))
        for f in range(n * 32):
            with T.block("B"):
                vi = T.axis.spatial(32, f // n)
                vj = T.axis.spatial(n, f % n)
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for f in range(n * 32):
            with T.block("C"):
                vi = T.axis.spatial(32, f // n)
                vj = T.axis.spatial(n, f % n)
                C[vi, vj] = B[vi, vj] + T.float32(1)

    check(rows, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]))
    check(rows, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]))
    check(rows, lambda sch: sch.parallel(sch.get_loops("C")[0]))


@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_an_allocated_buffer_may_have_a_negative_extent(target):
    """It has no elements; nothing follows for the condition of another block, which blockize() dropped."""

    @T.prim_func
    def rows(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):
        B = T.alloc_buffer((n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = 1
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                T.where(i < 8 + n)
                C[vi] = A[vi] + 1

    sch = tw.Schedule(rows)
    sch.blockize(sch.get_loops("C")[0])
    kernel = tw.compile(sch, target)
    for n in (-9, -3, 0, 2):
        a, c = np.arange(8, dtype="int32"), np.zeros(8, "int32")
        kernel(a, c, n)
        np.testing.assert_array_equal(c, np.where(np.arange(8) < 8 + n, a + 1, 0))
