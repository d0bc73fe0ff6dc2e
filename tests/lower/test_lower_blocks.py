"""The pass lower_blocks: predicates of blocks become conditions, their buffers allocations."""

from __future__ import annotations

import numpy as np
from tests.lower.passes import agrees, check, script_after

from tilewright.script import tir as T


@T.prim_func
def tail(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            v = T.axis.spatial(14, i * 4 + j)
            T.where(i * 4 + j < 14)
            B[v] = A[v] * 2


def test_predicates_become_conditions() -> None:
    @T.prim_func
    def expected(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
        for i, j in T.grid(4, 4):
            if i * 4 + j < 14:
                B[i * 4 + j] = A[i * 4 + j] * 2

    check(tail, "lower_blocks", expected)
    a = np.arange(14, dtype="int32")
    agrees(tail, "lower_blocks", [a, np.zeros_like(a)], [a, a * 2])


def test_buffers_of_blocks_become_allocations() -> None:
    @T.prim_func
    def reversed_rows(A: T.Buffer((4, 6), "int32")):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                t = T.alloc_buffer((6,), "int32")
                for j in range(6):
                    t[j] = A[vi, 5 - j]
                for j in range(6):
                    A[vi, j] = t[j]

    text = script_after(reversed_rows, "lower_blocks")
    assert "T.block" not in text and "alloc_buffer" not in text
    assert text.index("for i in range(4)") < text.index('t = T.decl_buffer((6,), "int32")')
    a = np.arange(24, dtype="int32").reshape(4, 6)
    agrees(reversed_rows, "lower_blocks", [a], [a[:, ::-1]])


def test_rows_that_are_padded_take_the_memory_of_their_strides() -> None:
    @T.prim_func
    def padded(A: T.Buffer((4, 6), "int32"), B: T.Buffer((6, 4), "int32")):
        with T.block("root"):
            t = T.alloc_buffer((4, 6), "int32", strides=[9, 1])
            for i, j in T.grid(4, 6):
                t[i, j] = A[i, j]
            for i, j in T.grid(6, 4):
                B[i, j] = t[j, i]

    assert "T.allocate([36]" in script_after(padded, "lower_blocks")
    a = np.arange(24, dtype="int32").reshape(4, 6)
    agrees(padded, "lower_blocks", [a, np.zeros((6, 4), "int32")], [a, a.T])


def test_a_realized_region_is_memory_unless_the_buffer_has_some() -> None:
    @T.prim_func
    def realized(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        t = T.Buffer((8,), "int32")
        with T.realize(t[0:8], "global"):
            for i in range(8):
                t[i] = A[i] + 1
            with T.realize(B[0:8], "global"):
                for i in range(8):
                    B[i] = t[7 - i]

    text = script_after(realized, "lower_blocks")
    assert "T.realize" not in text and text.count("T.decl_buffer(") == 1
    a = np.arange(8, dtype="int32")
    agrees(realized, "lower_blocks", [a, np.zeros_like(a)], [a, a[::-1] + 1])


def test_what_has_no_blocks_stays() -> None:
    @T.prim_func(private=True)
    def plain(A: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            if i < n:
                A[i] = i

    check(plain, "lower_blocks", plain)
