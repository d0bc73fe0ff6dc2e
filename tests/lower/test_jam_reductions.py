"""The pass jam_reductions: several results of vectorized reductions at a time, whose lanes are reduced together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lower.passes import agrees, check_unchanged, script_after

import tilewright as tw
from tilewright.script import from_source

TARGETS = ["llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4"]
#: numbers of nonzeros: no row of 8, 4, 2 and 1 in all ways, and empty rows
COUNTS = [0, 1, 7, 3, 0, 8, 2, 23, 4, 12, 5, 16, 0, 9]

#: for each nonzero (i, j): row i of x and row j of y, reduced
ROWS = """@T.prim_func
def rows(p: T.Buffer((15,), "{index}"), h: T.handle, x: T.Buffer((14, {k}), "{dtype}"),
         y: T.Buffer((9, {k}), "{dtype}"), o: T.handle):
    T.func_attr({{"global_symbol": "rows"}})
    n = T.int32(is_size_var=True)
    j = T.match_buffer(h, (n,), "{index}")
    s = T.match_buffer(o, (n,), "{dtype}")
    for i in range(14):
        for q in range({extent}):
            {first}
            for k in T.vectorized({k}):
                s[{at}] = {step}
"""
DEFAULTS = {
    "index": "int32",
    "dtype": "float32",
    "k": 33,
    "extent": "p[i + 1] - p[i]",
    "first": "s[p[i] + q] = 0",
    "at": "p[i] + q",
    "step": "s[p[i] + q] + x[i, k] * y[j[p[i] + q], k]",
}


def rows(**given: Any) -> Any:
    return from_source(ROWS.format(**DEFAULTS | given))


def operands(dtype: str, index: str, k: int) -> list[np.ndarray]:
    """Operands with small integers, which any order of additions sums exactly, and results from before."""
    rng = np.random.default_rng(k)
    p = np.concatenate([[0], np.cumsum(COUNTS)]).astype(index)
    j = rng.integers(9, size=p[-1]).astype(index)
    x, y, s = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((14, k), (9, k), p[-1]))
    return [p, j, x, y, s]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("dtype", "index"), [("float32", "int32"), ("float64", "int64"), ("int32", "int64")])
@pytest.mark.parametrize("k", [16, 33, 64])
def test_results_are_those_of_numpy(k: int, dtype: str, index: str, target: str) -> None:
    p, j, x, y, s = args = operands(dtype, index, k)
    products = (x[np.repeat(np.arange(14), COUNTS)] * y[j]).sum(1).astype(dtype)
    for first, want in (("s[p[i] + q] = 3", 3 + products), ("pass", s + products)):
        program = rows(dtype=dtype, index=index, k=k, first=first)
        assert "s_lanes" in script_after(program, "jam_reductions", target)
        agrees(program, "jam_reductions", args, [p, j, x, y, want], target)


@pytest.mark.parametrize("k", [16, 33, 72, 128])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("step", ["{s} + {v}", "{s} - {v}", "T.min({s}, {v})", "T.max({v}, {s})"])
def test_compiled_results_are_those_of_numpy(step: str, dtype: str, k: int) -> None:
    p, j, x, y, s = operands(dtype, "int32", k)
    product = "x[i, k] * y[j[p[i] + q], k]"
    program = rows(dtype=dtype, k=k, first="pass", step=step.format(s="s[p[i] + q]", v=product))
    terms = x[np.repeat(np.arange(14), COUNTS)] * y[j]
    want = {
        "{s} + {v}": s + terms.sum(1),
        "{s} - {v}": s - terms.sum(1),
        "T.min({s}, {v})": np.minimum(s, terms.min(1)),
        "T.max({v}, {s})": np.maximum(s, terms.max(1)),
    }
    tw.compile(program, schedule="as written")(p, j, x, y, s)
    np.testing.assert_array_equal(s, want[step])


@pytest.mark.parametrize(
    ("k", "due"),
    [
        (64, 'T.call_intrin("handle", "tir.prefetch"'),  # a single chunk
        (72, "if (k_0 * 4 + result) % 3 == 0"),  # 3 chunks of 3 vectors
        (128, "if (k_0 * 4 + result) % 2 == 0"),  # 2 chunks of 8 vectors
    ],
)
def test_prefetches_are_spread_over_the_chunks(k: int, due: str) -> None:
    prefetch = 'T.evaluate(T.call_intrin("handle", "tir.prefetch", T.address_of(y[j[p[i] + q], 0]), 0, 3, 1))'
    program = rows(k=k, first=f"{prefetch}\n            s[p[i] + q] = 0")
    after = script_after(program, "jam_reductions", "llvm -mcpu=x86-64-v3").splitlines()
    first = next(at for at, line in enumerate(after) if "for result in T.unroll(4)" in line and "k_0" in after[at - 1])
    assert due in after[first + 1]
    p, j, x, y, _ = args = operands("float32", "int32", k)
    agrees(program, "jam_reductions", args, [p, j, x, y, (x[np.repeat(np.arange(14), COUNTS)] * y[j]).sum(1)])


@pytest.mark.parametrize(
    "given",
    [
        {"extent": "3"},
        {"k": 4},
        {"k": 4096},
        {"at": "p[i] + q * 2", "first": "pass", "step": "s[p[i] + q * 2] + x[i, k]"},
        {"step": "s[p[i] + q] + x[i, k] * s[j[p[i] + q]]"},
        {"first": "s[p[i] + q] = 0\n            x[i, 0] = 1"},
        {"at": "j[p[i] + q]", "first": "pass", "step": "s[j[p[i] + q]] + x[i, k]"},
        {"dtype": "float16"},
    ],
)
def test_other_loops_stay(given: dict[str, Any]) -> None:
    """Loops with constant extents, short and long reductions, results apart, and iterations that depend on others."""
    check_unchanged(rows(**given), "jam_reductions")
