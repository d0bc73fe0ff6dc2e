"""storage_align."""

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def test_the_padding_is_an_annotation():
    @T.prim_func
    def after(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
        B = T.alloc_buffer((4, 6))
        C = T.alloc_buffer((4, 6))
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"buffer_dim_align": [[0, 0, 16, 1]]})
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)
        for i, j in T.grid(4, 6):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] - A[vi, vj]

    check(workloads.elementwise_chain(4, 6), lambda sch: sch.storage_align("B", 0, -2, 16, 1), after)

    def again(sch):
        sch.storage_align("B", 0, 0, 8, 0)
        sch.storage_align("B", 0, 0, 16, 1)

    check(workloads.elementwise_chain(4, 6), again, after)

    def both(sch):
        sch.storage_align("B", 0, 0, 16, 1)
        sch.storage_align("B", 0, 1, 2, 0)

    text = check(workloads.elementwise_chain(4, 6), both).mod.script()
    assert '{"buffer_dim_align": [[0, 0, 16, 1], [0, 1, 2, 0]]}' in text


@pytest.mark.parametrize(("factor", "offset", "stride"), [(16, 1, 17), (16, 0, 16), (4, 2, 6), (5, 4, 9)])
def test_lowered_the_rows_lie_that_far_apart(factor, offset, stride):
    sch = tw.Schedule(workloads.elementwise_chain(4, 6))
    sch.storage_align("B", 0, -2, factor, offset)
    text = tw.lower(sch.mod, after="compact_buffers").script()
    assert re.search(rf"B = T.alloc_buffer\(\(4, 6\).*strides=.{stride}, 1", text)
    A, D = np.random.default_rng(0).random((4, 6), "float32"), np.zeros((4, 6), "float32")
    tw.compile(sch)(A, D)
    np.testing.assert_array_equal(D, (A + 1) * 2 - A)


def test_a_packed_copy_with_padding():
    """The tiles of a cached operand do not all begin on the same lines."""
    sch = tw.Schedule(workloads.matmul(16, 16, 16))
    _, j, _ = sch.get_loops("C")
    outer, _ = sch.split(j, [None, 8])
    sch.reorder(outer, sch.get_loops("C")[0])
    panel = sch.cache_read("C", 1, "global")
    sch.compute_at(panel, outer)
    sch.storage_align(panel, 0, -2, 16, 8)
    assert re.search(r"strides=.8, 1", tw.lower(sch.mod, after="compact_buffers").script())
    sch.storage_align(panel, 0, -2, 16, 9)
    assert re.search(r"strides=.9, 1", tw.lower(sch.mod, after="compact_buffers").script())
    arrays = [np.random.default_rng(i).random((16, 16), "float32") for i in range(3)]
    tw.compile(sch)(*arrays)
    np.testing.assert_allclose(arrays[2], arrays[0] @ arrays[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("B", 1, 0, 16, 1), "storage_align/P1"),
        (("B", 0, 0, 0, 1), "storage_align/P2"),
        (("B", 0, 2, 16, 1), "storage_align/P3"),
        (("B", 0, -3, 16, 1), "storage_align/P3"),
        (("D", 0, 0, 16, 1), "storage_align/P4"),
    ],
)
def test_refusals(arguments, code):
    check_refused(workloads.elementwise_chain(4, 6), lambda sch: sch.storage_align(*arguments), code)


@pytest.mark.parametrize("note", ["rows", [1, 2], [[0, 0, 16]], [[0, 0, "x", 1]]])
def test_an_annotation_of_another_form(note):
    def transform(sch):
        sch.annotate("B", "buffer_dim_align", note)
        sch.storage_align("B", 0, 0, 16, 1)

    check_refused(workloads.elementwise_chain(4, 6), transform, "storage_align/P5")


@pytest.mark.parametrize(
    "entry, why",
    [
        ("[0, 5, 32, 0]", "no dimension 5"),
        ("[0, -1, 32, 0]", "no dimension -1"),
        ("[0, 0, 0, 0]", "the factor 0"),
        ("[0, 0, -4, 0]", "the factor -4"),
        ("[0, 0, 9223372036854775807, 1]", "the factor 9223372036854775807"),
        ("[0, 0, 32, 9223372036854775807]", "the offset 9223372036854775807"),
        ("[7, 0, 32, 0]", "no write 7"),
        ("[0, 0]", "not a list"),
        ("['x', 0, 32, 0]", "not a list"),
        ("3", "not a list"),
    ],
)
def test_annotations_that_cannot_be_done_are_told(entry, why):
    func = tw.script.from_source(f"""
@T.prim_func
def main(X: T.Buffer((3,)), Y: T.Buffer((3,))):
    Z = T.alloc_buffer((3,))
    for i in range(3):
        with T.block("b"):
            v = T.axis.opaque(3, i)
            T.block_attr({{"buffer_dim_align": [{entry}]}})
            Z[v] = X[v]
            Y[v] = Z[v]
""")
    with pytest.warns(tw.PerformanceWarning, match=why):
        kernel = tw.compile(func)
    (note,) = [note for note in kernel.notes if note.code == "lower/not-aligned"]
    assert "block 'b'" in note.message
    x, y = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    kernel(x, y)
    np.testing.assert_array_equal(x, y)


def test_an_alignment_that_outlives_its_dimension():
    """The copy that reindex makes of one element has no dimensions; the annotation stays with the block."""

    @T.prim_func
    def total(X: T.Buffer((3,)), Y: T.Buffer((1,))):
        Z = T.alloc_buffer((1,))
        for i in range(3):
            with T.block("b"):
                v = T.axis.reduce(3, i)
                with T.init():
                    Z[0] = T.float32(0)
                Z[0] = Z[0] + X[v]
        with T.block("c"):
            Y[0] = Z[0]

    sch = tw.Schedule(total)
    sch.storage_align("b", 0, 0, 32, 0)
    sch.reindex("b", ("write", 0))
    with pytest.warns(tw.PerformanceWarning, match="no dimension 0"):
        kernel = tw.compile(sch)
    y = np.zeros(1, "float32")
    kernel(np.arange(3, dtype="float32"), y)
    assert y == 3
