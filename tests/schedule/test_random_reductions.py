"""Random schedules of reductions over open sizes: what primitives accept is accepted by the compiler, and is right.

Elements may be counted from the end, conditions may leave steps of the reduction out, and axes may have no iterations.
Loops are split, fused, tiled and moved, so that one loop drives axes of both kinds. After all of these steps the init
still has to be proved to run first. The values come from Python.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright.script import from_source

SIZES = ((5, 7), (1, 3), (8, 1), (4, 0), (0, 5), (11, 9))
EXTENTS = ("n", "n", "m", "m", "n", "m", "4", "7", "12", "1", "0")
#: Conditions that hold in the first step wherever they hold in any: i and j are elements, k and l steps.
CONDITIONS = (
    *("k <= i", "k < i + 3", "k <= i + j", "k + l <= i", "i < 5", "k < 6", "k * 2 <= i + 1", "j + k < n + 2"),
    *("k <= i and i < 5", "k % 2 <= i % 2", "k == 0 or k > i", "l <= j and k <= i", "i + j < 9", "k * m <= i"),
)
BINDINGS = ("{v}", "{v}", "{v}", "{e} - 1 - {v}", "{e} - {v} - 1")


class Program:
    """t[i, j] from A[i, k] and B[l], and C from t."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.elements = ["i", "j"][: rng.choice([1, 1, 2])]
        self.steps = ["k", "l"][: rng.choice([1, 1, 1, 2])]
        self.extents = {name: rng.choice(EXTENTS) for name in (*self.elements, *self.steps)}
        self.bound = {
            name: rng.choice(BINDINGS).format(v=name, e=self.extents[name]) if name in self.elements else name
            for name in self.extents
        }
        usable = [c for c in CONDITIONS if all(name in self.extents for name in "ijkl" if name in c)]
        self.condition = rng.choice([*usable, "", ""]) if rng.random() < 0.6 else ""
        self.order = list(self.extents)
        if rng.random() < 0.3:
            rng.shuffle(self.order)
        self.shape = f"({', '.join(self.extents[name] for name in self.elements)},)"
        self.at = ", ".join(f"v{name}" for name in self.elements)
        self.value = " + ".join([f"P[{self.extents['i']} - 1 - vi, vk]", *(["B[vl]"] if "l" in self.steps else [])])
        self.value = rng.choice([self.value, self.value.replace(f"{self.extents['i']} - 1 - vi", "vi")])

    def text(self) -> str:
        i, k = self.extents["i"], self.extents["k"]
        lines = [
            "@T.prim_func",
            "def main(a: T.handle, b: T.handle, c: T.handle, z: T.handle):",
            "    n, m = T.int32(), T.int32()",
            f'    A = T.match_buffer(a, ({i}, {k}), "int32")',
            f'    B = T.match_buffer(b, ({self.extents.get("l", "m")},), "int32")',
            f'    C = T.match_buffer(c, {self.shape}, "int32")',
            '    Z = T.match_buffer(z, (n, m), "int32")',
            f'    P = T.alloc_buffer(({i}, {k}), "int32")',
            f'    t = T.alloc_buffer({self.shape}, "int32")',
            f"    for i, k in T.grid({i}, {k}):",
            '        with T.block("P"):',
            '            vi, vk = T.axis.remap("SS", [i, k])',
            "            P[vi, vk] = A[vi, vk] * 3 + 1",
            f"    for {', '.join(self.order)} in {self.grid(self.order)}:",
            '        with T.block("S"):',
        ]
        for name in (*self.elements, *self.steps):
            kind = "spatial" if name in self.elements else "reduce"
            lines.append(f"            v{name} = T.axis.{kind}({self.extents[name]}, {self.bound[name]})")
        lines += [f"            T.where({self.condition})"] if self.condition else []
        lines += [
            "            with T.init():",
            f"                t[{self.at}] = 5",
            f"            t[{self.at}] = t[{self.at}] + {self.value}",
            f"    for {', '.join(self.elements)} in {self.grid(self.elements)}:",
            '        with T.block("R"):',
        ]
        for name in self.elements:
            lines.append(f"            v{name} = T.axis.spatial({self.extents[name]}, {name})")
        # What no step has reached is not read.
        return "\n".join([*lines, f"            C[{self.at}] = {self.seen()}"]) + "\n"

    def grid(self, names: list[str]) -> str:
        extents = ", ".join(self.extents[name] for name in names)
        return f"T.grid({extents})" if len(names) > 1 else f"range({extents})"

    def seen(self) -> str:
        """What R makes of an element: a number that says nothing of t where no step runs."""
        return f"T.if_then_else(({self.reached()}) and ({self.runs()}), t[{self.at}] + 1, 7)"

    def runs(self) -> str:
        return " and ".join(f"0 < {self.extents[name]}" for name in self.steps)

    def reached(self) -> str:
        """The condition in the first step of an element, in terms of axes."""
        condition = self.condition or "True"
        for name in self.extents:
            first = "0" if name in self.steps else f"({self.inverse(name)})"
            condition = "".join(first if part == name else part for part in split_names(condition))
        return condition

    def inverse(self, name: str) -> str:
        """A loop in terms of its axis: mirroring is its own inverse."""
        return "".join(f"v{name}" if part == name else part for part in split_names(self.bound[name]))

    def shapes(self, n: int, m: int) -> list[tuple[int, ...]]:
        at = {name: eval(extent, {"n": n, "m": m}) for name, extent in self.extents.items()}
        return [(at["i"], at["k"]), (at.get("l", m),), tuple(at[name] for name in self.elements), (n, m)]

    def expected(self, n: int, m: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        known: dict[str, Any] = {"n": n, "m": m, "P": a * 3 + 1, "B": b}
        out = np.full(self.shapes(n, m)[2], 7, "int32")
        extents = [range(eval(self.extents[name], known)) for name in (*self.elements, *self.steps)]
        runs, bound, value = (
            compile(text, "program", "eval")
            for text in (self.condition or "True", f"({', '.join(self.bound.values())},)", self.value)
        )
        axes = [f"v{name}" for name in self.bound]
        for point in itertools.product(*extents):
            known |= dict(zip((*self.elements, *self.steps), point, strict=True))
            if not eval(runs, known):
                continue
            known |= dict(zip(axes, eval(bound, known), strict=True))
            element = tuple(known[f"v{name}"] for name in self.elements)
            if all(known[name] == 0 for name in self.steps):
                out[element] = 6
            out[element] += eval(value, known)
        return out


def split_names(text: str) -> list[str]:
    parts, word = [], ""
    for c in text:
        if c.isalnum():
            word += c
            continue
        parts += [word, c]
        word = ""
    return [*parts, word]


def step(rng: random.Random, sch: Any) -> str:
    """One random step, and what it was."""
    block = rng.choice(["S", "S", "S", "S", "R", "P"])
    loops = sch.get_loops(block)
    if not loops:
        return "none"
    number = rng.randrange(len(loops))
    at = min(number + 1, len(loops) - 1)
    factors = rng.choice([[None, 4], [None, 8], [2, None], [None, 3, 2], [None, 1]])
    kind = rng.choice(["split"] * 4 + ["fuse"] * 5 + ["reorder"] * 2 + ["tile"] * 2 + ["unit"] * 2 + list(OTHERS))
    if kind == "split":
        sch.split(loops[number], factors)
    elif kind == "unit":  # a condition leaves one iteration of the last loop
        sch.split(sch.split(loops[number], [None, 1])[1], [None, rng.choice([2, 4])])
    elif kind == "fuse" and at > number:
        sch.fuse(loops[number], loops[at])
    elif kind == "reorder":
        sch.reorder(*rng.sample(loops, min(2, len(loops))))
    elif kind == "tile" and at > number:
        x, y = sch.split(loops[number], [None, 4]), sch.split(loops[at], [None, 2])
        sch.reorder(x[0], y[0], x[1], y[1])
        sch.fuse(x[0], y[0])
    elif kind in OTHERS:
        OTHERS[kind](sch, block, loops[number], rng)
    return kind


OTHERS = {
    "compute_at": lambda sch, _, loop, rng: sch.compute_at("P", rng.choice(sch.get_loops("S"))),
    "reverse_compute_at": lambda sch, _, loop, rng: sch.reverse_compute_at("R", rng.choice(sch.get_loops("S"))),
    "sum_at": lambda sch, _, loop, rng: sch.compute_at("S", rng.choice(sch.get_loops("R"))),
    "cache_write": lambda sch, block, loop, rng: sch.cache_write("S", 0, "global"),
    "decompose_reduction": lambda sch, block, loop, rng: sch.decompose_reduction("S", rng.choice(sch.get_loops("S"))),
    "rfactor": lambda sch, block, loop, rng: sch.rfactor(rng.choice(sch.get_loops("S")), 0),
    "parallel": lambda sch, block, loop, rng: sch.parallel(loop),
    "vectorize": lambda sch, block, loop, rng: sch.vectorize(loop),
    "unroll": lambda sch, block, loop, rng: sch.unroll(loop),
    "blockize": lambda sch, block, loop, rng: sch.blockize(loop, inner_init=rng.random() < 0.5),
    "inline": lambda sch, block, loop, rng: sch.compute_inline("P"),
}


def agrees(program: Program, sch: Any, target: str, what: str) -> None:
    try:
        kernel = tw.compile(sch, target, schedule="as written")
    except tw.Error as error:
        raise AssertionError(f"{what}: {error}\n{sch.mod.script()}") from error
    for n, m in SIZES:
        generator = np.random.default_rng(n * 100 + m)
        a, b, out, z = (generator.integers(-9, 9, shape).astype("int32") for shape in program.shapes(n, m))
        kernel(a, b, out, z)
        expected = program.expected(n, m, a, b)
        np.testing.assert_array_equal(out, expected, err_msg=f"{what} {n} {m}\n{sch.mod.script()}")


@pytest.mark.parametrize("part", range(4))
def test_random_reductions_of_open_sizes(part: int) -> None:
    taken: Counter[str] = Counter()
    for seed in seeds(part, 25):
        program = Program(seed)
        function = from_source(program.text())
        for number in range(3):
            rng = random.Random(f"{seed} {number}")
            sch = tw.Schedule(function)
            trail = []
            for _ in range(rng.choice([0, 1, 2, 3, 4, 6])):
                try:
                    trail.append(step(rng, sch))
                except tw.ScheduleError:
                    continue
            taken.update(trail)
            what = f"seed {seed} {number}: {trail}"
            agrees(program, sch, "interpreter", what)
            if number == 2:
                agrees(program, sch, "llvm", what)
    assert taken["fuse"] > 15 and taken["split"] > 20 and sum(taken[name] for name in OTHERS) > 15
