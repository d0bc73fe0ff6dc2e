"""Products of few rows with a matrix that no near cache holds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.heuristics.cpu.programs import convolution, product, scheduled

import tilewright as tw
from tilewright import te

TARGETS = ["llvm -mcpu=x86-64-v3 -num-cores=1", "llvm -mcpu=x86-64-v3 -num-cores=3", "native -num-cores=2"]
TAKEN = [(8, 512, 1024), (16, 768, 512), (100, 528, 1024), (24, 480, 975), (64, 1024, 1024)]


def arrays(n: int, m: int, k: int, dtype: str = "float32") -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(n)
    a, b = rng.integers(-4, 5, (1, n, k)).astype(dtype), rng.integers(-4, 5, (1, k, m)).astype(dtype)
    return a, b, np.full((1, n, m), np.nan, dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", TAKEN)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_added_up_where_they_lie(shape: tuple[int, int, int], target: str, dtype: str) -> None:
    n, m, k = shape
    a, b, c = arrays(n, m, k, dtype)
    kernel = tw.compile(product(n, m, k, dtype), target, schedule="by rules")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)  # small integers: sums are exact
    assert not {note.code for note in kernel.notes} & {"lower/not-in-registers", "lower/unproved-parallel"}


@pytest.mark.parametrize("shape", TAKEN)
@pytest.mark.parametrize("target", TARGETS[:2])
def test_the_matrix_is_read_in_parts(shape: tuple[int, int, int], target: str) -> None:
    text = scheduled(product(*shape), target).mod.script()
    assert "C_rf_local" in text
    assert ("B_global" in text) == (shape[0] >= 48)  # which many enough rows pay for


@pytest.mark.parametrize(
    "shape",
    [(4, 512, 1024), (256, 512, 1024), (16, 128, 512), (16, 512, 1021), (13, 509, 1024)],
    ids=["four rows", "many rows", "near", "prime sum", "prime columns"],
)
def test_other_products_are_not(shape: tuple[int, int, int]) -> None:
    assert "C_rf_local" not in scheduled(product(*shape), TARGETS[0]).mod.script()


def test_a_wide_matrix_is_gone_through_in_parts_that_stay_near() -> None:
    text = scheduled(product(16, 8192, 1024), TARGETS[0]).mod.script()
    assert "C_rf_local" in text and "B_prefetch" not in text
    # Of what comes from memory the next part is asked for.
    large = product(16, 8192, 2048)
    assert "B_prefetch" in scheduled(large, "llvm -mcpu=icelake-server -num-cores=1").mod.script()
    assert "B_prefetch" not in scheduled(large, TARGETS[0]).mod.script()


def test_what_follows_is_computed_after_it() -> None:
    a, b, bias = (
        te.placeholder((16, 1024), name="A"),
        te.placeholder((1024, 512), name="B"),
        te.placeholder((512,), name="D"),
    )
    k = te.reduce_axis((0, 1024), name="k")
    c = te.compute((16, 512), lambda i, j: te.sum(a[i, k] * b[k, j], axis=[k]), name="C")
    d = te.compute((16, 512), lambda i, j: c[i, j] + bias[j], name="E")
    kernel = tw.compile(te.create_prim_func([a, b, bias, d]), TARGETS[0], schedule="by rules")
    rng = np.random.default_rng(1)
    x, w, y = (rng.integers(-4, 5, shape).astype("float32") for shape in ((16, 1024), (1024, 512), (512,)))
    out = np.zeros((16, 512), "float32")
    kernel(x, w, y, out)
    np.testing.assert_array_equal(out, x @ w + y)


def test_a_search_draws_other_ways_too() -> None:
    texts = {scheduled(product(16, 512, 1024), TARGETS[0], best=False, seed=seed).mod.script() for seed in range(20)}
    assert {"C_rf_local" in text for text in texts} == {True, False}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size, channels, filters", [(7, 256, 128), (5, 192, 240), (6, 128, 512)])
def test_convolutions_of_small_images_are_such_products(size: int, channels: int, filters: int, target: str) -> None:
    program = convolution(size, channels, filters)
    shapes = [[int(extent) for extent in program.buffer_map[param].shape] for param in program.params]
    rng = np.random.default_rng(size)
    x, w = (rng.integers(-4, 5, shape).astype("float32") for shape in shapes[:2])
    got, want = np.zeros(shapes[2], "float32"), np.zeros(shapes[2], "float32")
    kernel = tw.compile(program, target, schedule="by rules")
    kernel(x, w, got)
    tw.compile(program, TARGETS[0], schedule="as written")(x, w, want)
    np.testing.assert_array_equal(got, want)  # small integers: sums are exact
    assert not {note.code for note in kernel.notes} & {"lower/not-in-registers", "lower/unproved-parallel"}
    if "v3" in target:
        assert "conv_rf_local" in scheduled(program, target).mod.script()
