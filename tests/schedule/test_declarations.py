"""Blocks that call what nobody can see into: steps take them at their word, and say so."""

import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_refused

SAID = "block 'load' does what its axes and regions declare"


@T.prim_func
def tiles(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64, 64), "float16"), C: T.Buffer((64, 64), "float16")):
    for i, j in T.grid(4, 4):
        with T.block("load"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.writes(B[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.call_extern("int32", "load_tile", B.data, A.data, vi, vj)
    for i, j in T.grid(64, 64):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float16(1)


STEPS = {
    "reorder": lambda sch: sch.reorder(*reversed(sch.get_loops("load"))),
    "parallel": lambda sch: sch.parallel(sch.get_loops("load")[0]),
    "bind": lambda sch: sch.bind(sch.get_loops("load")[1], "threadIdx.x"),
    "cache_read": lambda sch: sch.cache_read("C", 0, "shared"),
    "cache_write": lambda sch: sch.cache_write("load", 0, "shared"),
    "reverse_compute_at": lambda sch: sch.reverse_compute_at("C", sch.get_loops("load")[1]),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_a_step_rests_on_is_stated(name):
    sch = tw.Schedule(tiles)
    STEPS[name](sch)
    assert list(sch.trace.stated.values()) == [SAID]
    assert "assumed_declarations" not in sch.mod.script()
    again = tw.Schedule(tiles)
    sch.trace.apply_to_schedule(again)
    tw.ir.assert_structural_equal(again.mod, sch.mod)
    assert again.trace.stated == sch.trace.stated


def test_what_the_call_gets_follows_the_copy():
    sch = tw.Schedule(tiles)
    sch.cache_write("load", 0, "global")
    assert "B_global.data, A.data, vi, vj" in sch.mod.script()


def test_steps_that_need_no_block_of_the_kind_state_nothing():
    sch = tw.Schedule(tiles)
    sch.parallel(sch.get_loops("C")[0])
    sch.split(sch.get_loops("load")[0], [2, 2])
    assert sch.trace.stated == {}


def test_only_the_blocks_that_a_step_needs_are_named():
    @T.prim_func
    def two(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("first"):
                v = T.axis.spatial(8, i)
                T.reads()
                T.writes(A[v])
                T.call_extern("int32", "first", A.data, v)
        for i in range(8):
            with T.block("second"):
                v = T.axis.spatial(8, i)
                T.reads()
                T.writes(B[v])
                T.call_extern("int32", "second", B.data, v)

    sch = tw.Schedule(two)
    sch.parallel(sch.get_loops("second")[0])
    assert list(sch.trace.stated.values()) == ["block 'second' does what its axes and regions declare"]


@T.prim_func
def overlapping(A: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(A[0:16, 0:16])
            T.tvm_fill_fragment(A.data, 4, 4, 4, vi * 4 + vj, 0.0)


def test_instances_that_may_write_the_same_elements():
    """Spatial axes say that instances do not depend on one another; what all of them write is not known."""
    sch = tw.Schedule(overlapping)
    sch.reorder(*reversed(sch.get_loops("fill")))
    sch.parallel(sch.get_loops("fill")[0])
    assert len(sch.trace.stated) == 2
    check_refused(overlapping, lambda s: s.cache_write("fill", 0, "global"), "cache_write/P3")


def test_lanes_and_undeclared_pointers_are_no_matter_of_trust():
    check_refused(tiles, lambda sch: sch.vectorize(sch.get_loops("load")[1]), "vectorize/P2")

    @T.prim_func
    def more(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i, j in T.grid(2, 2):
            with T.block("load"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(A[vi * 2 + vj])
                T.call_extern("int32", "fill", A.data, B.data)

    check_refused(more, lambda sch: sch.reorder(*reversed(sch.get_loops("load"))), "reorder/P4")


def test_an_annotation_of_a_program_is_not_believed():
    """The mark cannot be written: without the step being stated, nothing counts as declared."""

    @T.prim_func
    def annotated(A: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("load"):
                v = T.axis.spatial(8, i)
                T.block_attr({"tilewright.assumed_declarations": True})
                T.reads()
                T.writes(A[v])
                T.call_extern("int32", "fill", A.data, v)

    sch = tw.Schedule(annotated)
    sch.parallel(sch.get_loops("load")[0])
    assert list(sch.trace.stated.values()) == [SAID]


def test_axes_and_reductions():
    """What accumulates declares to read what it writes; axes of no kind promise nothing."""

    @T.prim_func
    def sums(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 8):
            with T.block("load"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk], B[vi])
                T.writes(B[vi])
                T.call_extern("int32", "add_to", B.data, A.data, vi, vk)

    sch = tw.Schedule(sums)
    sch.parallel(sch.get_loops("load")[0])
    assert list(sch.trace.stated.values()) == [SAID]
    check_refused(sums, lambda s: s.parallel(s.get_loops("load")[1]), "parallel/P2")

    @T.prim_func
    def opaque(B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("load"):
                v = T.axis.opaque(8, i)
                T.reads()
                T.writes(B[v])
                T.call_extern("int32", "fill", B.data, v)

    check_refused(opaque, lambda s: s.parallel(s.get_loops("load")[0]), "parallel/P2")


def test_a_pointer_needs_a_copy_that_lies_alike():
    """A copy of the part that is written is smaller than the buffer: the call would write past it."""

    @T.prim_func
    def half(A: T.Buffer((8, 16), "int32")):
        for i in range(4):
            with T.block("load"):
                v = T.axis.spatial(4, i)
                T.reads()
                T.writes(A[v, 0:16])
                T.call_extern("int32", "fill", A.data, v)

    check_refused(half, lambda sch: sch.cache_write("load", 0, "global"), "cache_write/P3")

    @T.prim_func
    def read(A: T.Buffer((8, 16), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(4):
            with T.block("A"):
                v = T.axis.spatial(4, i)
                A[v, 0] = v
        for i in range(4):
            with T.block("load"):
                v = T.axis.spatial(4, i)
                T.reads(A[v, 0])
                T.writes(B[v])
                B[v] = T.call_extern("int32", "look", A.data, v)

    error = check_refused(read, lambda sch: sch.cache_read("load", 0, "global"), "cache_read/P4")
    assert "uses the pointer of 'A'" in str(error)


def test_the_pointer_of_a_view_says_no_more_than_that_of_the_buffer():
    @T.prim_func
    def viewed(A: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float16")):
        for i in range(4):
            with T.block("load"):
                v = T.axis.spatial(4, i)
                T.reads(A[v * 16 : v * 16 + 16])
                T.writes(B[v * 16 : v * 16 + 16])
                A0 = T.match_buffer(A[v * 16 : v * 16 + 16], (16,), "float16", offset_factor=1)
                B0 = T.match_buffer(B[v * 16 : v * 16 + 16], (16,), "float16", offset_factor=1)
                T.tvm_load_matrix_sync(B0.data, 4, 4, 4, 0, A0.access_ptr("r"), 4, "row_major")

    sch = tw.Schedule(viewed)
    sch.cache_write("load", 0, "local")
    assert list(sch.trace.stated.values()) == [SAID]
    assert "B0 = T.match_buffer(B_local[v * 16:v * 16 + 16]" in sch.mod.script()

    @T.prim_func
    def belied(A: T.Buffer((64,), "float16"), B: T.Buffer((64,), "float16")):
        for i in range(4):
            with T.block("load"):
                v = T.axis.spatial(4, i)
                T.reads(A[v * 16 : v * 16 + 16])
                T.writes(B[v * 16 : v * 16 + 16])
                A0 = T.match_buffer(A[v * 16 : v * 16 + 16], (16,), "float16", offset_factor=1)
                B0 = T.match_buffer(B[v * 16 : v * 16 + 16], (16,), "float16", offset_factor=1)
                T.call_extern("int32", "swap", B0.access_ptr("w"), A0.access_ptr("rw"))

    check_refused(belied, lambda s: s.parallel(s.get_loops("load")[0]), "parallel/P2")
