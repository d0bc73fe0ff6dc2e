"""Elementary functions against mpmath: every one at most 2 units in the last place, on vectors and scalars alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import tilewright as tw
from codegen.elementwise import program
from tilewright.script import tir as T

UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "exp10": lambda x: mp.power(10, x),
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10,
    "log1p": mp.log1p,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "erf": mp.erf,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "atan2": mp.atan2,
    "hypot": mp.hypot,
    "pow": mp.power,
    "fmod": lambda x, y: mpf(math.fmod(x, y)),  # exact in C
}
# Where the functions change their formula, reach an end of the exponents, or are close to a zero of theirs. The last
# one is the float64 that is closest to a multiple of pi/2.
HARD = [
    *(
        0.0,
        0.25,
        0.34657359,
        0.41421356,
        0.5,
        0.70710678,
        0.78539816,
        0.9,
        1.0,
        1.41421356,
        1.57079633,
        2.0,
        2.41421356,
    ),
    *(3.0, 3.14159265, 4.0, 6.0, 22.0, 37.5, 44.0, 87.33, 88.72, 89.41, 103.97, 308.25, 323.3, 707.0, 709.78, 710.47),
    *(745.13, 1022.0, 1024.0, 1074.5, 150.0, 126.0, 128.0, 38.53, 45.15, 1647099.5, 2.0**20, 2.0**28, 2.0**53, 1e22),
    6381956970095103.0 * 2.0**797,
]
INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5]


def special_values(name: str) -> list[tuple[float, float]]:
    """Results of Annex F of the C standard, where a limit or the sign of a zero matters."""
    odd = [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)]
    bounded = {"tanh": 1.0, "erf": 1.0, "atan": math.pi / 2}
    if name in bounded:
        return [*odd[:2], (INF, bounded[name]), (-INF, -bounded[name])]
    if name in ("sin", "tan", "asin", "atanh"):
        return [*odd[:2], (INF, NAN), (-INF, NAN)]
    if name in ("sinh", "asinh", "cbrt"):
        return odd
    powers = [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0)]
    logarithms = [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-INF, NAN), (-1.0, NAN)]
    return {
        **dict.fromkeys(("exp", "exp2", "exp10"), powers),
        **dict.fromkeys(("log", "log2", "log10"), logarithms),
        "expm1": [*odd[:3], (-INF, -1.0)],
        "log1p": [*odd[:3], (-INF, NAN), (-1.0, -INF), (-2.0, NAN)],
        "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, NAN), (-1.0, NAN)],
        "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0)],
        "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
        "acos": [(1.0, 0.0), (INF, NAN), (-INF, NAN), (2.0, NAN)],
        "cosh": [(0.0, 1.0), (INF, INF), (-INF, INF)],
        "acosh": [(1.0, 0.0), (INF, INF), (-INF, NAN), (0.5, NAN)],
    }[name]


def points(name: str, dtype: str, count: int = 160) -> np.ndarray:
    """Random bits, every scale, the ranges in which the function is used, hard points and their neighbors."""
    # A stable seed: hash() of a text is another one in each process.
    random = np.random.default_rng([ord(c) for c in name + dtype])
    real, bits = np.dtype(dtype).type, np.dtype(dtype).itemsize * 8
    anything = random.integers(0, 2**bits, count, dtype=f"uint{bits}").view(dtype)
    scales = np.exp2(random.uniform(-30, 12, count)) * random.choice([-1, 1], count)
    with np.errstate(over="ignore"):
        hard = np.array([s * h for h in HARD for s in (1, -1)]).astype(dtype)
    hard = hard[np.isfinite(hard)]
    near = [hard]
    for _ in range(2):
        near += [np.nextafter(near[-1], real(INF)), np.nextafter(near[0], real(-INF))]
    info = np.finfo(dtype)
    ends = np.array([info.tiny, info.smallest_subnormal, info.max, info.eps, info.tiny * 0.75, -info.max, -info.tiny])
    small = random.uniform(-1.5, 1.5, count)
    x = np.concatenate([v.astype(dtype) for v in (anything, scales, small, *near, ends, np.array(SPECIAL))])
    return x


def exact_value(function: Callable[..., Any], *args: float) -> Any:
    """NaN where the function has no real value."""
    with mp.workprec(200):
        try:
            value = function(*(mpf(float(a)) for a in args))
        except (ValueError, ZeroDivisionError):
            return mp.nan
        return value if isinstance(value, mpf) else mp.nan


class Exact:
    """Exact results, and how far from them others are, in units of the last place that the exact result would have.

    Attributes:
        exponents: of two, those units.
        head, tail: the results in these units: their sum has twice the digits of a float64.
    """

    def __init__(self, values: list[Any], dtype: str) -> None:
        self.info = np.finfo(dtype)
        count = len(values)
        self.exponents = np.full(count, int(self.info.minexp) - int(self.info.nmant))
        self.head, self.tail = np.zeros(count), np.zeros(count)
        with mp.workprec(200):
            for at, value in enumerate(values):
                if value == 0 or mp.isnan(value) or mp.isinf(value):
                    self.head[at] = value
                    continue
                exponent = int(mp.floor(mp.log(abs(value), 2)))
                if exponent > self.info.maxexp - 1:
                    self.head[at] = math.copysign(INF, value)
                    continue
                self.exponents[at] = max(exponent, int(self.info.minexp)) - int(self.info.nmant)
                units = mp.ldexp(value, -int(self.exponents[at]))
                self.head[at] = float(units)
                self.tail[at] = float(units - self.head[at])

    def errors(self, results: np.ndarray) -> np.ndarray:
        """Return the distances of the results; an infinity counts as the number behind the largest one."""
        got = results.astype("float64")
        with np.errstate(over="ignore", invalid="ignore"):
            behind = np.copysign(np.ldexp(1.0, int(self.info.maxexp) - self.exponents), got)
            units = np.where(np.isinf(got), behind, np.ldexp(got, -self.exponents))
            errors = np.abs(units - self.head - self.tail)
        special = (self.head == 0) | ~np.isfinite(self.head)
        alike = (got == self.head) | (np.isnan(got) & np.isnan(self.head))
        errors[special] = np.where(alike, 0, INF)[special]
        return np.where(np.isnan(errors), INF, errors)

    def worst(self, results: np.ndarray) -> tuple[float, int]:
        """Return the largest error, and where it is."""
        errors = self.errors(results)
        at = int(np.argmax(errors))
        return float(errors[at]), at


def test_errors_are_counted_in_units_of_the_exact_result() -> None:
    """By fractions, in both types: below the normal numbers, at a power of two, at the largest number and behind it."""
    for dtype in ("float32", "float64"):
        info, real = np.finfo(dtype), np.dtype(dtype).type
        with mp.workprec(200):
            least = mpf(2) ** (int(info.minexp) - int(info.nmant))
            above, largest, end = mpf(2) ** -int(info.nmant), mpf(float(info.max)), mpf(2) ** int(info.maxexp)
            cases: list[tuple[Any, float, float]] = [
                (1 + above / 4, 1.0, 0.25),
                (1 - above / 4, 1.0, 0.5),
                (1 + 2 * above, float(np.nextafter(real(1), real(2))), 1.0),
                (-least * 2.75, -3 * float(least), 0.25),
                (largest, INF, 1.0),
                (largest, -INF, 2.0 ** (int(info.nmant) + 2) - 1),
                (end, INF, 0.0),
                (end, float(info.max), INF),
                (-end, INF, INF),
                (mpf(0), -0.0, 0.0),
                (mpf(0), float(least), INF),
                (mp.nan, NAN, 0.0),
                (mp.nan, 1.0, INF),
                (mpf(1), NAN, INF),
            ]
        exact, got, expected = zip(*cases, strict=True)
        assert Exact(list(exact), dtype).errors(np.array(got, dtype)).tolist() == list(expected)


def kernel_results(name: str, arrays: list[np.ndarray], lanes: int, target: str) -> np.ndarray:
    dtype = str(arrays[0].dtype)
    kernel = tw.compile(program(getattr(T, name), [dtype] * len(arrays), dtype, lanes, len(arrays[0])), target=target)
    result = np.zeros_like(arrays[0])
    kernel(*arrays, result)
    return result


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    same = (a.view(f"uint{a.itemsize * 8}") == b.view(f"uint{b.itemsize * 8}")) | (np.isnan(a) & np.isnan(b))
    return bool(np.all(same))


def check(name: str, arrays: list[np.ndarray], exact: list[Any]) -> None:
    """Vectors, scalars, processors without long vectors and without fused operations, and the interpreter."""
    judge, vectors = Exact(exact, str(arrays[0].dtype)), kernel_results(name, arrays, 16, "native")
    for lanes, target in ((16, "native"), (8, "llvm -mcpu=x86-64-v3"), (4, "llvm -mcpu=x86-64"), (1, "interpreter")):
        got = vectors if target == "native" else kernel_results(name, arrays, lanes, target)
        error, at = judge.worst(got)
        arguments = [float(a[at]).hex() for a in arrays]
        assert error <= (0.51 if target == "interpreter" else 2.0), (target, error, arguments, float(got[at]).hex())
    for lanes in (1, 3):
        assert same_bits(kernel_results(name, arrays, lanes, "native"), vectors), lanes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_at_most_two_units(name: str, dtype: str) -> None:
    x = points(name, dtype)
    check(name, [x], [exact_or_limit(name, float(v)) for v in x])


def exact_or_limit(name: str, x: float) -> Any:
    """mpmath leaves some limits undefined; those are in the table."""
    for at, value in special_values(name):
        if x == at and math.copysign(1, x) == math.copysign(1, at):
            return mpf(value)
    return exact_value(UNARY[name], x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str, dtype: str) -> None:
    x, expected = np.array([*special_values(name), (NAN, NAN)], dtype).T.copy()
    for lanes, target in ((1, "native"), (8, "native"), (4, "llvm -mcpu=x86-64"), (1, "interpreter")):
        got = kernel_results(name, [x], lanes, target)
        np.testing.assert_allclose(got, expected, rtol=2e-7)
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_of_two_arguments_at_most_two_units(name: str, dtype: str) -> None:
    x = points(name, dtype)
    x = x[np.isfinite(x) & (x != 0)]
    random = np.random.default_rng(3)
    y = random.permutation(x)
    y[::4] = (x[::4] * random.uniform(0.5, 1, len(x[::4]))).astype(dtype)
    if name == "pow":
        # As many as possible whose results are in range, and whole exponents of negative numbers.
        x[1::3] = abs(x[1::3])
        with np.errstate(all="ignore"):
            y[1::3] = random.uniform(-1, 1, len(x[1::3])) * np.log(np.finfo(dtype).max) / np.log(x[1::3])
        y[2::3] = random.integers(-9, 9, len(x[2::3]))
        y[~np.isfinite(y)] = 1.5
    check(name, [x, y], [exact_value(BINARY[name], a, b) for a, b in zip(x, y, strict=True)])


def annex_f(name: str, a: float, b: float) -> float:
    """Python's math, which raises where C gives an infinity or NaN."""
    try:
        return float(getattr(math, name)(a, b))
    except ValueError:
        if name != "pow" or a != 0:
            return NAN
        odd = math.isfinite(b) and b % 2 == 1
        return math.copysign(INF, a) if odd else INF


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_two_arguments(name: str, dtype: str) -> None:
    """Zeros, infinities, NaN and whole numbers in all pairs."""
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    expected = [annex_f(name, a, b) for a, b in pairs]
    x, y = np.array(pairs, dtype).T.copy()
    for lanes, target in ((1, "native"), (8, "native"), (4, "llvm -mcpu=x86-64"), (1, "interpreter")):
        got = kernel_results(name, [x, y], lanes, target)
        np.testing.assert_allclose(got, np.array(expected), rtol=3e-7)
        zeros = np.array(expected) == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(np.array(expected)[zeros]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, -2.0, 7.0, 16.0, 33.0, 64.0, 65.0, -3.0, -8.0]
)
def test_constant_powers(exponent: float, dtype: str) -> None:
    x = points("pow", dtype)

    def power(v: Any) -> Any:
        return T.pow(v, T.Cast(dtype, T.float64(exponent)) if dtype == "float32" else T.float64(exponent))

    got = {}
    for lanes in (1, 16):
        kernel = tw.compile(program(power, [dtype], dtype, lanes, len(x)))
        got[lanes] = np.zeros_like(x)
        kernel(x, got[lanes])
    assert same_bits(got[1], got[16])
    usual = np.isfinite(x) & (x != 0)
    exact = [exact_value(mp.power, v, exponent) for v in x[usual]]
    error, at = Exact(exact, dtype).worst(got[16][usual])
    assert error <= 2.0, (float(x[usual][at]).hex(), error)
    expected = np.array([annex_f("pow", float(v), exponent) for v in x[~usual]], dtype)
    np.testing.assert_array_equal(got[16][~usual], expected)
    np.testing.assert_array_equal(np.signbit(got[16][~usual]), np.signbit(expected))


