"""sch.reorder_block_iter_var: the axes of a block in another order."""

import pytest

from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def copy(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


def test_the_example_of_the_contract():
    @T.prim_func
    def after(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vj, vi = T.axis.remap("SS", [j, i])
                B[vi, vj] = A[vi, vj]

    check(copy, lambda sch: sch.reorder_block_iter_var("B", [1, 0]), after)


def test_a_reduction_axis_first():
    def transform(sch):
        block = sch.get_block("C")
        sch.reorder_block_iter_var(block, [2, 0, 1])
        assert [axis.var.name_hint for axis in sch.get(block).iter_vars] == ["vl", "vi", "vj"]
        sch.reorder(*reversed(sch.get_loops(block)))

    check(workloads.matmul(4, 5, 6), transform)


@pytest.mark.parametrize("order", [[0], [0, 0], [0, 2], [-1, 0], [0, 1, 2]])
def test_p1_each_axis_once(order):
    check_refused(copy, lambda sch: sch.reorder_block_iter_var("B", order), "reorder_block_iter_var/P1")


def test_p2_the_root_has_none():
    check_refused(copy, lambda sch: sch.reorder_block_iter_var(sch.get_block("root"), []), "reorder_block_iter_var/P2")
