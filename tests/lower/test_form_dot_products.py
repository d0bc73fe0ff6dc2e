"""Partial sums of products of bytes, which a target adds four at a time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

TARGETS = ["native", "llvm -mcpu=icelake-server", "llvm -mcpu=alderlake", "llvm -mcpu=x86-64-v3"]

SOURCE = """
@T.prim_func
def f(A: T.Buffer(({rows}, {length}), "{a}"), B: T.Buffer(({columns}, {length}), "{b}"),
      C: T.Buffer(({rows}, {columns}), "{c}")):
    T.func_attr({{"global_symbol": "f"}})
    for i, j_0 in T.grid({rows}, {columns} // {tile}):
        for k_0 in range({outer}):
            for j_1 in T.unroll({tile}):
                for k_1 in T.vectorized({inner}):
                    with T.block("C"):
                        vi = T.axis.spatial({rows}, i)
                        vj = T.axis.spatial({columns}, j_0 * {tile} + j_1)
                        vk = T.axis.reduce({length}, k_0 * {inner} + k_1)
                        T.where(k_0 * {inner} + k_1 < {length})
                        with T.init():
                            C[vi, vj] = T.Cast("{c}", 0)
                        C[vi, vj] = {value}
"""
VALUES = [
    'C[vi, vj] + T.Cast("{c}", A[vi, vk]) * T.Cast("{c}", B[vj, vk])',
    'T.Cast("{c}", B[vj, vk]) * T.Cast("{c}", A[vi, vk]) + C[vi, vj]',
    'C[vi, vj] - T.Cast("{c}", A[vi, vk]) * T.Cast("{c}", B[vj, vk])',
    'C[vi, vj] + (T.Cast("{c}", A[vi, vk]) - T.Cast("{c}", 3)) * T.Cast("{c}", B[vj, vk])',
    'C[vi, vj] + T.Cast("{c}", A[vi, vk]) * T.Cast("{c}", A[vi, vk])',
    'C[vi, vj] + T.Cast("{c}", A[vi, {length} - 1 - vk]) * T.Cast("{c}", B[vj, vk])',
]


def program(**options: Any) -> Any:
    options.setdefault("value", VALUES[0])
    options.setdefault("c", "int32")
    options["value"] = options["value"].format(**options)
    options.setdefault("outer", -(-options["length"] // options["inner"]))
    return from_source(SOURCE.format(**options))


def runs_here(target: str) -> bool:
    return set(tw.Target(target).features) <= set(tw.Target("native").features)


@pytest.mark.parametrize("target", [target for target in TARGETS if runs_here(target)])
@pytest.mark.parametrize("seed", range(6))
def test_sums_are_the_same(target: str, seed: int) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in range(12):
        a, b, c = draw.choice(["int8", "uint8"]), draw.choice(["int8", "uint8"]), draw.choice(["int32"] * 4 + ["int64"])
        tile = draw.choice([1, 2, 4])
        rows, columns, length = (
            draw.randint(1, 3),
            tile * draw.randint(1, 3),
            draw.choice([1, 2, 3, 6, 64, 100, 128, 255, 400]),
        )
        inner = draw.choice([2, 3, 4, 16, 32, 64, 128, length])
        value = draw.choice(VALUES)
        func = program(rows=rows, columns=columns, length=length, inner=inner, a=a, b=b, c=c, tile=tile, value=value)
        # All that bytes can be: what is flipped, and what overflows where the instruction would round.
        x, y = (
            rng.choice([np.iinfo(t).min, np.iinfo(t).max, 0, 1, 7], size).astype(t)
            for t, size in ((a, (rows, length)), (b, (columns, length)))
        )
        want, got = (np.full((rows, columns), 9, c) for _ in range(2))
        tw.compile(func, "interpreter")(x, y, want)
        tw.compile(func, target, schedule="as written")(x, y, got)
        np.testing.assert_array_equal(got, want, err_msg=func.script())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 5, 8])
def test_sums_of_a_few_steps(lanes: int, target: str) -> None:
    """Whatever they add up: only products of bytes are added in groups, and only of whole ones."""
    for a, value in (
        ("int32", "C[vi, vj] + A[vi, vk]"),
        ("int8", VALUES[0]),
        ("int8", 'C[vi, vj] + T.Cast("int32", A[vi, vk])'),
    ):
        func = program(rows=2, columns=2, length=lanes, inner=lanes, a=a, b="int8", tile=1, value=value)
        tw.compile(func, target, schedule="as written")


def assembly(target: str, **options: Any) -> str:
    plain: dict[str, Any] = {"rows": 1, "columns": 4, "length": 256, "inner": 64, "a": "int8", "b": "int8", "tile": 4}
    return tw.compile(program(**(plain | options)), target, schedule="as written").inspect("asm")


@pytest.mark.parametrize("target", TARGETS[1:3])
@pytest.mark.parametrize("length", [256, 250])
def test_targets_with_dot_products_form_them(target: str, length: int) -> None:
    assert "vpdpbusd" in assembly(target, length=length)
    assert "vpdpbusd" in assembly(target, length=length, a="uint8")


@pytest.mark.parametrize(
    "options",
    [
        {"a": "uint8", "b": "uint8"},  # no such instruction
        {"c": "int64"},
        {"value": VALUES[2]},
        {"value": VALUES[3]},
    ],
)
def test_others_stay(options: dict[str, Any]) -> None:
    assert "vpdpbusd" not in assembly(TARGETS[1], **options)


def test_what_has_signs_on_both_sides_is_corrected_once_behind_the_loop() -> None:
    loop = assembly(TARGETS[1], length=4096)
    inside = loop[loop.index("vpdpbusd") : loop.rindex("vpdpbusd")]
    assert "vpsubd" not in inside
