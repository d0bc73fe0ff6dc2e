"""sch.add_unit_loop: a loop of one iteration around a block or a loop."""

from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def scalar(A: T.Buffer(()), B: T.Buffer(())):
    with T.block("B"):
        T.axis.spatial(1, 0)
        B[()] = A[()] * T.float32(2)


@T.prim_func
def pair(A: T.Buffer((4,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]


def test_around_a_block():
    @T.prim_func
    def after(A: T.Buffer((4,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
            for u in range(1):
                with T.block("C"):
                    vi = T.axis.spatial(4, i)
                    C[vi] = B[vi]

    def add(sch):
        block = sch.get_block("C")
        loop = sch.add_unit_loop(block)
        assert repr(loop) == "Loop(u, extent=1)" and sch.get(sch.get_loops(block)[1]) == sch.get(loop)

    check(pair, add, after)


def test_around_a_loop_and_around_nothing_else():
    @T.prim_func
    def after(A: T.Buffer(()), B: T.Buffer(())):
        for u, v in T.grid(1, 1):
            with T.block("B"):
                T.axis.spatial(1, 0)
                B[()] = A[()] * T.float32(2)

    check(scalar, lambda sch: sch.add_unit_loop(sch.add_unit_loop("B")), after)


def test_p1_the_root_has_no_place_for_it():
    error = check_refused(scalar, lambda sch: sch.add_unit_loop(sch.get_block("root")), "add_unit_loop/P1")
    assert isinstance(error, ValueError)
