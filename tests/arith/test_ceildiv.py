"""`ceildiv` is a // b + (a % b != 0) for all integers: folded, interpreted and compiled, in scripts and in te."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, ir, te
from tilewright.script import from_source
from tilewright.script import tir as T

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def rounded_up(a: int, b: int) -> int:
    return -(-a // b)


def pairs(dtype: str, rng: random.Random, count: int) -> list[tuple[int, int]]:
    """Small numbers, numbers at the ends of the type and any others; the quotient is one of the type."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max

    def number() -> int:
        ends = [low, high, high // 2, *range(-9, 10)]
        value = int(rng.choice(ends)) + rng.randint(-3, 3) if rng.random() < 0.7 else rng.randint(low, high)
        return min(max(value, int(low)), int(high))

    found: list[tuple[int, int]] = []
    while len(found) < count:
        a, b = number(), number()
        if b != 0 and rounded_up(a, b) <= high:
            found.append((a, b))
    return found


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_are_folded_exactly(dtype: str) -> None:
    for a, b in pairs(dtype, random.Random(1), 200):
        folded = T.ceildiv(*(_core.IntImm(dtype, x) for x in (a, b)))
        value = int(folded.value)
        assert value % 2**64 == rounded_up(a, b) % 2**64 and folded.dtype == dtype, (a, b)


def test_plain_numbers() -> None:
    assert [int(T.ceildiv(a, b).value) for a, b in [(7, -3), (-7, 3), (-7, -3), (7, 3), (6, 3)]] == [-2, -2, 3, 3, 2]


def test_quotients_of_plain_numbers_that_their_type_does_not_hold() -> None:
    """Both numbers alone are of one type, in which the quotient would wrap. Python's integers do not."""
    for divide in (T.ceildiv, T.floordiv, T.truncdiv, T.indexdiv):
        for number, dtype in ((2**31, "int64"), (2**63, "uint64")):
            quotient = divide(-number, -1)
            assert (int(quotient) % 2**64, quotient.dtype) == (number, dtype), divide
    function = from_source("""
@T.prim_func
def main(C: T.Buffer((2,), "int64")):
    C[0] = T.ceildiv(-2**31, -1)
    C[1] = T.truncdiv(-2**31, -1)
""")
    for target in ("interpreter", "native"):
        found = np.zeros(2, np.int64)
        tw.compile(function, target=target)(found)
        assert found.tolist() == [2**31, 2**31]


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_of_every_type(dtype: str) -> None:
    drawn = pairs(dtype, random.Random(2), 64)
    a, b = (np.array(column, dtype) for column in zip(*drawn, strict=True))
    expected = np.array([rounded_up(x, y) for x, y in drawn], dtype)
    function = from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "{dtype}"), C: T.Buffer((64,), "{dtype}")):
    for i in range(64):
        with T.block("C"):
            v = T.axis.spatial(64, i)
            C[v] = T.ceildiv(A[v], B[v])
""")
    run_both(function, [a, b], expected)
    x, y = te.placeholder((64,), dtype, "x"), te.placeholder((64,), dtype, "y")
    z = te.compute((64,), lambda i: T.ceildiv(x[i], y[i]), "z")
    run_both(te.create_prim_func([x, y, z]), [a, b], expected)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint32"])
def test_elements_by_a_number(dtype: str) -> None:
    for divisor in [2, 10, 32, 100, *([-3, -1] if dtype.startswith("i") else [])]:
        drawn = [a for a, _ in pairs(dtype, random.Random(divisor), 64)]
        drawn = [a for a in drawn if rounded_up(a, divisor) <= np.iinfo(dtype).max]
        expected = np.array([rounded_up(a, divisor) for a in drawn], dtype)
        size = len(drawn)
        function = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({size},), "{dtype}"), C: T.Buffer(({size},), "{dtype}")):
    for i in range({size}):
        with T.block("C"):
            v = T.axis.spatial({size}, i)
            C[v] = T.ceildiv(A[v], T.{dtype}({divisor}))
""")
        run_both(function, [np.array(drawn, dtype)], expected)


def run_both(function: ir.PrimFunc, given: list[np.ndarray], expected: np.ndarray) -> None:
    module = tw.Schedule(function).mod
    for run in (partial(_core.interpret, module, "main"), tw.compile(function)):
        out = np.zeros_like(expected)
        run(*given, out)
        np.testing.assert_array_equal(out, expected)


def test_a_value_that_cannot_be_negative_keeps_its_end() -> None:
    """What is known of the operand is no reason to add to it."""
    function = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = T.ceildiv(T.max(A[v], 0), 2)
""")
    a = np.array([2**31 - 1, 7, -5, 2**31 - 2], "int32")
    run_both(function, [a], np.array([2**30, 4, 0, 2**30 - 1], "int32"))


def test_sizes_keep_the_text_that_people_know() -> None:
    function = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    B = T.match_buffer(b, (n,), "int32")
    A = T.match_buffer(a, (T.ceildiv(n, 32) * 32,), "int32")
    for i, j in T.grid(T.ceildiv(n, 32), 32):
        with T.block("A"):
            v = T.axis.spatial(T.ceildiv(n, 32) * 32, i * 32 + j)
            A[v] = T.ceildiv(n, 2)
""")
    text = function.script()
    assert "T.match_buffer(a, ((n + 31) // 32 * 32,), " in text and "T.grid((n + 31) // 32, 32)" in text
    assert 'A[v] = n // 2 + T.Cast("int32", n % 2 != 0)' in text
    tw.compile(function)(a := np.zeros(96, "int32"), np.zeros(71, "int32"))
    assert (a == 36).all()


def test_an_operand_with_an_effect_is_evaluated_once() -> None:
    value = T.ceildiv(T.call_extern("int32", "next_number"), 4)
    assert str(value).count("next_number") == 1
