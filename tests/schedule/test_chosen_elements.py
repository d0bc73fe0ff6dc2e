"""Elements that a condition on the axes of their writer chooses, as j <= i does: what other steps do with them is in
test_random_triangles.py."""

import pytest

import tilewright as tw
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
