"""The pass lower_match_buffers: views are replaced by the buffers that they view."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lower.passes import TARGET, agrees, check, check_unchanged, script_after

import tilewright as tw
from tilewright.script import tir as T


def test_views_are_their_source() -> None:
    @T.prim_func
    def before(A: T.Buffer((8, 8), "float32")):
        for i in range(2):
            with T.block("B"):
                v = T.axis.spatial(2, i)
                s = T.int32()
                W = T.match_buffer(A[v * 4 : v * 4 + 4, 0:4], (4, 4), strides=[s, 1])
                for a, b in T.grid(4, 4):
                    W[a, b] = T.Cast("float32", s)

    @T.prim_func
    def expected(A: T.Buffer((8, 8), "float32")):
        for i in range(2):
            for a, b in T.grid(4, 4):
                A[i * 4 + a, b] = T.Cast("float32", 8)

    check(before, "lower_blocks", expected)


def test_views_of_views_add_their_offsets() -> None:
    @T.prim_func
    def nested(A: T.Buffer((8, 8), "int32")):
        for i in range(2):
            with T.block("outer"):
                v = T.axis.spatial(2, i)
                V = T.match_buffer(A[v * 4 : v * 4 + 4, 2:6], (4, 4), "int32", strides=[8, 1], offset_factor=1)
                for j in range(2):
                    with T.block("inner"):
                        w = T.axis.spatial(2, j)
                        W = T.match_buffer(V[w * 2 : w * 2 + 2, 1:2], (2, 1), "int32", offset_factor=1)
                        for a in range(2):
                            W[a, 0] = W[a, 0] + 10 * v + w

    text = script_after(nested, "lower_match_buffers")
    assert "match_buffer" not in text
    a = np.arange(64, dtype="int32").reshape(8, 8)
    expected = a.copy()
    for v in range(2):
        for w in range(2):
            expected[v * 4 + w * 2 : v * 4 + w * 2 + 2, 3] += 10 * v + w
    agrees(nested, "lower_match_buffers", [a], [expected])


def test_a_view_of_a_transposed_stride_is_refused() -> None:
    @T.prim_func
    def transposed(A: T.Buffer((8, 8), "int32")):
        with T.block("root"):
            W = T.match_buffer(A[0:4, 0:4], (4, 4), "int32", strides=[1, 8], offset_factor=1)
            W[0, 0] = 1

    with pytest.raises(tw.Error, match="view 'W' states a stride that the region it matches does not have"):
        tw.lower(transposed, after="lower_match_buffers", target=TARGET)


def test_blocks_without_views_stay() -> None:
    @T.prim_func
    def plain(A: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("A"):
                v = T.axis.spatial(8, i)
                A[v] = v

    check_unchanged(plain, "lower_match_buffers")
