"""The pass lower_prefetches: one hint for each cache line of a region."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lower.passes import agrees, check, check_unchanged, script_after

import tilewright as tw
from tilewright.script import tir as T


def test_a_prefetch_is_one_hint_for_each_cache_line() -> None:
    @T.prim_func(private=True)
    def before(A: T.Buffer((8, 40), "float32"), x: T.Buffer((), "float64"), n: T.int32):
        T.prefetch(A, [T.Range(0, 4), T.Range(2, n)])
        T.prefetch(x, [])

    @T.prim_func(private=True)
    def after(A: T.Buffer((8, 40), "float32"), x: T.Buffer((), "float64"), n: T.int32):
        for i, j in T.grid(4, (n - 2 + 15) // 16 + 1):
            T.call_intrin("handle", "tir.prefetch", T.address_of(A[i, 2 + T.min(j * 16, n - 2 - 1)]), 0, 3, 1)
        T.call_intrin("handle", "tir.prefetch", T.address_of(x[()]), 0, 3, 1)

    check(before, "lower_prefetches", after)


def test_what_is_allocated_begins_with_a_line() -> None:
    @T.prim_func
    def copied(A: T.Buffer((8, 40), "float32"), B: T.Buffer((8, 40), "float32")):
        t = T.alloc_buffer((8, 48))
        for i, j in T.grid(8, 40):
            with T.block("t"):
                vi, vj = T.axis.remap("SS", [i, j])
                t[vi, vj] = A[vi, vj]
        for i in range(8):
            T.prefetch(t, [T.Range(i, i + 1), T.Range(0, 40)])
            T.prefetch(A, [T.Range(i, i + 1), T.Range(0, 40)])
            for j in range(40):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = t[vi, vj]

    text = tw.lower(copied, "lower_prefetches").script()
    assert "T.grid(1, 3)" in text and "T.grid(1, 4)" in text


@T.prim_func
def copied(A: T.Buffer((4, 40), "float32"), B: T.Buffer((4, 40), "float32")):
    for i in range(4):
        T.prefetch(A, [T.Range(T.min(i + 1, 3), T.min(i + 1, 3) + 1), T.Range(0, 40)])
        for j in range(40):
            B[i, j] = A[i, j]


def test_hints_change_no_result() -> None:
    assert "T.prefetch(" not in script_after(copied, "lower_prefetches")
    a = np.arange(160, dtype="float32").reshape(4, 40)
    agrees(copied, "lower_prefetches", [a, np.zeros_like(a)], [a, a])


@pytest.mark.parametrize(("dtype", "hints"), [("int8", 2), ("float32", 5), ("float64", 9)])
def test_wider_elements_fill_more_lines(dtype: str, hints: int) -> None:
    """64 elements from anywhere in a line of 64 bytes: as many lines as they fill, and one more."""

    @T.prim_func
    def before(A: T.Buffer((64,), dtype)):
        T.prefetch(A, [T.Range(0, 64)])

    assert f"in range({hints})" in script_after(before, "lower_prefetches")


def test_registers_are_not_prefetched() -> None:
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        with T.block("root"):
            X = T.alloc_buffer((8,), scope="local")
            for i in range(8):
                X[i] = A[i]
            T.prefetch(X, [T.Range(0, 8)])

    assert "prefetch" not in script_after(before, "lower_prefetches")


def test_programs_without_hints_stay() -> None:
    @T.prim_func
    def plain(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)

    check_unchanged(plain, "lower_prefetches")
