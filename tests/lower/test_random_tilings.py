"""Random tilings of a product with packed operands and local accumulators, through every pass and as machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.samples import samples

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source

PASSES = [name for name, _ in _core.list_passes()]


@dataclass
class Tiling:
    """C = A @ B with tiles of i by j, the reduction in steps of k."""

    shape: tuple[int, int, int]
    tile: tuple[int, int, int]
    order: list[str]  #: of the loops inside a tile
    kinds: dict[str, str]
    outer: str
    scope: str
    pack: bool
    dtype: str

    def steps(self, axis: int) -> int:
        return -(-self.shape[axis] // self.tile[axis])

    def predicate(self, names: str) -> str:
        parts = []
        for name in names:
            axis = "ijk".index(name)
            if self.shape[axis] % self.tile[axis]:
                parts.append(f"{name}0 * {self.tile[axis]} + {name}1 < {self.shape[axis]}")
        return f"T.where({' and '.join(parts)})" if parts else "pass"

    def loops(self, names: list[str], indent: str) -> tuple[str, str]:
        text = ""
        for name in names:
            extent = self.steps("ijk".index(name[0])) if name[1] == "0" else self.tile["ijk".index(name[0])]
            kind = self.kinds.get(name, "serial")
            text += f"{indent}for {name} in T.{kind}({extent}):\n"
            indent += "    "
        return text, indent

    def text(self) -> str:
        m, n, k = self.shape
        ti, tj, tk = self.tile
        wide = "int32" if self.dtype == "int8" else self.dtype
        out = "@T.prim_func\n"
        out += f"def f(A: T.Buffer(({m}, {k}), '{self.dtype}'), B: T.Buffer(({k}, {n}), '{self.dtype}'), "
        out += f"C: T.Buffer(({m}, {n}), '{wide}')):\n    with T.block('root'):\n"
        out += f"        X = T.alloc_buffer(({m}, {n}), '{wide}', scope='{self.scope}')\n"
        out += f"        P = T.alloc_buffer(({k}, {n}), '{self.dtype}')\n"
        out += f"        for i0 in T.{self.outer}({self.steps(0)}):\n            for j0 in range({self.steps(1)}):\n"
        indent = " " * 16
        if self.pack:
            inner = indent + "        "
            out += f"{indent}for k0, j1 in T.grid({k}, {tj}):\n{indent}    with T.block('P'):\n"
            out += f"{inner}{self.predicate('j')}\n{inner}vk = T.axis.spatial({k}, k0)\n"
            out += f"{inner}vj = T.axis.spatial({n}, j0 * {tj} + j1)\n{inner}P[vk, vj] = B[vk, vj]\n"
        text, inner = self.loops(self.order, indent)
        source = "P" if self.pack else "B"
        out += f"{text}{inner}with T.block('X'):\n"
        inner += "    "
        out += f"{inner}{self.predicate('ijk')}\n{inner}vi = T.axis.spatial({m}, i0 * {ti} + i1)\n"
        out += f"{inner}vj = T.axis.spatial({n}, j0 * {tj} + j1)\n{inner}vk = T.axis.reduce({k}, k0 * {tk} + k1)\n"
        out += f"{inner}with T.init():\n{inner}    X[vi, vj] = T.Cast('{wide}', 0)\n"
        out += f"{inner}X[vi, vj] = X[vi, vj] + T.Cast('{wide}', A[vi, vk]) * T.Cast('{wide}', {source}[vk, vj])\n"
        text, inner = self.loops([name for name in self.order if name in ("i1", "j1")], indent)
        out += f"{text}{inner}with T.block('C'):\n"
        inner += "    "
        out += f"{inner}{self.predicate('ij')}\n{inner}vi = T.axis.spatial({m}, i0 * {ti} + i1)\n"
        out += f"{inner}vj = T.axis.spatial({n}, j0 * {tj} + j1)\n{inner}C[vi, vj] = X[vi, vj]\n"
        return out


@st.composite
def tilings(draw: st.DrawFn) -> Tiling:
    size = st.integers(1, 21)
    shape = (draw(size), draw(size), draw(size))
    tile = (draw(st.integers(1, 7)), draw(st.sampled_from([1, 3, 4, 8, 12, 16])), draw(st.integers(1, 6)))
    order = draw(st.permutations(["i1", "j1", "k0", "k1"]))
    if order.index("k0") > order.index("k1"):
        order[order.index("k0")], order[order.index("k1")] = "k1", "k0"
    kinds = {name: draw(st.sampled_from(["serial", "unroll"])) for name in ("i1", "j1", "k1")}
    last = [name for name in order if name in ("i1", "j1")][-1]
    kinds[last] = draw(st.sampled_from(["serial", "unroll", "vectorized", "vectorized"]))
    if order[-1] in ("k0", "k1") and kinds[last] == "vectorized":
        kinds[last] = "unroll"
    return Tiling(
        shape=shape,
        tile=tile,
        order=order,
        kinds=kinds,
        outer=draw(st.sampled_from(["serial", "parallel"])),
        scope=draw(st.sampled_from(["global", "local"])),
        pack=draw(st.booleans()),
        dtype=draw(st.sampled_from(["float32", "float64", "int32", "int8", "float16"])),
    )


def arguments(tiling: Tiling, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    random = np.random.default_rng(seed)
    m, n, k = tiling.shape
    a = random.integers(-3, 4, (m, k)).astype(tiling.dtype)
    b = random.integers(-3, 4, (k, n)).astype(tiling.dtype)
    wide = "int32" if tiling.dtype == "int8" else tiling.dtype
    return [a, b, np.full((m, n), 77, wide)], a.astype(wide) @ b.astype(wide)


COMMON: Any = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=samples(25), **COMMON)
@given(tilings(), st.integers(0, 2**31))
def test_machine_code(tiling: Tiling, seed: int) -> None:
    args, expected = arguments(tiling, seed)
    kernel = tw.compile(from_source(tiling.text()))
    kernel(*args)
    np.testing.assert_array_equal(args[2], expected)


@settings(max_examples=samples(20), **COMMON)
@given(tilings(), st.integers(0, 2**31), st.sampled_from(PASSES))
def test_every_pass_keeps_the_meaning(tiling: Tiling, seed: int, name: str) -> None:
    args, expected = arguments(tiling, seed)
    lowered = tw.lower(from_source(tiling.text()), after=name)
    _core.interpret(lowered, "f", *args)
    np.testing.assert_array_equal(args[2], expected)
