"""Random loops in which lets name indices that differ between iterations: every stage of lowering, and the kernel,
compute what Python does with the same text."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source

#: least number, end and size of I, A and C
ARRAYS = ((0, 8, 40), (-9, 10, 40), (0, 50, 160))
#: what the first let names, of loops i and j, what the second one names, and indices
NAMED = ("I[i]", "I[i // 2]", "I[3]", "I[j]", "I[(i + j) % 40]", "C[i] % 8")
SECOND = ("x * 2", "x + i", "I[x]", "x // 2 + j")
INDICES = ("i + x", "x", "x * 3 + i", "i // 2 + x", "i + 40", "i", "i * 2 + y", "y + 60", "x * 16 + j")


def source(rng: random.Random) -> str:
    """The text of a function, which is a script and Python alike."""
    text = "def main(I: T.Buffer((40,), 'int32'), A: T.Buffer((40,), 'int32'), C: T.Buffer((160,), 'int32')):\n"
    inside, loops = "    ", rng.sample("ij", 2) if rng.random() < 0.4 else ["i"]
    for name in loops:
        extent = rng.choice([8, 16, 33, 40]) if name == "i" else rng.choice([2, 5, 8])
        text += f"{inside}for {name} in range({extent}):\n"
        inside += "    "

    def pick(texts: tuple[str, ...]) -> str:
        return rng.choice([each for each in texts if "j" in loops or "j" not in each])

    text += f"{inside}x: T.int32 = {pick(NAMED)}\n{inside}y: T.int32 = {pick(SECOND)}\n"
    for _ in range(rng.choice([1, 1, 2])):
        to = pick(INDICES)
        if rng.random() < 0.3:
            text += f"{inside}if {rng.choice(['x < 5', 'i % 3 != 1', 'y > 2'])}:\n    "
        kind = rng.random()
        value = f"C[{to}] + A[i]" if kind < 0.4 else f"(C[{pick(INDICES)}] + A[i]) % 1000" if kind < 0.7 else "A[i] - x"
        text += f"{inside}C[{to}] = {value}\n"
    return text


def examine(seed: int) -> None:
    rng = random.Random(seed)
    text = source(rng)
    given = [np.array(rng.choices(range(low, high), k=size), "int32") for low, high, size in ARRAYS]
    scope: dict[str, Any] = {}
    exec(f"from __future__ import annotations\n{text}", scope)
    wanted = [array.tolist() for array in given]
    scope["main"](*wanted)
    program = from_source(f"@T.prim_func\n{text}")
    for name, module in [("source", tw.Schedule(program).mod), *_core.lower_stages(tw.Schedule(program).mod, "native")]:
        found = [array.copy() for array in given]
        _core.interpret(module, "main", *found)
        np.testing.assert_array_equal(found[2], wanted[2], err_msg=f"seed {seed}, {name}\n{text}\n{module.script()}")
    for options in ({}, {"schedule": "as written"}, {"check_bounds": True}):
        found = [array.copy() for array in given]
        tw.compile(program, **options)(*found)
        np.testing.assert_array_equal(found[2], wanted[2], err_msg=f"seed {seed}, {options}\n{text}")


@pytest.mark.parametrize("part", range(2))
def test_names_of_what_differs_between_iterations(part: int) -> None:
    for seed in seeds(part, 40):
        examine(seed)
