"""Random stages whose results roll along loops of their readers, also along loops that the readers reduce over."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright.script import from_source

WIDTH = 3  # of the second dimension
COMBINE = {
    "{0} + {1}": (0, lambda a, b: a + b),
    "T.min({0}, {1})": (1000, min),
    "T.max({0}, {1})": (-1000, max),
}


class Program:
    """A stage B of the argument A, and a block C that combines neighbors in B over the axes that R stands for."""

    def __init__(self, rng: random.Random) -> None:
        self.length, self.taps = rng.randint(2, 9), rng.randint(1, 3)
        self.reduces = [rng.random() < 0.6, rng.random() < 0.4]  # over rows, over columns
        self.swaps = rng.random() < 0.5  # the order of the block's axes
        self.first = rng.random() < 0.3  # the block also reads a row that is always the same
        self.step = rng.choice(list(COMBINE)) if any(self.reduces) else "{1}"
        rows = self.length + self.taps - 1
        axes = [("vi", self.length, "i", self.reduces[0]), ("vj", WIDTH, "j", self.reduces[1])]
        if self.swaps:
            axes.reverse()
        extents = ", ".join(str(size) for _, size, *_ in axes)
        to = ", ".join(name for name, *_, reduced in sorted(axes) if not reduced) or "0"
        shape = [size for size, reduced in ((self.length, self.reduces[0]), (WIDTH, self.reduces[1])) if not reduced]
        self.shape = tuple(shape or [1])
        reads = [f"B[vi + {tap}, vj]" for tap in range(self.taps)] + (["B[1, vj]"] if self.first else [])
        self.rows = max(rows, 2)
        lines = [
            "@T.prim_func",
            f"def main(A: T.Buffer(({self.rows}, {WIDTH}), 'int32'), C: T.Buffer({self.shape}, 'int32')):",
            f"    B = T.alloc_buffer(({self.rows}, {WIDTH}), 'int32')",
            f"    for i, j in T.grid({self.rows}, {WIDTH}):",
            "        with T.block('B'):",
            "            vi, vj = T.axis.remap('SS', [i, j])",
            "            B[vi, vj] = A[vi, vj] * 2 + 1",
            f"    for {', '.join(loop for *_, loop, _ in axes)} in T.grid({extents}):",
            "        with T.block('C'):",
            *(
                f"            {name} = T.axis.{'reduce' if reduced else 'spatial'}({size}, {loop})"
                for name, size, loop, reduced in axes
            ),
            *(
                ["            with T.init():", f"                C[{to}] = {COMBINE[self.step][0]}"]
                if any(self.reduces)
                else []
            ),
            f"            C[{to}] = " + self.step.format(f"C[{to}]", f"({' + '.join(reads)})"),
        ]
        self.script = "\n".join(lines) + "\n"

    def expected(self, a: Any) -> np.ndarray:
        b = a * 2 + 1
        values = sum(b[tap : tap + self.length] for tap in range(self.taps)) + (b[1] if self.first else 0)
        result = np.full(self.shape, COMBINE[self.step][0] if any(self.reduces) else 0)
        for i in range(self.length):
            for j in range(WIDTH):
                at = tuple(v for v, reduced in zip((i, j), self.reduces, strict=True) if not reduced) or (0,)
                result[at] = COMBINE[self.step][1](result[at], values[i, j]) if any(self.reduces) else values[i, j]
        return result


def schedule(rng: random.Random, func: Any, accepted: Counter[str]) -> Any:
    """Tile, move the stage under one of the loops, let it roll, and go on."""
    sch = tw.Schedule(func)

    def attempt(name: str, *arguments: Any) -> None:
        try:
            getattr(sch, name)(*arguments)
            accepted[name] += 1
        except tw.ScheduleError:
            pass

    for loop in sch.get_loops("C"):
        if rng.random() < 0.7:
            attempt("split", loop, [None, rng.choice([1, 2, 3])])
    attempt("reorder", *rng.sample(loops := sch.get_loops("C"), len(loops)))
    attempt("compute_at", "B", rng.choice(sch.get_loops("C")))
    attempt("rolling_buffer", "B", 0)
    for _ in range(rng.randint(0, 3)):
        names = [sch.get(block).name_hint for block in sch.get_child_blocks("root")]
        reader = "C" if "C" in names else "C_update"
        loops = sch.get_loops(rng.choice(names))
        if not loops:  # of an init
            continue
        name = rng.choice(["reorder", "decompose_reduction", "unroll", "split", "cache_read", "rfactor"])
        arguments = {
            "reorder": rng.sample(loops, len(loops)),
            "decompose_reduction": [reader, rng.choice(loops)],
            "unroll": [rng.choice(loops)],
            "split": [rng.choice(loops), [None, 2]],
            "cache_read": [reader, 0, "local"],
            "rfactor": [rng.choice(loops), 0],
        }[name]
        attempt(name, *arguments)
    return sch


def examine(seed: int, accepted: Counter[str]) -> None:
    rng = random.Random(seed)
    program = Program(rng)
    func = from_source(program.script)
    a = np.array(rng.choices(range(-9, 10), k=program.rows * WIDTH), "int32").reshape(program.rows, WIDTH)
    wanted = program.expected(a)
    for number in range(6):
        sch = schedule(rng, func, accepted)
        for target in ["interpreter", "native"][: 2 if number == 0 else 1]:
            found = np.full(program.shape, 77, "int32")
            about = f"seed {seed}, {target}\n{program.script}\n{sch.trace}"
            try:
                tw.compile(sch, target, schedule="as written")(a.copy(), found)
            except tw.Error as error:
                raise AssertionError(f"{error}\n{about}") from error
            np.testing.assert_array_equal(found, wanted, err_msg=about)


@pytest.mark.parametrize("part", range(2))
@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
def test_what_rolls_computes_the_same(part: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in seeds(part, 40):
        examine(seed, accepted)
    assert accepted["rolling_buffer"] > 20, accepted
