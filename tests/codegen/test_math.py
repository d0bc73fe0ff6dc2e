from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from codegen.elementwise import run
from tilewright.script import tir as T

RANDOM = np.random.default_rng(9)


def erf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(v) for v in x])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(
        x < 0, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))), 1 / (1 + np.exp(-np.maximum(x, 0)))
    )


def ulps(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in units of the last place of the exact result."""
    with np.errstate(over="ignore"):
        nearest = exact.astype(got.dtype)
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(got[~finite], nearest[~finite])
    error = np.abs(got[finite].astype("float64") - exact[finite])
    return float(np.max(error / np.spacing(np.abs(nearest[finite])).astype("float64")))


UNARY = [
    *("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "tan", "cos", "cosh", "sin"),
    *("sinh", "asin", "acos", "atan", "asinh", "atanh", "floor", "ceil", "trunc", "nearbyint", "sigmoid", "erf"),
]
OURS: list[tuple[Any, Callable[[np.ndarray], np.ndarray], float, float]] = [
    (T.exp, np.exp, -110, 95),
    (T.log, np.log, 0, 100),
    (T.log2, np.log2, 0, 100),
    (T.log10, np.log10, 0, 100),
    (T.atan, np.arctan, -30, 30),
    (T.tanh, np.tanh, -12, 12),
    (T.erf, erf, -6, 6),
    (T.sigmoid, sigmoid, -110, 110),
]


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize(("function", "reference", "low", "high"), OURS, ids=[f[0].__name__ for f in OURS])
def test_errors_are_below_two_and_a_half_units(
    function: Any, reference: Callable[[np.ndarray], np.ndarray], low: float, high: float, lanes: int
) -> None:
    x = np.concatenate(
        [
            RANDOM.uniform(low, high, 20000),
            RANDOM.uniform(max(low, -1), min(high, 1), 20000),
            10.0 ** RANDOM.uniform(-38, 0, 10000) * (1 if low == 0 else RANDOM.choice([-1, 1], 10000)),
        ]
    ).astype("float32")
    with np.errstate(over="ignore", under="ignore"):
        exact = reference(x.astype("float64"))
    assert ulps(run(function, [x], "float32", lanes), exact) < 2.5


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize(("function", "reference"), [(f[0], f[1]) for f in OURS], ids=[f[0].__name__ for f in OURS])
def test_special_values(function: Any, reference: Callable[[np.ndarray], np.ndarray], lanes: int) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1e-39, 1.0, -1.0, 3e38, -3e38], "float32")
    with np.errstate(all="ignore"):
        exact = reference(x.astype("float64")).astype("float32")
    np.testing.assert_allclose(run(function, [x], "float32", lanes), exact, rtol=3e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(
    "name",
    UNARY,
)
def test_unary(name: str, lanes: int, dtype: str) -> None:
    x = RANDOM.uniform(0.05, 0.95, 37).astype(dtype)
    if name in ("floor", "ceil", "trunc", "nearbyint"):
        x = RANDOM.uniform(-9, 9, 37).astype(dtype)
        x[:4] = [0.5, 1.5, -0.5, -2.5]
    reference: Any = {
        "rsqrt": lambda v: 1 / np.sqrt(v),
        "exp10": lambda v: 10**v,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "asinh": np.arcsinh,
        "atanh": np.arctanh,
        "nearbyint": np.rint,
        "sigmoid": sigmoid,
        "erf": erf,
    }.get(name) or getattr(np, name)
    got = run(getattr(T, name), [x], dtype, lanes)
    np.testing.assert_allclose(got, reference(x.astype("float64")), rtol=3e-7 if dtype == "float32" else 1e-15)


@pytest.mark.parametrize("lanes", [1, 8])
def test_binary(lanes: int) -> None:
    x, y = RANDOM.uniform(0.1, 5, (2, 37)).astype("float32")
    for function, reference in [
        (T.pow, np.power),
        (T.atan2, np.arctan2),
        (T.fmod, np.fmod),
        (T.hypot, np.hypot),
        (T.copysign, np.copysign),
        (T.nextafter, np.nextafter),
    ]:
        np.testing.assert_allclose(
            run(function, [x, -y if function is T.copysign else y], "float32", lanes),
            reference(x, -y if function is T.copysign else y),
            rtol=1e-6,
        )


@pytest.mark.parametrize("lanes", [1, 8])
def test_classification(lanes: int) -> None:
    x = np.array([0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 3e38] * 5, "float32")[:37]
    np.testing.assert_array_equal(run(T.isnan, [x], "bool", lanes), np.isnan(x))
    np.testing.assert_array_equal(run(T.isinf, [x], "bool", lanes), np.isinf(x))
    np.testing.assert_array_equal(run(T.isfinite, [x], "bool", lanes), np.isfinite(x))
    np.testing.assert_array_equal(run(T.abs, [x], "float32", lanes), np.abs(x))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_compute_in_float32(dtype: str) -> None:
    from codegen.elementwise import numpy_type

    x = RANDOM.uniform(0.1, 4, 37).astype(numpy_type(dtype))
    for function, reference in [(T.exp, np.exp), (T.tanh, np.tanh), (T.sqrt, np.sqrt)]:
        expected = reference(x.astype("float32")).astype(numpy_type(dtype))
        got = run(function, [x], dtype, 8)
        np.testing.assert_allclose(got.astype("float32"), expected.astype("float32"), rtol=1e-2)
