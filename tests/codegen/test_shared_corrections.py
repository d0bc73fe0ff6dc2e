"""Sums of bytes with signs: what the instruction adds too much is the same for all rows, taken away at the end."""

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import te

TARGET = "llvm -mcpu=znver4 -num-cores=1"


def product(n, m, k, left="int8"):
    a, b, r = te.placeholder((n, k), left, name="A"), te.placeholder((k, m), "int8", name="B"), te.reduce_axis((0, k))
    term = lambda i, j: a[i, r].astype("int32") * b[r, j].astype("int32")  # noqa: E731
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(term(i, j), axis=[r]), name="C")])


def inner_loop(assembly):
    """The instructions of the loop with the most steps of the sums."""
    loops = re.split(r"^\.LBB\d+_\d+:", assembly, flags=re.MULTILINE)
    return max(loops, key=lambda text: text.count("vpdpbusd")).split("\tjne")[0]


@pytest.mark.parametrize("columns", [32, 64, 100])
def test_a_step_of_a_tile_has_one_correction_for_each_vector_of_columns(columns):
    loop = inner_loop(tw.compile(product(32, columns, 256), TARGET, schedule="by rules").inspect("asm"))
    assert "vpsubd" not in loop and "(%rsp)" not in loop
    sums = re.findall(r"vpdpbusd\t.*(%zmm\d+)$", loop, flags=re.MULTILINE)
    assert len(sums) == len(set(sums)) >= 9


@pytest.mark.parametrize("shape", [(32, 64, 256), (33, 48, 100), (8, 16, 4), (13, 100, 41)])
def test_sums_are_exact_at_the_ends_of_bytes(shape):
    n, m, k = shape
    kernel = tw.compile(product(n, m, k), "native", schedule="by rules")
    rng = np.random.default_rng(0)
    for a in (np.full((n, k), -128), np.full((n, k), 127), rng.integers(-128, 128, (n, k))):
        for b in (np.full((k, m), -128), np.full((k, m), 127), rng.integers(-128, 128, (k, m))):
            np.testing.assert_array_equal(kernel(a.astype("int8"), b.astype("int8")), a @ b)
