"""Floats of 8 bits on devices: bytes in memory, computed in float32 and rounded after each operation."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from codegen.test_cuda import compiled
from codegen.test_opencl import elementwise

TYPES = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal, NaN to NaN, and zeros of one sign."""
    found, wanted = found.astype("float64"), wanted.astype("float64")
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("dtype", TYPES)
def test_all_numbers_are_read_and_written(dtype: str) -> None:
    values = np.arange(256).astype("uint8").view(TYPES[dtype])
    for wide in ("float32", "float64", "float16"):
        same(elementwise([dtype], wide, f'T.cast(<a>, "{wide}")', 256)[0](values), values.astype(wide))
    same(elementwise([dtype], dtype, "<a>", 256)[0](values), values)
    same(elementwise([dtype], dtype, "-<a>", 256)[0](values), -values)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_numbers_between_them_are_rounded_to_the_nearest(dtype: str, source: str) -> None:
    """Halfway, and next to it; beyond the largest and below the smallest number."""
    numbers = np.arange(256).astype("uint8").view(TYPES[dtype]).astype("float64")
    numbers = np.unique(numbers[np.isfinite(numbers)])
    halves = (numbers[1:] + numbers[:-1]) / 2
    beyond = [*(numbers[-1] * np.array([1.01, 1.0625, 1.125, 1.25, 2, 1e30])), np.inf, np.nan, 1e-30, -1e-40]
    values = np.concatenate([numbers, halves, np.nextafter(halves.astype(source), np.inf), beyond]).astype(source)
    values = np.concatenate([values, np.nextafter(halves.astype(source), -np.inf).astype(source)])
    # Of float64, NumPy's type rounds float32 first: a float that is rounded to odd is rounded once.
    once = values.astype("float32")
    bits = once.view("uint32").copy()
    inexact = (once != values) & np.isfinite(once)
    bits[inexact & (np.abs(once) > np.abs(values))] -= 1
    bits[inexact] |= 1
    wanted = bits.view("float32").astype(TYPES[dtype])
    kernel = elementwise([source], dtype, f'T.cast(<a>, "{dtype}")', len(values))[0]
    same(kernel(values), wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
def test_arithmetic_is_rounded_once(dtype: str, operator: str) -> None:
    numbers = np.arange(256).astype("uint8").view(TYPES[dtype])
    a, b = (grid.ravel() for grid in np.meshgrid(numbers, numbers))
    kernel = elementwise([dtype, dtype], dtype, f"<a> {operator} <b>", len(a))[0]
    x, y = a.astype("float32"), b.astype("float32")
    with np.errstate(all="ignore"):
        exact = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[operator]
    same(kernel(a, b), exact.astype(TYPES[dtype]))


@pytest.mark.parametrize("dtype", [*TYPES, "bfloat16", "float16"])
@pytest.mark.parametrize("source", ["int32", "int64", "uint32", "uint64"])
def test_integers_are_rounded_once(dtype: str, source: str) -> None:
    """Rounded to float32 first, 2**24 + 2**16 + 1 would be halfway between two numbers of bfloat16."""
    info = np.iinfo(source)
    values = [0, 1, 17, 449, 463, 464, 465, 2**24 + 2**16 + 1, 2**24 + 2**16 - 1, 2**24 + 2**16, info.max, info.min]
    values += [2**31 - 2**22 - 1, 57344, 61439, 61440, 61441, 65519, 65520, 65521]
    values += [2**40 + 2**32 + 1, 2**62 + 2**54 + 1, 2**62 + 2**54 - 1] if info.bits == 64 else []
    values += [-value for value in values if info.min < -value]
    given = np.array([value for value in values if info.min <= value <= info.max], source)
    kernel = elementwise([source], dtype, f'T.cast(<a>, "{dtype}")', len(given))[0]
    same(kernel(given), np.array([nearest(int(value), dtype) for value in given]))


def nearest(value: int, dtype: str) -> float:
    """Return the number of the type that is nearest to an integer; of two, that with an even last bit."""
    digits, largest, beyond = {
        "float8_e4m3fn": (4, 448, np.nan),
        "float8_e5m2": (3, 57344, np.inf),
        "bfloat16": (8, 255 * 2**120, np.inf),
        "float16": (11, 65504, np.inf),
    }[dtype]
    magnitude = abs(value)
    quantum = 2 ** max(magnitude.bit_length() - digits, 0)
    whole, rest = divmod(magnitude, quantum)
    whole += rest * 2 > quantum or (rest * 2 == quantum and whole % 2 == 1)
    rounded = whole * quantum
    return (-1 if value < 0 else 1) * (float(rounded) if rounded <= largest else beyond)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_compiler_of_cuda_takes_them(dtype: str) -> None:
    for source in ("float32", "float64", "int64", "float16"):
        compiled(elementwise([source], dtype, f'T.cast(<a>, "{dtype}") * T.cast(2, "{dtype}")')[1])
        compiled(elementwise([dtype], source, f'T.cast(<a> + <a>, "{source}")')[1])
