"""One memory with two names: views, buffers declared over a pointer, and pointers that a let names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.testing import check, check_refused

Step = Callable[[tw.Schedule], Any]


@T.prim_func
def reversed_view(C: T.Buffer((16,), "int32")):
    with T.block("S"):
        _vs = T.axis.spatial(1, 0)
        T.reads(C[0:16])
        T.writes(C[0:16])
        X = T.match_buffer(C[0:16], (16,), "int32")
        Y = T.match_buffer(C[0:16], (16,), "int32")
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                Y[vi] = X[15 - vi] + 1


def swap_halves(sch: tw.Schedule) -> None:
    outer, inner = sch.split(sch.get_loops("B")[-1], [4, 4])
    sch.reorder(inner, outer)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda sch: sch.parallel(sch.get_loops("B")[-1]), "parallel/P2"),
        (lambda sch: sch.vectorize(sch.get_loops("B")[-1]), "vectorize/P2"),
        (swap_halves, "reorder/P4"),
    ],
)
def test_a_block_that_reads_by_one_view_what_it_writes_by_another(step: Step, code: str) -> None:
    """Iteration 8 reads what iteration 7 has written."""
    error = check_refused(reversed_view, step, code)
    assert "accesses one memory as 'Y' and as 'X'" in str(error)


def test_views_of_different_elements_are_no_obstacle() -> None:
    @T.prim_func
    def halves(C: T.Buffer((16,), "int32")):
        with T.block("S"):
            _vs = T.axis.spatial(1, 0)
            T.reads(C[0:16])
            T.writes(C[0:16])
            X = T.match_buffer(C[0:8], (8,), "int32")
            Y = T.match_buffer(C[8:16], (8,), "int32")
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    Y[vi] = X[7 - vi] + 1

    check(halves, lambda sch: sch.parallel(sch.get_loops("B")[-1]))


@T.prim_func
def two_operations(A: T.Buffer((4, 4, 4), "int32"), C: T.Buffer((4,), "int32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            T.reads(A[vi, 0:4, 0:4])
            T.writes(C[vi])
            X = T.match_buffer(C[vi], (1,), "int32")
            Y = T.match_buffer(C[vi], (1,), "int32")
            with T.init():
                C[vi] = 0
            X[0] = X[0] + A[vi, vj, vk]
            Y[0] = T.max(Y[0], A[vi, vk, vj] * 3)


@T.prim_func
def two_operations_inside(A: T.Buffer((4, 4, 4), "int32"), C: T.Buffer((4,), "int32")):
    with T.block("S"):
        _vs = T.axis.spatial(1, 0)
        T.reads(C[0:4], A[0:4, 0:4, 0:4])
        T.writes(C[0:4])
        X = T.match_buffer(C[0:4], (4,), "int32")
        Y = T.match_buffer(C[0:4], (4,), "int32")
        for i, j, k in T.grid(4, 4, 4):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SRR", [i, j, k])
                X[vi] = X[vi] + A[vi, vj, vk]
                Y[vi] = T.max(Y[vi], A[vi, vk, vj] * 3)


@pytest.mark.parametrize(("program", "code"), [(two_operations, "reorder/P5"), (two_operations_inside, "reorder/P4")])
def test_sums_and_maxima_of_one_element_keep_their_order(program: tw.ir.PrimFunc, code: str) -> None:
    def step(sch: tw.Schedule) -> None:
        _, j, k = sch.get_loops("B")[-3:]
        sch.reorder(k, j)

    check_refused(program, step, code)


@T.prim_func
def views_further_out(C: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
    with T.block("outer"):
        _vs = T.axis.spatial(1, 0)
        T.reads(C[0:16])
        T.writes(C[0:16], D[0:16])
        X = T.match_buffer(C[0:16], (16,), "int32")
        Y = T.match_buffer(C[0:16], (16,), "int32")
        for q in range(1):
            with T.block("inner"):
                _vs = T.axis.spatial(1, q)
                T.reads(X[0:16])
                T.writes(Y[0:16], D[0:16])
                t = T.alloc_buffer((16,), "int32")
                for i in range(16):
                    with T.block("B"):
                        vi = T.axis.spatial(16, i)
                        t[vi] = X[vi]
                for i in range(16):
                    with T.block("W"):
                        vi = T.axis.spatial(16, i)
                        Y[vi] = 7
                for i in range(16):
                    with T.block("R"):
                        vi = T.axis.spatial(16, i)
                        D[vi] = t[15 - vi]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda sch: sch.compute_inline("B"), "compute_inline/P5"),
        (lambda sch: sch.compute_at("B", sch.get_loops("R")[-1]), "compute_at/P5"),
    ],
)
def test_views_of_a_block_further_out_are_one_memory(step: Step, code: str) -> None:
    """W overwrites what B reads: R must not read it where W has run."""
    check_refused(views_further_out, step, code)


@T.prim_func
def declared_in_a_block(A: T.Buffer((16,)), B: T.Buffer((16,)), C: T.Buffer((16,))):
    for i in range(16):
        with T.block("P"):
            vi = T.axis.spatial(16, i)
            X = T.decl_buffer((16,), data=B.data)
            X[vi] = A[vi]
    for i in range(16):
        with T.block("Q"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[15 - vi]


@T.prim_func
def named_in_a_block(A: T.Buffer((16,)), B: T.Buffer((16,)), C: T.Buffer((16,))):
    for i in range(16):
        with T.block("P"):
            vi = T.axis.spatial(16, i)
            p: T.handle("float32") = T.address_of(B[0])
            X = T.decl_buffer((16,), data=p)
            X[vi] = A[vi]
    for i in range(16):
        with T.block("Q"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[15 - vi]


@T.prim_func
def named_outside(A: T.Buffer((16,)), B: T.Buffer((16,)), C: T.Buffer((16,))):
    p: T.handle("float32") = T.address_of(B[0])
    X = T.decl_buffer((16,), data=p)
    for i in range(16):
        with T.block("P"):
            vi = T.axis.spatial(16, i)
            X[vi] = A[vi]
    for i in range(16):
        with T.block("Q"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[15 - vi]


@pytest.mark.parametrize("program", [declared_in_a_block, named_in_a_block, named_outside])
def test_a_buffer_over_the_pointer_of_another_one(program: tw.ir.PrimFunc) -> None:
    """In one loop, Q would read elements of B before P has written them."""
    check_refused(program, lambda sch: sch.merge(sch.get_loops("P")[0], sch.get_loops("Q")[0]), "merge/P6")


def test_regions_of_a_block_name_the_buffer_behind_a_pointer() -> None:
    for program in (declared_in_a_block, named_in_a_block):
        sch = tw.Schedule(program)
        assert [str(region) for region in sch.get(sch.get_block("P")).writes] == ["B[0:16]"]


def test_iterations_meet_in_a_buffer_over_a_pointer() -> None:
    @T.prim_func
    def meeting(A: T.Buffer((16,)), B: T.Buffer((16,))):
        for i in range(16):
            with T.block("P"):
                vi = T.axis.spatial(16, i)
                X = T.decl_buffer((16,), data=B.data)
                X[0] = A[vi]

    check_refused(meeting, lambda sch: sch.parallel(sch.get_loops("P")[0]), "parallel/P2")


@T.prim_func
def bound_by_a_view(N: T.Buffer((1,), "int32"), C: T.Buffer((64,), "int32")):
    with T.block("S"):
        _vs = T.axis.spatial(1, 0)
        T.reads(N[0:1], C[0:64])
        T.writes(N[0:1], C[0:64])
        V = T.match_buffer(N[0:1], (1,), "int32")
        for i in range(3):
            for j in range(V[0]):
                with T.block("X"):
                    vi = T.axis.opaque(3, i)
                    vj = T.axis.opaque(64, j)
                    T.reads(N[0], C[vi * 8 + vj])
                    T.writes(N[0], C[vi * 8 + vj])
                    N[0] = T.min(N[0] + 1, 7)
                    C[vi * 8 + vj] = C[vi * 8 + vj] + 1


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda sch: sch.fuse(*sch.get_loops("X")[-2:]), "fuse/P5"),
        (lambda sch: sch.split(sch.get_loops("X")[-1], [None, 2]), "split/P8"),
    ],
)
def test_a_bound_that_reads_by_a_view_what_the_loop_changes(step: Step, code: str) -> None:
    check_refused(bound_by_a_view, step, code)


def test_a_bound_that_the_loop_changes_through_a_pointer() -> None:
    """Loops are cut where their conditions change: each part asks for the bound."""

    @T.prim_func
    def shrinking(N: T.Buffer((1,), "int32"), A: T.Buffer((32,), "int32"), C: T.Buffer((32,), "int32")):
        p: T.handle("int32") = T.address_of(N[0])
        X = T.decl_buffer((1,), "int32", data=p)
        for i in range(N[0]):
            if i < 8:
                C[i] = A[i] * 3
            else:
                C[i] = A[i] * 2
            X[0] = 5

    a, expected = np.arange(32, dtype="int32"), np.zeros(32, "int32")
    expected[:20] = np.where(np.arange(20) < 8, a[:20] * 3, a[:20] * 2)
    n, c = np.array([20], "int32"), np.zeros(32, "int32")
    tw.compile(shrinking)(n, a, c)
    np.testing.assert_array_equal(c, expected)
    assert n[0] == 5


@T.prim_func
def read_through_an_address(A: T.Buffer((4, 4), "int32"), D: T.Buffer((16,), "int32")):
    t = T.alloc_buffer((4, 4), "int32")
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            t[vi, vj] = A[vi, vj] + 1
    for i in range(16):
        with T.block("R"):
            vi = T.axis.spatial(16, i)
            p: T.handle("int32") = T.address_of(t[0, 0])
            X = T.decl_buffer((16,), "int32", data=p)
            D[vi] = X[vi]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda sch: sch.transform_layout("B", ("write", 0), lambda i, j: (j, i)), "transform_layout/P2"),
        (lambda sch: sch.compute_inline("B"), "compute_inline/P4"),
    ],
)
def test_a_buffer_of_which_an_address_is_taken_stays_as_it_is(step: Step, code: str) -> None:
    """Elements behind the address follow one another in the order of the layout."""
    check_refused(read_through_an_address, step, code)


def test_a_call_that_takes_an_address_keeps_its_buffer() -> None:
    @T.prim_func
    def calls(A: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
        t = T.alloc_buffer((16,), "int32")
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                t[vi] = A[vi] + 1
        for i in range(16):
            with T.block("R"):
                vi = T.axis.spatial(16, i)
                T.reads(t[0:16])
                T.writes(D[vi])
                D[vi] = T.call_extern("int32", "f", T.address_of(t[vi]))

    check_refused(calls, lambda sch: sch.reverse_compute_inline("R"), "reverse_compute_inline/P2")
    check_refused(calls, lambda sch: sch.compute_inline("B"), "compute_inline/P4")


def test_memory_that_a_declaration_outside_of_blocks_names_is_allocated_around_it() -> None:
    @T.prim_func
    def twice(A: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
        t = T.alloc_buffer((16,), "int32")
        for _ in range(2):
            for i in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    t[vi] = A[vi] + 1
            X = T.decl_buffer((16,), "int32", data=t.data)
            for i in range(16):
                with T.block("R"):
                    vi = T.axis.spatial(16, i)
                    D[vi] = X[15 - vi]

    a, d = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    tw.compile(twice)(a, d)
    np.testing.assert_array_equal(d, a[::-1] + 1)


@I.ir_module
class CallsWithAnAddress:
    @T.prim_func
    def main(B: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
        t = T.alloc_buffer((16,), "int32")
        for i in range(16):
            with T.block("X"):
                vi = T.axis.spatial(16, i)
                t[vi] = B[vi]
        for i in range(1):
            with T.block("P"):
                v0 = T.axis.spatial(1, i)
                CallsWithAnAddress.fill(T.address_of(B[v0]), 16)
        for i in range(16):
            with T.block("R"):
                vi = T.axis.spatial(16, i)
                D[vi] = t[vi]

    @T.prim_func(private=True)
    def fill(b: T.handle("int32", "global"), n: T.int32):
        A = T.decl_buffer((n,), "int32", data=b)
        for i in range(n):
            A[i] = 7


def test_a_call_writes_to_what_it_gets_the_address_of() -> None:
    sch = tw.Schedule(CallsWithAnAddress)
    assert [str(region) for region in sch.get(sch.get_block("P")).writes] == ["B[0:16]"]
    check_refused(CallsWithAnAddress, lambda sch: sch.compute_inline("X"), "compute_inline/P5")
