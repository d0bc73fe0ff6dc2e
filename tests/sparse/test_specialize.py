"""Implicit structures: banded, strided, butterfly. No index is loaded, and the product is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.sparse_programs import SPMM, function

import tilewright as tw
from tilewright import ir
from tilewright.sparse import specialize_buffer

ROWS, WIDTH = 8, 3

ELL = """
def f(a: T.handle, x: T.handle, y: T.handle, q: T.handle):
    I = T.sp.dense_fixed(8)
    J = T.sp.compressed_fixed(I, (16, 3), q)
    J_all = T.sp.dense_fixed(16)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (J_all,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "rows") as [i, j]:
        with T.init():
            Y[i] = T.float32(0)
        Y[i] = Y[i] + A[i, j] * X[j]
"""


def lowered(text: str) -> ir.PrimFunc:
    sch = tw.Schedule(function(text))
    sch.lower_sparse_iter()
    made: ir.PrimFunc = sch.mod["main"]
    return made


IMPLICIT: dict[str, Callable[[Any, Any], Any]] = {
    "banded": lambda i, j: i + j,
    "strided": lambda i, j: j * 5,
    "butterfly": lambda i, j: j * 4 + i // 2,
}


@pytest.mark.parametrize("name", IMPLICIT)
@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_formulas_stand_for_indices(name: str, target: str) -> None:
    formula = IMPLICIT[name]
    func = specialize_buffer(lowered(ELL), "q_data", lambda i, j: (formula(i, j),), inner=WIDTH)
    assert "q_data" not in func.script() and [param.name for param in func.params] == ["a", "x", "y"]
    random = np.random.default_rng(0)
    a = random.integers(-4, 5, (ROWS, WIDTH)).astype("float32")
    x = random.integers(-4, 5, 16).astype("float32")
    y = np.full(ROWS, np.nan, "float32")
    tw.compile(func, target)(a, x, y)
    want = [sum(a[i, j] * x[formula(i, j)] for j in range(WIDTH)) for i in range(ROWS)]
    np.testing.assert_array_equal(y, want)


def test_positions_of_a_variable_axis() -> None:
    """Rows of ten: offsets and indices are formulas of positions, and both go."""
    func = specialize_buffer(lowered(SPMM), "p_data", lambda p: (p * 10,))
    func = specialize_buffer(func, "q_data", lambda p: (p % 10,))
    m, n = 4, 10
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, (m, n)).astype("float64"), random.integers(-4, 5, (n, 16)).astype("float64")
    c = np.full((m, 16), np.nan)
    tw.compile(func)(a.reshape(-1), b, c, m, n, m * n)
    np.testing.assert_array_equal(c, a @ b)


def refused(text: str, func: ir.PrimFunc, *args: Any, **options: Any) -> None:
    with pytest.raises(tw.ArgumentError, match=text) as caught:
        specialize_buffer(func, *args, **options)
    assert caught.value.code == "sparse/specialize" and caught.value.hint


def test_refusals() -> None:
    func = lowered(SPMM)
    refused("has axes", function(SPMM), "q_data", lambda p: (p,))
    refused("no buffer 'Q'", func, "Q", lambda p: (p,))
    refused("writes 'C'", func, "C", lambda i, j: (i + j,))
    refused("takes 2 indices and gives 1 values", func, "q_data", tw.ir.IndexMap(*two_indices()))
    refused("gives 2 values", func, "q_data", lambda p: (p, p))
    refused("'B' has 2 dimensions", func, "B", lambda i, j: (i,), inner=4)


def two_indices() -> tuple[Any, Any]:
    i, j = ir.Var("i", "int32"), ir.Var("j", "int32")
    return [i, j], [i + j]
