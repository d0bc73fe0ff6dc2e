"""Blocks that use the variables of loops inside, not only to bind their axes."""

from tilewright.script import tir as T
from tilewright.testing import check_refused


def test_p1_a_block_that_accumulates_and_uses_its_loop_inside():
    """The partial results get loops of their own: nothing would bind k there."""

    @T.prim_func
    def sums(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
        for i, k in T.grid(8, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(C[vi], A[vi, 0:8])
                T.writes(C[vi])
                C[vi] = C[vi] + A[vi, k]

    check_refused(sums, lambda sch: sch.rfactor(sch.get_loops("B")[1], 0), "rfactor/P1")
