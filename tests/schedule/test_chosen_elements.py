"""Elements that a condition on the axes of their writer chooses, as j <= i does: what other steps do with them is in
test_random_triangles.py."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check


@pytest.mark.parametrize("condition", ["j <= i", "i + j < 9", "j % 2 == i % 2 and j < i + 4"])
def test_copies_of_elements_that_a_condition_chooses(condition):
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((6, 7), "int32"), C: T.Buffer((6, 7), "int32")):
    B = T.alloc_buffer((6, 7), "int32")
    for i, j in T.grid(6, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where({condition})
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(6, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where({condition})
            C[vi, vj] = B[vi, vj] * 2
""")
    for step in (
        lambda sch: sch.cache_read("C", 0, "local"),
        lambda sch: sch.cache_write("B", 0, "local"),
        lambda sch: sch.cache_write("C", 0, "local"),
    ):
        assert check(program, step).mod.script().count("T.where") == 3


@pytest.mark.parametrize("again", [False, True])
def test_a_copy_of_a_copy_keeps_each_of_two_guards(again):
    """One loop of the writer is left of its guards inside of the copy's place, the other one stands outside."""

    @T.prim_func
    def before(A: T.Buffer((3, 3), "int32"), C: T.Buffer((3, 3), "int32")):
        B = T.alloc_buffer((3, 3), "int32")
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 3
        for i, j in T.grid(3, 3):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1

    def transform(sch):
        _, j = sch.get_loops("B")
        j_0, _ = sch.split(j, [5, None])
        sch.reverse_compute_at("C", j_0)
        sch.split(sch.get_loops("B")[0], [None, 4])
        copy = sch.cache_read("C", 0, "global")
        if again:
            sch.cache_read(copy, 0, "local")

    sch = check(before, transform)
    a, c = np.arange(9, dtype="int32").reshape(3, 3), np.zeros((3, 3), "int32")
    tw.compile(sch)(a, c)
    np.testing.assert_array_equal(c, a * 3 + 1)
