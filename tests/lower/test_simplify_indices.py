"""The pass simplify_indices: indices, extents and conditions that ranges of loops decide."""

from __future__ import annotations

import numpy as np
from tests.lower.passes import TARGET, agrees, check, check_unchanged, script_after

import tilewright as tw
from tilewright.script import tir as T


def test_large_buffers_are_counted_with_64_bits() -> None:
    @T.prim_func
    def before(A: T.Buffer((70000, 70000), "int8")):
        A[69999, 69999] = T.int8(1)

    assert "4899999999" in tw.lower(before, after="simplify_indices").script()


def test_indices_are_simplified() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            if i < 64:
                B[(i * 4 + 2) // 4] = A[i % 64]

    @T.prim_func
    def expected(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        A_1 = T.decl_buffer((64,), "float32", data=A.data)
        B_1 = T.decl_buffer((64,), "float32", data=B.data)
        for i in range(64):
            B_1[i] = A_1[i]

    check(before, "simplify_indices", expected)


def test_conditions_of_values_wrap_around() -> None:
    """Indices do not overflow; what a value depends on may."""

    @T.prim_func
    def wrapped(x: T.int32, n: T.int32, a: T.handle, B: T.Buffer((6,), "int32")):
        A = T.match_buffer(a, (n,), "int32")
        B[0] = T.Select(T.int32(4) > T.int32(0) - T.int32(-2147483648), 1, 2)
        B[1] = T.if_then_else(x + 1 > x, 1, 2)
        B[2] = T.Select(x * 2 // 2 == x, 1, 0)
        for i in range(3):
            B[3 + i] = T.Select(i * 1500000000 >= 0, 1, 2)
        for i in range(n):
            A[i] = T.Select(i + 1 <= n, 1, 2)

    for x in (5, 2147483647):
        found = []
        for target in ("interpreter", "native"):
            a, b = np.zeros(4, "int32"), np.zeros(6, "int32")
            tw.compile(wrapped, target=target)(x, 4, a, b)
            found.append([*a, *b])
        assert found[0] == found[1]
        assert found[0][4:] == [1, 1 if x == 5 else 2, int(x == 5), 1, 1, 2]
    lowered = tw.lower(wrapped, after="simplify_indices", target=TARGET)
    assert "<= n" not in str(lowered)  # sizes are small enough for what is made of them


def test_what_ranges_decide_computes_the_same() -> None:
    @T.prim_func
    def decided(A: T.Buffer((32,), "int32"), B: T.Buffer((64,), "int32")):
        for i, j in T.grid(16, 4):
            B[(i * 8 + j * 2 + 1) // 2] = A[T.min(i, 40) * 2 % 32 + j // 4] + T.max(j, -1)

    @T.prim_func
    def expected(A: T.Buffer((32,), "int32"), B: T.Buffer((64,), "int32")):
        A_1 = T.decl_buffer((32,), "int32", data=A.data)
        B_1 = T.decl_buffer((64,), "int32", data=B.data)
        for i, j in T.grid(16, 4):
            B_1[i * 4 + j] = A_1[i * 2] + T.max(j, -1)

    check(decided, "simplify_indices", expected)
    a = np.arange(32, dtype="int32")
    wanted = np.repeat(a[::2], 4) + np.tile(np.arange(4, dtype="int32"), 16)
    agrees(decided, "simplify_indices", [a, np.zeros(64, "int32")], [a, wanted])


def test_loops_of_one_iteration_and_bindings_of_constants_are_gone() -> None:
    @T.prim_func
    def once(A: T.Buffer((8,), "int32")):
        for i in range(5, 6):
            with T.LetStmt(3) as k:
                A[i - k] = i + k

    text = script_after(once, "simplify_indices")
    assert "for " not in text and "A_1[2]" in text
    agrees(once, "simplify_indices", [np.zeros(8, "int32")], [np.array([0, 0, 8, 0, 0, 0, 0, 0], "int32")])


def test_a_condition_leaves_a_loop_only_where_it_is_the_same_in_each_iteration() -> None:
    @T.prim_func
    def conditions(A: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            if n > 2:
                A[i] = A[i] + 1
        for i in range(8):
            if n > i:
                A[i] = A[i] + 1

    text = script_after(conditions, "simplify_indices")
    assert text.index("if 2 < n") < text.index("for i") < text.rindex("for i") < text.index("if i < n")
    for n in (0, 3):
        wanted = np.full(8, int(n > 2), "int32") + (np.arange(8) < n)
        agrees(conditions, "simplify_indices", [np.zeros(8, "int32"), n], [wanted])


def test_indices_that_are_simple_stay() -> None:
    @T.prim_func
    def simple(A: T.Buffer((64,), "int32"), n: T.int32):
        for i, j in T.grid(8, 8):
            if i * 8 + j < n:
                A[i * 8 + j] = i

    check_unchanged(simple, "simplify_indices")
