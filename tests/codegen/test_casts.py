from __future__ import annotations

import numpy as np
import pytest

from codegen.elementwise import FLOATS, NARROW, SIGNED, UNSIGNED, numpy_type, run
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