@pytest.mark.parametrize("exponent", [3, 5, 17, -4])
def test_whole_powers_are_multiplied(exponent: int) -> None:
    @T.prim_func
    def powers(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            B[i] = T.pow(A[i], T.float32(exponent))

    text = tw.compile(powers, schedule="as written").inspect("llvm")
    assert "fmul" in text and "math.pow" not in text and "@powf" not in text


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "tanh", "sin", "log1p", "atan"])
def test_narrow_floats_compute_in_float32(name: str, dtype: str) -> None:
    from codegen.elementwise import numpy_type

    x = np.random.default_rng(2).uniform(0.01, 8, 64).astype(numpy_type(dtype))
    kernel = tw.compile(program(getattr(T, name), [dtype], dtype, 8, 64))
    got = np.zeros_like(x)
    kernel(x, got)
    wide = kernel_results(name, [x.astype("float32")], 8, "native")
    np.testing.assert_array_equal(got, wide.astype(numpy_type(dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_plain_loops_get_the_vector_code(dtype: str) -> None:
    @T.prim_func
    def plain(A: T.Buffer((256,), dtype), B: T.Buffer((256,), dtype)):
        for i in range(256):
            B[i] = T.sin(A[i])

    text = tw.compile(plain, target="llvm -mcpu=x86-64-v3", schedule="as written").inspect("llvm")
    lanes = 32 // np.dtype(dtype).itemsize
    assert f"math.sin.f{np.dtype(dtype).itemsize * 8}x{lanes}" in text
    assert "call float @sinf" not in text and "call double @sin(" not in text


def test_mpmath_is_the_judge_of_hard_points() -> None:
    """The closest float64 to a multiple of pi/2, whose sine everyone gets wrong who reduces with fewer bits."""
    x = HARD[-1]
    with mpmath.workprec(1400):
        exact = mp.cos(mpf(x))
    got = kernel_results("cos", [np.array([x] * 8)], 8, "native")
    assert Exact([exact] * 8, "float64").worst(got)[0] < 1


def test_erf_takes_its_pieces_from_registers() -> None:
    """With tables in registers: fewer steps, errors below one unit, all pieces and their edges."""
    erf = program(T.erf, ["float32"], "float32", 16, 20000)
    text = tw.compile(erf, target="llvm -mcpu=skylake-avx512", schedule="as written").inspect("asm")
    assert text.count("vpermps") == 8 and text.count("vfm") + text.count("vmulps") + text.count("vaddps") <= 13
    if "avx512f" not in tw.Target("native").features:
        pytest.skip("this processor takes the other way")
    edges = np.arange(0.5, 16)[:, None] * (17 / 64) + np.linspace(-1e-3, 1e-3, 200)
    x = np.concatenate([edges.ravel(), np.linspace(1e-5, 4.2, 20000 - edges.size)]).astype("float32")
    got = kernel_results("erf", [x], 16, "native").astype("float64")
    exact = np.array([math.erf(v) for v in x.tolist()])
    assert np.max(np.abs(got - exact) / np.exp2(np.floor(np.log2(exact)) - 23)) < 0.9
