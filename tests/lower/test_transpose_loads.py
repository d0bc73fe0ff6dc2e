"""Copies whose lanes lie in rows of their own: squares are turned round in registers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lower.passes import agrees, check_unchanged

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
    return str(tw.lower(func, target="llvm -mcpu=x86-64-v3", after="transpose_loads").script())


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


GROUPS = """
@T.prim_func
def f(A: T.Buffer(({rows}, {columns}), "{dtype}"), B: T.Buffer(({steps}, {rows}, {group}), "{dtype}")):
    T.func_attr({{"global_symbol": "f"}})
    for i_0 in range({blocks}):
        for k in range({begin}, {steps}):
            for i_1 in T.vectorized({lanes}):
                for e in T.unroll({group}):
                    B[k, i_0 * {lanes} + i_1, e] = {value}
"""


def groups(**options: Any) -> str:
    options["rows"], options["columns"] = options["blocks"] * options["lanes"], options["steps"] * options["group"] + 3
    return GROUPS.format(**options)


@settings(max_examples=60, **COMMON)
@given(
    st.sampled_from([("int8", 4), ("uint8", 4), ("bfloat16", 2), ("int16", 2), ("int8", 2), ("int16", 4), ("int8", 8)]),
    st.sampled_from([4, 8, 16, 32]),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(4, 40),
    st.sampled_from(
        [
            "A[{row}, k * {group} + e]",
            "A[{last} - ({row}), k * {group} + e]",
            "A[{row}, k * {group} + 3 + e]",
            "A[{row}, k * {group} + {group} - 1 - e]",
            "A[{row}, ({steps} - 1 - k) * {group} + e]",
            "A[{row}, k // 2 * {group} + e]",
            "A[{row}, k * {group} + e] + A[{row}, k * {group} + e]",
        ]
    ),
    st.sampled_from(TARGETS),
)
def test_words_of_a_few_numbers_are_turned_as_the_loops_say(
    kind: tuple[str, int], lanes: int, blocks: int, begin: int, steps: int, value: str, target: str
) -> None:
    (dtype, group), begin = kind, min(begin, steps - 1)
    names = {"row": f"i_0 * {lanes} + i_1", "last": blocks * lanes - 1, "group": group, "steps": steps}
    source = groups(
        dtype=dtype, group=group, lanes=lanes, blocks=blocks, begin=begin, steps=steps, value=value.format(**names)
    )
    func = from_source(source)
    a = np.random.default_rng(steps).integers(0, 50, (blocks * lanes, steps * group + 3)).astype(numpy_type(dtype))
    expected, got = (np.zeros((steps, blocks * lanes, group), numpy_type(dtype)) for _ in range(2))
    tw.compile(func, "interpreter")(a, expected)
    tw.compile(func, target, schedule="as written")(a, got)
    np.testing.assert_array_equal(got.astype("float64"), expected.astype("float64"), err_msg=source)


@pytest.mark.parametrize("dtype, group", [("bfloat16", 2), ("int8", 4)])
def test_rows_of_words_are_loaded_whole(dtype: str, group: int) -> None:
    value = f"A[i_0 * 16 + i_1, k * {group} + e]"
    source = groups(dtype=dtype, group=group, lanes=16, blocks=1, begin=0, steps=32, value=value)
    text = tw.lower(from_source(source), target="llvm -mcpu=x86-64-v4", after="transpose_loads").script()
    assert "row_15: T.int32x16" in text


def test_the_pass_alone_moves_every_element() -> None:
    func = from_source(
        SOURCE.format(
            rows=8, columns=19, dtype="int32", result="int32", more="", blocks=1, begin=0, end=19, lanes=8,
            value="A[i_0 * 8 + i_1, k]",
        )
    )  # fmt: skip
    a = np.arange(152, dtype="int32").reshape(8, 19)
    agrees(func, "transpose_loads", [a, np.zeros((19, 8), "int32")], [a, a.T])


def test_rows_that_are_stored_as_they_are_loaded_stay() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((40, 8), "float32"), B: T.Buffer((40, 8), "float32")):
    for i in range(40):
        for j in T.vectorized(8):
            B[i, j] = A[i, j]
""")
    check_unchanged(func, "transpose_loads")
