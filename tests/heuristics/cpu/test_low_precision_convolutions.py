"""Convolutions of narrow numbers whose channels make no whole groups: three of an image, and others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.heuristics.cpu.programs import check_results, here, scheduled
from tests.samples import samples

import tilewright as tw
from tilewright import ir, te

TARGETS = ["native -num-cores=2", "llvm -mcpu=icelake-server -num-cores=1", "llvm -mcpu=x86-64-v3 -num-cores=1"]
TYPES = [("uint8", "int8", "int32"), ("int8", "int8", "int32"), ("bfloat16", "bfloat16", "float32")]


def convolution(
    size: int,
    channels: int,
    filters: int,
    kernel: int,
    stride: int,
    pad: int,
    types: tuple[str, str, str],
    dilation: int = 1,
    batch: int = 1,
) -> ir.PrimFunc:
    left, right, result = types
    x = te.placeholder((batch, size, size, channels), left, name="X")
    w = te.placeholder((kernel, kernel, channels, filters), right, name="W")
    wide = size + 2 * pad
    out = (wide - dilation * (kernel - 1) - 1) // stride + 1
    padded = te.compute(
        (batch, wide, wide, channels),
        lambda n, h, v, c: te.if_then_else(
            te.all(h >= pad, h < size + pad, v >= pad, v < size + pad), x[n, h - pad, v - pad, c], te.const(0, left)
        ),
        name="padded",
    )
    rh, rw, rc = (te.reduce_axis((0, extent), name=f"r{i}") for i, extent in enumerate((kernel, kernel, channels)))
    y = te.compute(
        (batch, out, out, filters),
        lambda n, h, v, c: te.sum(
            (padded if pad else x)[n, h * stride + rh * dilation, v * stride + rw * dilation, rc].astype(result)
            * w[rh, rw, rc, c].astype(result),
            axis=[rh, rw, rc],
        ),
        name="Y",
    )
    return te.create_prim_func([x, w, y])


def assert_right(program: ir.PrimFunc, target: str, seed: int, best: bool = True) -> None:
    kernel = tw.compile(scheduled(program, here(target), best=best, seed=seed), target=here(target))
    check_results(program, [kernel], seed)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(samples(6)))
def test_random_ones_are_right(seed: int, target: str) -> None:
    rng = np.random.default_rng(seed)
    program = convolution(
        int(rng.integers(5, 14)),
        int(rng.choice([1, 2, 3, 5, 6, 7, 9])),
        int(rng.choice([16, 24, 32, 50, 64])),
        int(rng.integers(1, 5)),
        int(rng.integers(1, 3)),
        int(rng.integers(0, 3)),
        TYPES[seed % 3],
        int(rng.integers(1, 3)) if seed % 5 == 0 else 1,
        int(rng.integers(1, 3)),
    )
    assert_right(program, target, seed, best=bool(seed % 2))


@pytest.mark.parametrize("types", TYPES[:2], ids=lambda types: types[0])
def test_three_channels_are_rounded_up_to_a_group(types: tuple[str, str, str]) -> None:
    """The first layer of a network: the zeros beside its image are made with those behind its channels."""
    sch = scheduled(convolution(32, 3, 64, 7, 2, 3, types), "llvm -mcpu=icelake-server -num-cores=1")
    text = sch.mod.script()
    assert re.search(r"T.call_llvm_pure_intrin\(.*vpdpbusd", text)
    assert "padded = " not in text and "padded_pad" in text


def product(types: tuple[str, str, str], term: Callable[[Any, Any], Any], rows: int = 40) -> ir.PrimFunc:
    a, b = te.placeholder((rows, 96), types[0], name="A"), te.placeholder((96, 64), types[1], name="B")
    k = te.reduce_axis((0, 96), name="k")
    sums = lambda i, j: te.sum(term(a[i, k].astype(types[2]), b[k, j].astype(types[2])), axis=k)  # noqa: E731
    return te.create_prim_func([a, b, te.compute((rows, 64), sums, name="C")])


TERMS: dict[str, Callable[[Any, Any], Any]] = {
    "scaled": lambda a, b: a * 2 * b,
    "of another zero": lambda a, b: (a - 3) * (b - 5),
    "squared": lambda a, b: a * b * b,
    "masked": lambda a, b: te.if_then_else(a > 0, a, te.const(0, a.dtype)) * b,
}


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("types", TYPES, ids=lambda types: types[0])
@pytest.mark.parametrize("target", ["llvm -mcpu=sapphirerapids -num-cores=1", TARGETS[1], TARGETS[2]])
def test_products_with_more_in_them_are_left_to_others(types: tuple[str, str, str], term: str, target: str) -> None:
    """An instruction that multiplies and adds does nothing else: what is begun for it has to be for it."""
    program = product(types, TERMS[term])
    assert_right(program, target, 1)
    kernel = tw.compile(program, here(target), schedule="by rules")
    assert not {note.code for note in kernel.notes} & {"lower/not-in-registers"}
    text = scheduled(program, target).mod.script()
    assert "outer_C" not in text and "call_llvm_pure_intrin" not in text


def test_tiles_of_a_product_that_is_read_twice_go_to_its_memory() -> None:
    a, b = te.placeholder((64, 64), "bfloat16", name="A"), te.placeholder((64, 64), "bfloat16", name="B")
    k, j = te.reduce_axis((0, 64), name="k"), te.reduce_axis((0, 64), name="j")
    wide = lambda x: x.astype("float32")  # noqa: E731
    s = te.compute((64, 64), lambda x, y: te.sum(wide(a[x, k]) * wide(b[k, y]), axis=k), name="S")
    top = te.compute((64,), lambda x: te.max(s[x, j], axis=j), name="top")
    e = te.compute((64, 64), lambda x, y: te.exp(s[x, y] - top[x]), name="E")
    sch = scheduled(te.create_prim_func([a, b, e]), "llvm -mcpu=sapphirerapids -num-cores=1")
    assert "amx_product" in str(sch.trace) and "S_local" not in sch.mod.script()
