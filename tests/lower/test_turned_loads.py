"""Copies whose lanes lie in rows of their own: squares are turned round in registers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.script import from_source

TARGETS = ["native", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"]
COMMON: Any = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": False}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint16", "int32", "int64"]

SOURCE = """
@T.prim_func
def f(A: T.Buffer(({rows}, {columns}), "{dtype}"), B: T.Buffer(({columns}, {rows}), "{result}"){more}):
    T.func_attr({{"global_symbol": "f"}})
    for i_0 in range({blocks}):
        for k in range({begin}, {end}):
            for i_1 in T.vectorized({lanes}):
                B[k, i_0 * {lanes} + i_1] = {value}
"""


@st.composite
def copies(draw: Any) -> tuple[str, int, int, int, str, str]:
    """A program that turns blocks of a matrix: source, rows, columns, where it begins, types."""
    lanes, blocks = draw(st.sampled_from([2, 4, 8, 16, 32])), draw(st.integers(1, 3))
    begin, length = draw(st.integers(0, 5)), draw(st.integers(1, 70))
    dtype = draw(st.sampled_from(DTYPES))
    load = f"A[i_0 * {lanes} + i_1, k]"
    value, result = draw(
        st.sampled_from(
            [
                (load, dtype),
                (f"{load} + {load}", dtype),
                (f"T.Cast('float32', {load}) * T.float32(2)", "float32"),
                (f"T.if_then_else(k > 3, {load}, T.Cast('{dtype}', k))", dtype),
                (f"{load} + A[i_0, k]", dtype),
                (f"A[{lanes * blocks - 1} - (i_0 * {lanes} + i_1), k]", dtype),
            ]
        )
    )
    is_open, rows, columns = draw(st.booleans()), lanes * blocks, begin + length
    more, end = (", n: T.int32", f"{begin} + n") if is_open else ("", str(columns))
    source = SOURCE.format(
        rows=rows, columns=columns, dtype=dtype, result=result, more=more, blocks=blocks, begin=begin, end=end,
        lanes=lanes, value=value,
    )  # fmt: skip
    return source, rows, columns, begin, dtype, result


def numpy_type(dtype: str) -> Any:
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype


@settings(max_examples=100, **COMMON)
@given(copies(), st.integers(0, 2**32 - 1), st.sampled_from(TARGETS))
def test_squares_are_turned_as_the_loops_say(
    program: tuple[str, int, int, int, str, str], seed: int, target: str
) -> None:
    source, rows, columns, begin, dtype, result = program
    func, rng = from_source(source), np.random.default_rng(seed)
    a = rng.integers(0, 50, (rows, columns)).astype(numpy_type(dtype))
    scalars = [int(rng.integers(0, columns - begin + 1))] if "n: T.int32" in source else []
    expected, got = (np.zeros((columns, rows), numpy_type(result)) for _ in range(2))
    tw.compile(func, "interpreter")(a, expected, *scalars)
    tw.compile(func, target)(a, got, *scalars)
    np.testing.assert_array_equal(got.astype("float64"), expected.astype("float64"), err_msg=source)


def turned(value: str = "A[i_0 * 8 + i_1, k]", **options: Any) -> str:
    plain: dict[str, Any] = {
        "rows": 16,
        "columns": 40,
        "dtype": "float32",
        "result": "float32",
        "more": "",
        "blocks": 2,
    }
    plain |= {"begin": 0, "end": 40, "lanes": 8, "value": value}
    func = from_source(SOURCE.format(**(plain | options)))
    return str(tw.lower(func, target="llvm -mcpu=x86-64-v3", after="turn_loads").script())


def test_rows_are_loaded_whole() -> None:
    text = turned()
    assert "T.Shuffle" in text and ":40]" not in text
    assert "T.Shuffle" in turned(end=39) and ":40]" in turned(end=39)  # what no square holds


@pytest.mark.parametrize(
    "value, options",
    [
        ("A[i_0 * 8 + i_1, k] + B[k, i_0 * 8 + i_1]", {}),  # what it stores to is loaded
        ("A[i_0 * 8 + i_1, k] + A[i_0 * 8 + i_1, 39 - k]", {}),  # only one of them steps along its rows: one is turned
        ("A[i_0 * 8 + i_1, k // 2]", {}),
        ("A[i_0 * 8 + i_1, k]", {"end": 7}),
    ],
)
def test_what_stays(value: str, options: dict[str, Any]) -> None:
    text = turned(value, **options)
    assert ("T.Shuffle" in text) == ("39 - k" in value)
