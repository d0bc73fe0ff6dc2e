"""Contractions of numbers that are narrower than the floats they are summed up in."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.heuristics.cpu.programs import scheduled

import tilewright as tw
from tilewright import te

TARGETS = ["native -num-cores=1", "llvm -mcpu=x86-64-v3 -num-cores=3", "llvm -mcpu=x86-64-v2"]
TYPES = [
    *(("float16", "float32"), ("bfloat16", "float32"), ("int8", "float32"), ("uint16", "float32")),
    *(("float32", "float64"), ("float16", "float64"), ("int32", "float64"), ("bool", "float32")),
]


def product(n, m, k, dtype, total, turned=False, after=False):
    a = te.placeholder((n, k), dtype, name="A")
    b = te.placeholder((m, k) if turned else (k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    right = (lambda j: b[j, r]) if turned else (lambda j: b[r, j])
    term = lambda i, j: a[i, r].astype(total) * right(j).astype(total)  # noqa: E731
    if after:  # products are rounded before they are summed up
        term = lambda i, j: (a[i, r] * right(j)).astype(total)  # noqa: E731
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(term(i, j), axis=[r]), name="C")])


SHAPES = [(64, 64, 64), (50, 131, 77), (97, 48, 200)]


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("types", TYPES, ids=" to ".join)
@pytest.mark.parametrize("turned", [False, True])
def test_elements_are_converted_once(types, shape, turned):
    """Each type meets each target, and each shape does; one target for each pair of the two."""
    target = TARGETS[(shape + TYPES.index(types) + turned) % len(TARGETS)]
    n, m, k = SHAPES[shape]
    dtype, total = types
    rng = np.random.default_rng(n)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    a = rng.integers(0, 2 if dtype == "bool" else 9, (n, k)).astype(kind)
    b = rng.integers(0, 2 if dtype == "bool" else 9, (m, k) if turned else (k, m)).astype(kind)
    c = np.zeros((n, m), total)
    kernel = tw.compile(product(n, m, k, dtype, total, turned), target, schedule="by rules")
    kernel(a, b, c)
    wanted = a.astype(total) @ (b.T if turned else b).astype(total)
    np.testing.assert_array_equal(c, wanted)  # small integers: sums are exact
    assert not {note.code for note in kernel.notes} & {"lower/not-in-registers", "lower/unproved-parallel"}


@pytest.mark.parametrize("target", TARGETS[1:])
def test_copies_are_as_wide_as_sums(target):
    for dtype, total in [("float16", "float32"), ("float32", "float64")]:
        steps = tw.compile(product(64, 64, 64, dtype, total), target, schedule="by rules").inspect("schedule")
        assert steps.count(f'"{total}")') == 2
    stated = scheduled(product(64, 64, 64, "float16", "float32"), target).trace.stated
    assert not [said for said in stated.values() if "lose nothing" in said]  # proved: no number changes


@pytest.mark.parametrize(
    "program",
    [
        product(8, 64, 64, "float16", "float32"),
        product(64, 64, 64, "float32", "float32"),
        product(64, 64, 64, "float16", "float32", after=True),
        product(64, 64, 64, "int32", "float32"),
    ],
    ids=["few rows", "as wide", "converted later", "not all numbers"],
)
def test_others_stay_as_narrow(program):
    assert "unsafe_set_dtype" not in str(scheduled(program, TARGETS[1]).trace)
