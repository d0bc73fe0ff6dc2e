"""sch.lift_loop: loops out of the blocks whose bodies they are."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def nested(A: T.Buffer((8, 6)), B: T.Buffer((8, 6)), C: T.Buffer((8,))):
    for i in range(8):
        with T.block("outer"):
            vi = T.axis.spatial(8, i)
            for j in range(vi + -2, vi + 4):
                with T.block("B"):
                    vj = T.axis.spatial(6, j - vi + 2)
                    B[vi, vj] = A[vi, vj] + T.float32(1)
    for i in range(8):
        with T.block("sum"):
            vi = T.axis.spatial(8, i)
            for j in range(6):
                with T.block("C"):
                    vj = T.axis.reduce(6, j)
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] += A[vi, vj]


def test_bounds_that_depend_on_the_axes_of_the_block() -> None:
    def transform(sch: tw.Schedule) -> None:
        (i,), (j,) = sch.get_loops("outer"), sch.get_loops("B")
        sch.lift_loop(j)
        assert [sch.get(loop).loop_var.name_hint for loop in sch.get_loops("outer")] == ["i", "j"]
        sch.parallel(i)
        sch.unroll(j)

    check(nested, transform)


def test_p1_what_is_no_body_of_a_block() -> None:
    @T.prim_func
    def two(A: T.Buffer((8, 6)), B: T.Buffer((8, 6)), C: T.Buffer((8, 6))):
        for i in range(8):
            with T.block("outer"):
                vi = T.axis.spatial(8, i)
                for j in range(6):
                    with T.block("B"):
                        vj = T.axis.spatial(6, j)
                        B[vi, vj] = A[vi, vj]
                for j in range(6):
                    with T.block("C"):
                        vj = T.axis.spatial(6, j)
                        C[vi, vj] = A[vi, vj]

    for name in ("outer", "B", "C"):
        check_refused(two, lambda sch, name=name: sch.lift_loop(sch.get_loops(name)[0]), "lift_loop/P1")


def test_p2_a_loop_that_is_annotated() -> None:
    def transform(sch: tw.Schedule) -> None:
        (j,) = sch.get_loops("B")
        sch.unroll(j)
        sch.lift_loop(j)

    check_refused(nested, transform, "lift_loop/P2")


def test_p3_iterations_that_add_up() -> None:
    check_refused(nested, lambda sch: sch.lift_loop(sch.get_loops("C")[0]), "lift_loop/P3")


def test_p4_a_buffer_that_the_iterations_share() -> None:
    @T.prim_func
    def shared(A: T.Buffer((8, 6)), B: T.Buffer((8, 6))):
        for i in range(8):
            with T.block("outer"):
                vi = T.axis.spatial(8, i)
                t = T.alloc_buffer((6,))
                for j in range(6):
                    with T.block("t"):
                        vj = T.axis.opaque(6, j)
                        t[vj] = A[vi, vj]
                    with T.block("B"):
                        vj = T.axis.opaque(6, j)
                        B[vi, vj] = t[0]

    check_refused(shared, lambda sch: sch.lift_loop(sch.get_loops("B")[0]), "lift_loop/P3")
    own = from_source(
        shared.script().replace("t[0]", "t[vj]").replace("T.axis.opaque", "T.axis.spatial").replace("shared", "own")
    )
    check(own, lambda sch: sch.lift_loop(sch.get_loops("B")[0]))
    # What an iteration adds to has a value from before: nobody knows which.
    adds = from_source(
        own.script().replace("T.reads(A[vi, vj])", "T.reads(t[vj], A[vi, vj])").replace("= A[", "= t[vj] + A[")
    )
    check_refused(adds, lambda sch: sch.lift_loop(sch.get_loops("B")[0]), "lift_loop/P4")


def test_p5_data_say_how_far_it_goes_where_a_condition_says_whether() -> None:
    @T.prim_func
    def ragged(P: T.Buffer((5,), "int32"), A: T.Buffer((40,)), B: T.Buffer((40,))):
        T.assume_buffer_domain(P, [0, 41], order="nondecreasing")
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                for p in range(P[vi + 1] - P[vi]):
                    with T.block("B"):
                        vp = T.axis.spatial(P[vi + 1] - P[vi], p)
                        B[P[vi] + vp] = A[P[vi] + vp]

    def lifts(sch: tw.Schedule) -> None:
        sch.lift_loop(sch.get_loops("B")[0])
        sch.split(sch.get_loops("row")[1], [None, 4])

    check(ragged, lifts)

    def transform(sch: tw.Schedule) -> None:
        sch.split(sch.get_loops("row")[0], [None, 3])
        sch.lift_loop(sch.get_loops("B")[0])

    check_refused(ragged, transform, "lift_loop/P5")


@T.prim_func
def condition_that_changes(F: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")):
    for i in range(8):
        with T.block("outer"):
            vi = T.axis.spatial(8, i)
            T.where(F[i, 0] > 0)
            T.reads(F[vi, 0:4])
            T.writes(F[vi, 0:4], C[vi, 0:4])
            for j in range(4):
                with T.block("C"):
                    vj = T.axis.spatial(4, j)
                    F[vi, vj] = 0
                    C[vi, vj] = 7


@T.prim_func
def axis_that_changes(F: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")):
    for i in range(8):
        with T.block("outer"):
            vi = T.axis.spatial(8, i)
            vb = T.axis.spatial(8, F[i, 0])
            T.reads()
            T.writes(F[vi, 0:4], C[vi, 0:4])
            for j in range(4):
                with T.block("C"):
                    vj = T.axis.spatial(4, j)
                    F[vi, vj] = 0
                    C[vi, vj] = vb


@T.prim_func
def view_that_changes(F: T.Buffer((4,), "int32"), A: T.Buffer((8,), "int32"), C: T.Buffer((4,), "int32")):
    with T.block("outer"):
        _vi = T.axis.spatial(1, 0)
        T.reads(F[0], A[0:8])
        T.writes(F[0:4], C[0:4])
        V = T.match_buffer(A[F[0] : F[0] + 4], (4,), "int32", offset_factor=1)
        for j in range(4):
            with T.block("C"):
                vj = T.axis.spatial(4, j)
                F[vj] = 1
                C[vj] = V[vj]


@pytest.mark.parametrize("program", [condition_that_changes, axis_that_changes, view_that_changes])
def test_p5_what_the_block_asks_for_once_does_not_change(program: tw.ir.PrimFunc) -> None:
    """The first iteration of j stores what the block has read before it."""
    error = check_refused(program, lambda sch: sch.lift_loop(sch.get_loops("C")[-1]), "lift_loop/P5")
    assert "evaluates once" in str(error)
