from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from codegen.elementwise import FLOATS, NARROW, SIGNED, UNSIGNED, numpy_type, run
from tilewright import script
from tilewright.script import tir as T

RANDOM = np.random.default_rng(8)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("to", [*SIGNED, *UNSIGNED, *FLOATS, "bool"])
@pytest.mark.parametrize("source", [*SIGNED, *UNSIGNED, *FLOATS, "bool"])
def test_small_values_survive(source: str, to: str, lanes: int) -> None:
    low = 0 if source.startswith("u") or to.startswith("u") or source == "bool" else -100
    a = RANDOM.integers(low, 2 if source == "bool" else 100, 37).astype(numpy_type(source))
    expected = a.astype(numpy_type(to))
    np.testing.assert_array_equal(run(lambda x: T.Cast(to, x), [a], to, lanes), expected)


@pytest.mark.parametrize("target", ["native", "llvm -mcpu=x86-64", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_scalars_are_rounded(dtype: str, target: str) -> None:
    """By the entry of the function, which runs on any processor."""

    fill = script.from_source(
        f"""from tilewright.script import tir as T
@T.prim_func
def fill(B: T.Buffer((3,), "{dtype}"), alpha: T.{dtype}):
    for i in range(3):
        with T.block("B"):
            v = T.axis.spatial(3, i)
            B[v] = alpha
"""
    )
    b = np.zeros(3, numpy_type(dtype))
    tw.compile(fill, target)(b, 1.3)
    np.testing.assert_array_equal(b, np.full(3, 1.3).astype(numpy_type(dtype)))


@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "uint32"])
def test_integers_are_cut_off(to: str) -> None:
    a = RANDOM.integers(-(2**62), 2**62, 37)
    np.testing.assert_array_equal(run(lambda x: T.Cast(to, x), [a], to, 8), a.astype(to))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("to", ["float16", *NARROW])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_narrowing_rounds_to_nearest_even(source: str, to: str, lanes: int) -> None:
    scale = 10.0 ** RANDOM.integers(-12, 6, 4000)
    a = (RANDOM.normal(0, 1, 4000) * scale).astype(source)
    a[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 65504, 65520, 1e-8]
    # Halfway between two neighbors of the narrow format.
    with np.errstate(over="ignore"):
        grid = np.abs(a[8:1000]).astype(numpy_type(to))
    bits = grid.view("uint8" if grid.dtype.itemsize == 1 else "uint16")
    above = (bits + 1).astype(bits.dtype).view(grid.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        a[8:1000] = (grid.astype("float64") + above.astype("float64")) / 2
        expected = a.astype(numpy_type(to))
    got = run(lambda x: T.Cast(to, x), [a], to, lanes)
    np.testing.assert_array_equal(got.astype("float32"), expected.astype("float32"))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("source", ["float16", *NARROW])
def test_widening_is_exact(source: str, lanes: int) -> None:
    size = 1 if source.startswith("float8") else 2
    bits = np.arange(256**size, dtype=f"uint{8 * size}")
    a = bits.view(numpy_type(source))
    np.testing.assert_array_equal(run(lambda x: T.Cast("float32", x), [a], "float32", lanes), a.astype("float32"))


def test_reinterpret_keeps_the_bits() -> None:
    a = RANDOM.normal(size=37).astype("float32")
    got = run(lambda x: T.reinterpret("int32", x), [a], "int32", 8)
    np.testing.assert_array_equal(got, a.view("int32"))


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("to", [*SIGNED, *UNSIGNED])
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_out_of_range_is_the_nearest_integer(source: str, to: str, lanes: int) -> None:
    limits = np.iinfo(to)
    ends = [np.dtype(source).type(limit) for limit in (limits.min, -1, 0, 1, limits.max)]
    with np.errstate(over="ignore"):
        near = [np.nextafter(end, np.dtype(source).type(way)) for end in ends for way in (-np.inf, np.inf)]
    halves = [np.dtype(source).type(float(end) + step) for end in ends for step in (-1.5, -0.5, 0.5, 1.5)]
    a = np.array([*ends, *near, *halves, np.nan, -np.nan, np.inf, -np.inf, -0.0], numpy_type(source))
    expected = [0 if np.isnan(x) else limits.max if x == np.inf else limits.min if x == -np.inf else int(x) for x in a]
    got = run(lambda x: T.Cast(to, x), [a], to, lanes)
    np.testing.assert_array_equal(got, np.clip(np.array(expected, object), limits.min, limits.max).astype(to))


@pytest.mark.parametrize("to", ["int8", "uint8", "int16", "uint16"])
def test_narrow_integers_take_one_comparison(to: str) -> None:
    """Cut off at the ends of the range before the conversion, which then is never out of range."""

    @T.prim_func
    def convert(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), to)):
        for i in T.vectorized(64):
            with T.block("Y"):
                vi = T.axis.spatial(64, i)
                Y[vi] = T.Cast(to, X[vi])

    text = tw.compile(convert, "llvm -mcpu=skylake-avx512", schedule="as written").inspect("asm")
    assert text.count("vcmp") <= text.count("vcvttps2dq") == 4
