"""Vectors whose lanes are elements that data select: contiguous indices are loaded one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

SIZE, END = 64, 300


def gathering(index: str, dtype: str, integer: str, lanes: int) -> tw.ir.PrimFunc:
    return from_source(f"""@T.prim_func
def main(J: T.Buffer(({2 * SIZE},), "{integer}"), K: T.Buffer(({SIZE},), "{integer}"), X: T.Buffer(({END},), "{dtype}"),
         Y: T.Buffer(({SIZE},), "{dtype}")):
    T.assume_buffer_domain(J, [0, 100])
    T.assume_buffer_domain(K, [0, 100])
    for i_0 in range({SIZE // lanes}):
        for i_1 in T.vectorized({lanes}):
            with T.block("B"):
                v = T.axis.spatial({SIZE}, i_0 * {lanes} + i_1)
                Y[v] = Y[v] + X[{index}]
""")


@pytest.mark.parametrize(("dtype", "lanes"), [("float32", 16), ("float64", 8), ("int8", 32), ("float32", 4)])
@pytest.mark.parametrize("integer", ["int32", "int64", "uint8"])
@pytest.mark.parametrize(
    ("index", "is_loaded"),
    [
        ("J[v]", True),
        ("J[v + 3]", True),
        ("J[v] * T.Cast(I, 2) + T.Cast(I, 1)", True),
        ('T.Cast("int64", J[v]) - T.Cast("int64", K[v]) + T.int64(100)', True),
        ('T.Cast("int32", J[v]) + v', True),
        ('T.Cast("int32", J[v]) + K[3]', True),
        ("J[v * 2]", False),
        ("J[v] % T.Cast(I, 7)", False),
        ("J[K[v]]", False),
    ],
)
def test_elements_that_data_select(dtype: str, lanes: int, integer: str, index: str, is_loaded: bool) -> None:
    index = index.replace("T.Cast(I,", f'T.Cast("{integer}",')
    if "K[3]" in index:
        index = index.replace("K[3]", 'T.Cast("int32", K[3])')
    program = gathering(index, dtype, integer, lanes)
    random = np.random.default_rng(lanes)
    j, k = (random.integers(0, 64, size).astype(integer) for size in (2 * SIZE, SIZE))
    x = random.integers(-9, 9, END).astype(dtype)
    y = random.integers(-9, 9, SIZE).astype(dtype)
    expected = y.copy()
    tw.compile(program, target="interpreter")(j, k, x, expected)
    tw.compile(program, schedule="as written")(j, k, x, y)
    np.testing.assert_array_equal(y, expected)
    if integer == "int32" and dtype != "int8":
        text = tw.compile(program, "llvm -mcpu=skylake-avx512", schedule="as written").inspect("asm")
        assert is_loaded == ("vpextr" not in text)
        # Two indices are one load.
        assert ("sarq\t$32" in text) == (index in ("J[v]", "J[v + 3]", "J[K[v]]"))
