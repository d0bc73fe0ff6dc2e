"""Strides that a program declares: several arguments share a symbol, or they are expressions of sizes. A stride that
leads to no second element may be any, as NumPy has it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T


def shared() -> Any:
    """Rows of A and B are equally far apart."""

    @T.prim_func
    def rows(a: T.handle, b: T.handle, c: T.handle):
        n, k, m, s = T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), "float32", strides=(s, 1))
        B = T.match_buffer(b, (k, m), "float32", strides=(s, 1))
        C = T.match_buffer(c, (n, k, m), "float32")
        for h, i, j in T.grid(n, k, m):
            with T.block("C"):
                vh, vi, vj = T.axis.remap("SSS", [h, i, j])
                C[vh, vi, vj] = A[vh, vj] + B[vi, vj]

    return rows


def padded() -> Any:
    """Each row of A has two elements more than are used."""

    @T.prim_func
    def pad(a: T.handle, c: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), "float32", strides=(m + 2, 1))
        C = T.match_buffer(c, (n, m), "float32")
        for i, j in T.grid(n, m):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)

    return pad


def strided(shape: tuple[int, int], step: int, generator: np.random.Generator) -> Any:
    """An array of random values with rows that are so far apart; of a single row, anything."""
    memory = generator.random(64, dtype=np.float32)
    step = step if shape[0] > 1 and 0 not in shape else int(generator.choice([0, 1, step, 17, -3]))
    return np.lib.stride_tricks.as_strided(memory, shape, (4 * step, 4))


@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_arguments_that_share_a_stride(target: str) -> None:
    kernel = tw.compile(shared(), target=target)
    generator = np.random.default_rng(3)
    for n, k, m in ((n, k, m) for n in range(4) for k in range(4) for m in (0, 1, 3)):
        a, b = strided((n, m), 5, generator), strided((k, m), 5, generator)
        c = np.zeros((n, k, m), "float32")
        kernel(a, b, c)
        np.testing.assert_array_equal(c, a[:, None] + b[None])
        if min(n, k) > 1 and m > 0:
            with pytest.raises(tw.ArgumentError, match=r"argument B: .* got \(6, 1\)") as error:
                kernel(a, strided((k, m), 6, generator), c)
            assert "s, from stride 0 of A, is 5" in error.value.hint


@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_a_stride_that_is_an_expression(target: str) -> None:
    kernel = tw.compile(padded(), target=target)
    generator = np.random.default_rng(4)
    for n, m in ((n, m) for n in range(4) for m in range(4)):
        a, c = strided((n, m), m + 2, generator), np.zeros((n, m), "float32")
        kernel(a, c)
        np.testing.assert_array_equal(c, 2 * a)
        if n > 1 and m > 0:
            said = f"expected stride 0 to be m + 2 = {m + 2} (in elements), got 7"
            if target == "interpreter":
                said = f"'A' has stride {m + 2} in dimension 0, and the argument has 7"
            with pytest.raises(tw.ArgumentError, match=re.escape(said)):
                kernel(strided((n, m), 7, generator), c)
