"""set_scope."""

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def test_the_buffer_moves_with_all_its_accesses():
    @T.prim_func
    def after(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
        B_shared = T.alloc_buffer((4, 6), scope="shared")
        C = T.alloc_buffer((4, 6))
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_shared[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B_shared[vi, vj] * T.float32(2)
        for i, j in T.grid(4, 6):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] - A[vi, vj]

    sch = check(workloads.elementwise_chain(4, 6), lambda sch: sch.set_scope("B", 0, "shared"), after)
    assert 'B_shared = T.alloc_buffer((4, 6), scope="shared")' in sch.mod.script()
    check(workloads.elementwise_chain(4, 6), lambda sch: sch.set_scope("B", "B", "shared"), after)


def test_the_same_scope_changes_nothing():
    before = workloads.elementwise_chain(4, 6)
    check(before, lambda sch: sch.set_scope("B", 0, "global"), before)
    check(before, lambda sch: sch.set_scope("D", 0, "global"), before)  # a parameter


@T.prim_func
def viewed(A: T.Buffer((16,)), B: T.Buffer((16,))):
    X = T.alloc_buffer((16,))
    for i in range(4):
        with T.block("X"):
            v = T.axis.spatial(4, i)
            T.reads(A[v * 4 : v * 4 + 4])
            T.writes(X[v * 4 : v * 4 + 4])
            W = T.match_buffer(X[v * 4 : v * 4 + 4], (4,), offset_factor=1)
            for j in range(4):
                with T.block("W"):
                    w = T.axis.spatial(4, j)
                    W[w] = A[v * 4 + w] * T.float32(2)
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = X[v]


def test_views_follow():
    text = check(viewed, lambda sch: sch.set_scope("X", 0, "shared")).mod.script()
    assert 'X_shared = T.alloc_buffer((16,), scope="shared")' in text
    assert "T.match_buffer(X_shared[v * 4:v * 4 + 4]" in text and text.count('scope="shared"') == 2


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (workloads.elementwise_chain(4, 6), lambda sch: sch.set_scope("B", 1, "shared"), "set_scope/P1"),
        (workloads.elementwise_chain(4, 6), lambda sch: sch.set_scope("B", 0, "nowhere"), "set_scope/P2"),
        (workloads.elementwise_chain(4, 6), lambda sch: sch.set_scope("D", 0, "shared"), "set_scope/P3"),
        (viewed, lambda sch: sch.set_scope("W", 0, "shared"), "set_scope/P3"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


@T.prim_func
def neighbors(A: T.Buffer((32,)), C: T.Buffer((32,))):
    B = T.alloc_buffer((32,))
    for i in range(32):
        with T.block("B"):
            v = T.axis.spatial(32, i)
            B[v] = A[v] * T.float32(2)
    for i in range(32):
        with T.block("C"):
            v = T.axis.spatial(32, i)
            C[v] = B[v // 8 * 8 + 7 - v % 8] + A[v % 4]


@pytest.mark.parametrize(("first", "then"), [("shared", "local"), ("local", "global")])
def test_p4_what_threads_have_together_and_each_for_itself(first, then):
    """Threads of a block read what others of it have made; copies in each block are not one for all."""

    def transform(sch):
        i, j = sch.split(sch.get_loops("C")[0], [None, 8])
        sch.bind(i, "blockIdx.x")
        if first == "shared":
            sch.set_scope("B", 0, first)
            sch.compute_at("B", i)
            sch.bind(sch.get_loops("B")[1], "threadIdx.x")
        copy = sch.cache_read("C", 1, first, ["C"]) if first == "local" else "B"
        if first == "local":
            sch.compute_at(copy, i)
            sch.vectorize(sch.get_loops(copy)[-1])
        sch.bind(j, "threadIdx.x")
        sch.set_scope(copy, 0, then)

    check_refused(neighbors, transform, "set_scope/P4")


@T.prim_func
def sums_alone(A: T.Buffer((4, 3))):
    L = T.alloc_buffer((4,))
    for i, k in T.grid(4, 3):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                L[vi] = T.float32(0)
            L[vi] += A[vi, vk]


@pytest.mark.parametrize("scope", ["local", "shared", "global"])
@pytest.mark.parametrize("axis", ["threadIdx.x", "vthread.x", "blockIdx.x"])
@pytest.mark.parametrize("order", list(itertools.permutations(["loops", "bind", "set_scope"])))
def test_loops_around_threads_carry_sums(order, axis, scope):
    """In whatever order the steps come, and though nothing outside of the threads reads what they add up."""

    sch = tw.Schedule(sums_alone)
    i, k = sch.get_loops("S")
    steps = {
        "loops": lambda: sch.reorder(k, i),
        "bind": lambda: sch.bind(i, axis),
        "set_scope": lambda: sch.set_scope("S", 0, scope),
    }
    for name in order:
        steps[name]()
    tw.ir.interpret(sch.mod, "main", np.ones((4, 3), "float32"))


@T.prim_func
def sums_of_threads(A: T.Buffer((2, 3)), B: T.Buffer((2,))):
    L = T.alloc_buffer((2,))
    for i, k in T.grid(2, 3):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                L[vi] = T.float32(0)
            L[vi] += A[vi, vk]
    for i in range(2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            B[vi] = L[vi]


@pytest.mark.parametrize("scope", ["local", "shared", "global"])
@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("order", [False, True])
def test_what_threads_add_up_together_is_one_number(order, read, scope):
    """Wherever the loop of the threads that share a sum stands."""
    sch = tw.Schedule(sums_of_threads if read else sums_alone)
    i, k = sch.get_loops("S")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    if order:
        sch.reorder(k, i)
    sch.set_scope("S", 0, scope)
    a, b = np.ones((2 if read else 4, 3), "float32"), np.zeros(2, "float32")
    tw.ir.interpret(sch.mod, "main", *((a, b) if read else (a,)))
    assert not read or b.tolist() == [3, 3]
