"""Loads of which a mask says which lanes take part."""

import numpy as np
import pytest

import tilewright as tw

ROWS = """
@T.prim_func
def rows(X: T.Buffer((6, {inner}), "{dtype}"), P: T.Buffer((6, {outer}), "{dtype}")):
    for i in range(6):
        for j_0 in T.unroll({count}):
            for j_1 in T.vectorized({lanes}):
                with T.block("P"):
                    T.where(j_0 * {lanes} + j_1 < {outer})
                    vi = T.axis.spatial(6, i)
                    vj = T.axis.spatial({outer}, j_0 * {lanes} + j_1)
                    P[vi, vj] = T.if_then_else(vi >= 1 and vj >= 1 and vj <= {inner}, X[vi - 1, vj - 1], T.{dtype}(0))
"""


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("outer", [19, 20, 21, 22, 25, 37, 41])
@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_padding_whose_last_vector_is_mostly_outside(dtype, outer, lanes):
    """A condition of the row, and lanes of which whole registers are never loaded."""
    text = ROWS.format(inner=outer - 2, outer=outer, lanes=lanes, count=-(-outer // lanes), dtype=dtype)
    x = np.arange(1, 6 * (outer - 2) + 1).reshape(6, outer - 2).astype(dtype)
    expected = np.zeros((6, outer), dtype)
    expected[1:, 1:-1] = x[:5]
    found = np.full((6, outer), 7, dtype)
    tw.compile(tw.script.from_source(text), schedule="as written")(x, found)
    np.testing.assert_array_equal(found, expected)
