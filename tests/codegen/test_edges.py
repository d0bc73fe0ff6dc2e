"""Operations at their edges: the interpreter, constant folding, simplification and compiled code agree.

Each operator, cast and exact intrinsic, for every type, on extreme values; `docs/meaning.md` says what they mean.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.samples import samples

import tilewright as tw
from codegen.elementwise import numpy_type, program
from tilewright import _core, arith, ir
from tilewright.script import tir as T

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
FLOATS = [*NARROW, "float32", "float64"]
ALL = ["bool", *INTEGERS, *FLOATS]
COMPARISONS = ["EQ", "NE", "LT", "LE", "GT", "GE"]
DIVISIONS = ["Div", "Mod", "FloorDiv", "FloorMod"]
ARITHMETIC = ["Add", "Sub", "Mul", *DIVISIONS, "Min", "Max"]
BITS = ["shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"]
EXACT = ["floor", "ceil", "round", "nearbyint", "trunc", "fabs", "sqrt"]
TESTS = ["isnan", "isinf", "isfinite"]


def extremes(dtype: str) -> np.ndarray:
    """Values at which operations do something special."""
    if dtype == "bool":
        return np.array([False, True])
    if "int" in dtype:
        info = np.iinfo(dtype)
        bits = info.bits
        values = {0, 1, 2, 3, 5, 7, bits - 1, bits, bits + 1, 100, info.max, info.max - 1, info.max // 2 + 1}
        values |= {info.min, info.min + 1, -1, -2, -3, -7, -bits}
        return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 7.0, -0.75, np.inf, -np.inf, np.nan, 448.0, 1e-3]
    values += [1e-7, -1e-7, 126.5, 127.5, 128.0, -128.5, 255.5, 256.0, 32767.5, -32769.0, 65504.0, 65535.5, 65536.0]
    if dtype.startswith(("float32", "float64", "bf")):
        values += [2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 3e38, -3e38, 1e-45, 1e-40, -1e-40]
    if dtype.startswith(("float32", "float64")):
        values += [2.0**31 - 128, 2.0**24 + 1, 16777215.5, 1e-44]
    if dtype == "float64":
        values += [1e300, -1e300, 5e-324, 2.0**31 - 0.5, 2.0**53 + 1, 2.0**63 - 1024, 1.7976931348623157e308, 1e-39]
    with np.errstate(over="ignore"):
        return np.array(values, "float64").astype(numpy_type(dtype))


def interpret(func: Any, *arrays: np.ndarray) -> None:
    module = ir.as_module(func)
    ir.interpret(module, next(iter(module.functions)), *arrays)


def same(got: np.ndarray, wanted: np.ndarray, note: Any, zeros_differ: bool) -> None:
    """Equal, NaN to NaN, and zeros of one sign."""
    if wanted.dtype.kind not in "iub":
        got, wanted = got.astype("float64"), wanted.astype("float64")
        if zeros_differ:
            zero = (got == 0) & (wanted == 0)
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]), err_msg=str(note))
    np.testing.assert_array_equal(got, wanted, err_msg=str(note))


def node(name: str) -> Callable[..., Any]:
    """The node or call, not folded."""
    if name[0].isupper():
        return getattr(T, name)

    def call(*args: Any) -> Any:
        return T.call_intrin("bool" if name in TESTS else args[0].dtype, f"tir.{name}", *args)

    return call


def binary_operators() -> Iterator[tuple[str, str]]:
    for dtype in ALL:
        is_float = dtype in FLOATS
        for name in [
            *ARITHMETIC,
            *COMPARISONS,
            *([] if is_float else BITS),
            *(["And", "Or"] if dtype == "bool" else []),
        ]:
            if not (is_float and name == "Mod"):
                yield dtype, name


def pairs(dtype: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of extreme values that the operator takes."""
    values = extremes(dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    if name in DIVISIONS and dtype not in FLOATS:
        a, b = a[b != 0], b[b != 0]
    return a, b


@pytest.mark.parametrize(("dtype", "name"), binary_operators())
def test_binary_operators(dtype: str, name: str) -> None:
    output = "bool" if name in COMPARISONS else dtype
    a, b = pairs(dtype, name)
    zeros_differ = name not in ("Min", "Max")  # which of two zeros is left open
    wanted = np.zeros(len(a), numpy_type(output))
    interpret(program(node(name), [dtype, dtype], output, 1, len(a)), a, b, wanted)
    for lanes in (1, 16):
        got = np.zeros(len(a), numpy_type(output))
        tw.compile(program(node(name), [dtype, dtype], output, lanes, len(a)))(a, b, got)
        same(got, wanted, lanes, zeros_differ)
    check_folding(name, [a, b], dtype, wanted, zeros_differ)


def folded_to(result: Any) -> Any:
    """Return the number of a literal; None where nothing was folded."""
    if not isinstance(result, _core.IntImm | _core.FloatImm):
        return None
    return int(result.value) & (2**64 - 1) if result.dtype == "uint64" else result.value


def check_folding(name: str, arrays: list[np.ndarray], dtype: str, wanted: np.ndarray, zeros_differ: bool) -> None:
    analyzer = arith.Analyzer()
    numbers, expected, cases = [], [], []
    for *values, result in zip(*(a.tolist() for a in arrays), wanted, strict=True):
        folded = analyzer.simplify(node(name)(*(_core.const(v, dtype) for v in values)))
        number = folded_to(folded)
        if number is None:  # an index type would overflow, a float would be divided by zero
            assert dtype in ("int32", "int64") or (name in DIVISIONS and values[1] == 0), (name, values, folded)
        else:
            numbers.append(np.array(number).astype(wanted.dtype))
            expected.append(result)
            cases.append(values)
    # One comparison: NumPy takes longer to begin one than the analyzer to fold an expression.
    found, results = np.array(numbers, wanted.dtype), np.array(expected, wanted.dtype)
    different = [case for *case, one, other in zip(cases, found, results, strict=True) if str(one) != str(other)]
    same(found, results, (name, different[:5]), zeros_differ)


def table(rows: list[Callable[[Any], Any]], dtype: str, output: str, size: int) -> Any:
    numbered = list(enumerate(rows))
    count = len(rows)

    @T.prim_func
    def func(A: T.Buffer((size,), dtype), C: T.Buffer((count, size), output)):
        for i in range(size):
            for row, value in numbered:
                C[row, i] = value(A[i])

    return func


@pytest.mark.parametrize("is_comparison", [False, True])
@pytest.mark.parametrize("dtype", ALL)
def test_one_operand_constant(dtype: str, is_comparison: bool) -> None:
    """What simplification and code generation make of x op c and c op x."""
    values = extremes(dtype)
    rng = random.Random(dtype)
    output = "bool" if is_comparison else dtype
    rows: list[Callable[[Any], Any]] = []
    for named, name in binary_operators():
        if named != dtype or (name in COMPARISONS) != is_comparison:
            continue
        for value in values.tolist():
            constant = _core.const(value, dtype)
            if not (name in DIVISIONS and value == 0):
                rows.append(lambda x, name=name, c=constant: node(name)(x, c))
            if not (name in DIVISIONS and dtype not in FLOATS):
                rows.append(lambda x, name=name, c=constant: node(name)(c, x))
    rows = rng.sample(rows, min(len(rows), samples(30)))
    func = table(rows, dtype, output, len(values))
    wanted, got = np.zeros((2, len(rows), len(values)), numpy_type(output))
    interpret(func, values, wanted)
    tw.compile(func, schedule="as written")(values, got)
    # A NaN has any bits; -0.0 counts as 0.0 here, since Min and Max may choose.
    same(got, wanted, [str(r(_core.Var("x", dtype))) for r in rows], False)


@pytest.mark.parametrize("to", ALL)
@pytest.mark.parametrize("source", ALL)
def test_casts(source: str, to: str) -> None:
    values = extremes(source)
    wanted = np.zeros(len(values), numpy_type(to))
    interpret(program(lambda x: T.Cast(to, x), [source], to, 1, len(values)), values, wanted)
    for lanes in (1, 16):
        got = np.zeros(len(values), numpy_type(to))
        tw.compile(program(lambda x: T.Cast(to, x), [source], to, lanes, len(values)))(values, got)
        same(got, wanted, values, True)
    analyzer = arith.Analyzer()
    folded = [folded_to(analyzer.simplify(T.Cast(to, _core.const(value, source)))) for value in values.tolist()]
    assert None not in folded
    same(np.array([np.array(number).astype(wanted.dtype) for number in folded], wanted.dtype), wanted, folded, True)


def test_floats_out_of_range_give_the_nearest_integer_and_nan_zero() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 300.7, -300.7], "float32")
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        wanted = np.array(
            [np.clip(np.trunc(np.nan_to_num(float(v))), float(info.min), float(info.max)) for v in values]
        )
        got = np.zeros(len(values), dtype)
        tw.compile(program(lambda x, to=dtype: T.Cast(to, x), ["float32"], dtype, 8, len(values)))(values, got)
        for result, exact in zip(got.tolist(), wanted.tolist(), strict=True):
            assert result == min(max(int(exact), info.min), info.max)


def unary_operators() -> Iterator[tuple[str, str]]:
    for dtype in ALL:
        names = [*EXACT, *TESTS] if dtype in FLOATS else ["fabs", *TESTS, "bitwise_not", "popcount"]
        yield from ((dtype, name) for name in names)


@pytest.mark.parametrize(("dtype", "name"), unary_operators())
def test_unary_operators(dtype: str, name: str) -> None:
    values = extremes(dtype)
    output = "bool" if name in TESTS else dtype
    wanted = np.zeros(len(values), numpy_type(output))
    interpret(program(node(name), [dtype], output, 1, len(values)), values, wanted)
    for lanes in (1, 16):
        got = np.zeros(len(values), numpy_type(output))
        tw.compile(program(node(name), [dtype], output, lanes, len(values)))(values, got)
        same(got, wanted, lanes, True)
