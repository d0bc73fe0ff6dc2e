"""What each iteration of a parallel loop has of its own, it keeps: steps after which that could not be proved are
refused, whatever they do."""

import pytest

from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def tiles(A: T.Buffer((12,)), C: T.Buffer((2, 3, 12))):
    B = T.alloc_buffer((3, 4))
    for s in range(2):
        for p in range(3):
            for i, j in T.grid(3, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi * 4 + vj] + T.float32(1)
            for i, j in T.grid(3, 4):
                with T.block("C"):
                    vs, vp, vi, vj = T.axis.remap("SSSS", [s, p, i, j])
                    C[vs, vp, vi * 4 + vj] = B[vi, vj]


def test_loops_inside_may_change_as_long_as_all_is_written():
    def transform(sch):
        s, p, i, j = sch.get_loops("B")
        sch.parallel(p)
        sch.split(j, [None, 2])
        sch.split(i, [None, 2])
        sch.add_unit_loop(s)
        _, _, _, i, j = sch.get_loops("C")
        sch.fuse(i, j)

    check(tiles, transform)


def partition(sch):
    sch.loop_partition(sch.get_loops("B")[2], [1])


def tiles_that_stick_out(sch):
    _, _, i, j = sch.get_loops("B")
    sch.split(sch.fuse(i, j), [None, 5])


@pytest.mark.parametrize("step", [partition, tiles_that_stick_out])
def test_what_can_be_proved_is_accepted(step):
    def transform(sch):
        sch.parallel(sch.get_loops("B")[1])
        step(sch)

    check(tiles, transform)


def test_copies_of_a_parallel_loop_have_one_buffer_together():
    """Which is then none of the iterations' own."""

    def transform(sch):
        sch.loop_partition(sch.get_loops("B")[0], [1])

    def in_parallel(sch):
        sch.parallel(sch.get_loops("B")[1])
        transform(sch)

    check(tiles, transform)
    check_refused(tiles, in_parallel, "schedule/shared-buffer")


def test_threads_around_share_main_memory():
    """A buffer that each iteration of a parallel loop owns is one for all threads of a loop around it."""

    @T.prim_func
    def rows(A: T.Buffer((4,)), C: T.Buffer((1, 2, 4))):
        B = T.alloc_buffer((4,))
        for t, p in T.grid(1, 2):
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] * T.float32(2)
            for i in range(4):
                with T.block("C"):
                    vt, vp, vi = T.axis.remap("SSS", [t, p, i])
                    C[vt, vp, vi] = B[vi]

    def transform(sch):
        sch.parallel(sch.get_loops("B")[1])
        sch.bind(sch.get_loops("B")[0], "threadIdx.x")

    check(rows, lambda sch: sch.parallel(sch.get_loops("B")[1]))
    check_refused(rows, transform, "schedule/shared-buffer")
