"""Buffers that domains of axes read, in programs that write them."""

import numpy as np

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def rows_of_a_computed_structure(counts: T.Buffer((4,), "int32"), A: T.Buffer((12,)), B: T.Buffer((4,))):
    """The domain of an axis is all that reads P."""
    P = T.alloc_buffer((5,), "int32")
    for i in range(5):
        with T.block("P"):
            vi = T.axis.spatial(5, i)
            P[vi] = vi * T.max(counts[0], 3)
    for i, p in T.grid(4, 3):
        with T.block("sum"):
            vi = T.axis.spatial(4, i)
            vp = T.axis.reduce(P[1] - P[0], p)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] += A[vi * 3 + vp]


def test_domains_of_axes_read_the_buffer():
    def transform(sch):
        sch.cache_write("P", 0, "global")
        assert [sch.get(block).name_hint for block in sch.get_child_blocks("root")] == ["P", "P_global", "sum"]

    sch = check(rows_of_a_computed_structure, transform)
    A, B = np.arange(12, dtype="float32"), np.empty(4, "float32")
    tw.compile(sch)(np.zeros(4, "int32"), A, B)
    np.testing.assert_array_equal(B, A.reshape(4, 3).sum(1))
    assert sch.get(sch.get_consumers("P_global")[0]).name_hint == "sum"


def test_cache_write_p5_of_a_consumer_whose_domain_reads_the_buffer():
    def transform(sch):
        sch.cache_write("P", 0, "global", consumer_blocks=[sch.get_block("sum")])

    check_refused(rows_of_a_computed_structure, transform, "cache_write/P5")


def test_cache_write_p3_of_a_block_whose_axes_read_what_it_writes():
    @T.prim_func
    def program(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(T.max(8, B[0]), i)
                B[vi] = A[vi]

    check_refused(program, lambda sch: sch.cache_write("B", 0, "global"), "cache_write/P3")
