"""Axes become what they are bound to; those bound to data are read once, where the block runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_equivalent


def test_axes_bound_to_data_are_read_once() -> None:
    @T.prim_func
    def count(I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(4):
            with T.block("outer"):
                v = T.axis.spatial(8, I[I[i] % 8] % 8)
                I[v] = I[v] + 1
                for j in range(2):
                    with T.block("B"):
                        vj = T.axis.spatial(2, j)
                        B[v] = B[v] + I[v] * vj

    assert "v: T.int32 = I_1[I_1[i] % 8] % 8" in tw.lower(count, after="inline_block_axes").script()
    check_equivalent(count, tw.lower(count))


@pytest.mark.parametrize("kind", [T.serial, T.vectorized, T.parallel, T.unroll])
def test_loops_of_any_kind_around_axes_bound_to_data(kind: Any) -> None:
    @T.prim_func
    def gather(I: T.Buffer((8,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in kind(8):
            with T.block("B"):
                v = T.axis.spatial(8, I[i] % 8)
                T.where(i < 7)
                B[i] = A[v]

    check_equivalent(gather, tw.lower(gather))
    args = [np.array([7, 0, 3, 3, 1, 2, 9, 4], np.int32), np.arange(8, dtype=np.float32), np.zeros(8, np.float32)]
    tw.compile(gather, schedule="as written")(*args)
    np.testing.assert_array_equal(args[2], [7, 0, 3, 3, 1, 2, 1, 0])


@pytest.mark.parametrize("condition", [True, False])
def test_bindings_are_read_where_the_block_runs(condition: bool) -> None:
    """The table ends where the condition does: behind it there is nothing to read."""

    @T.prim_func
    def gather(I: T.Buffer((5,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i, j in T.grid(2, 3):
            with T.block("B"):
                v = T.axis.spatial(5, i * 3 + j)
                w = T.axis.spatial(8, I[i * 3 + j] % 8)
                T.where(i * 3 + j < 5)
                B[v] = A[w]

    @T.prim_func
    def too_far(I: T.Buffer((5,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i, j in T.grid(2, 3):
            with T.block("B"):
                v = T.axis.spatial(6, i * 3 + j)
                w = T.axis.spatial(8, I[i * 3 + j] % 8)
                B[v] = A[w]

    if not condition:
        with pytest.raises(tw.ScriptError) as info:
            tw.compile(too_far, schedule="as written")
        assert info.value.code == "verify/bounds"
        return
    lowered = tw.lower(gather, after="inline_block_axes").script()
    assert lowered.index("if i * 3 + j < 5:") < lowered.index("w: T.int32 = ")
    check_equivalent(gather, tw.lower(gather))
    sch = tw.Schedule(gather)
    sch.split(sch.get_loops("B")[1], [None, 2])  # further conditions
    check_equivalent(gather, sch.mod)
    check_equivalent(gather, tw.lower(sch.mod))
