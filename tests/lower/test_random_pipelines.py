"""Random software pipelines over data: indices, bounds and conditions that the loop loads, and that its body changes.

The oracle is Python: the same statements, executed one after another on NumPy arrays.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from samples import seeds
from tilewright.script import from_source

LANES, ROWS = 4, 12
SHAPES = {"A": ROWS, "D": ROWS, "N": 2, "X": 10, "B": ROWS}
REFUSED = {"lower/pipeline-order"}


class Writer:
    """A program as lines of a script, and of Python; each lane does the same, to elements of its own."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.lines: list[str] = []
        self.names = 0

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def row(self, k: str, own: list[str]) -> str:
        """A row of X: loaded, shifted, of the iteration."""
        loaded = [f"D[{k}, i]", *[f"{p}[0]" for p in own if p.startswith("p")] * 3]
        return self.draw.choice([*[f"{each} + {self.draw.randint(0, 3)}" for each in loaded], f"{k} % 5", "N[0, i]"])

    def value(self, k: str, own: list[str]) -> str:
        reads = [f"A[{k}, i]", f"X[{self.row(k, own)}, i]", f"X[{self.row(k, own)}, i]", "N[1, i]", f"D[{k} + 1, i]"]
        reads += [f"{each}[0]" for each in own] * 2
        return f"{self.draw.choice(reads)} + {self.draw.choice(reads)} * {self.draw.randint(1, 5)}"

    def statement(self, depth: int, k: str, own: list[str], nested: bool) -> None:
        """One statement of a pipeline, which may be a loop or a pipeline itself."""
        sorts = ["load", "load", "map", "map", "map", "row", "out", "bound", "data", "condition", "sum"]
        sort = self.draw.choice([*sorts, *["nested"] * (3 if nested else 0)])
        if sort == "load":
            own.append(self.name("p"))
            self.add(depth, f"{own[-1]}[0] = D[{k}, i]")
        elif sort == "map":
            value = self.value(k, own)
            own.append(self.name("t"))
            self.add(depth, f"{own[-1]}[0] = {value}")
        elif sort == "row":
            row = self.row(k, own)
            self.add(depth, f"X[{row}, i] = X[{row}, i] + {self.value(k, own)}")
        elif sort == "out":
            self.add(depth, f"B[{k}, i] = B[{k}, i] * 3 + {self.value(k, own)}")
        elif sort == "bound":
            self.add(depth, f"N[{self.draw.randint(0, 1)}, i] = {self.draw.randint(0, 2)}")
        elif sort == "data":
            self.add(depth, f"D[{k} + {self.draw.randint(0, 2)}, i] = {self.draw.randint(0, 5)}")
        elif sort == "condition":
            test = self.draw.choice([f"D[{k}, i] > 2", "N[1, i] < 2", f"{k} > 1", *[f"{each}[0] > 2" for each in own]])
            self.add(depth, f"if {test}:")
            self.add(depth + 1, f"B[{k}, i] = {self.value(k, own)}")
        elif sort == "sum":
            j = self.name("j")
            self.add(depth, f"for {j} in range({self.bound(k)}):")
            if self.draw.random() < 0.5:
                self.add(depth + 1, f"if {j} {self.draw.choice(['<', '>='])} 2:")
                depth += 1
            self.add(depth + 1, f"B[{k}, i] = B[{k}, i] + X[{j} + {self.draw.randint(0, 3)}, i]")
            if self.draw.random() < 0.5:
                self.add(depth + 1, self.draw.choice([f"D[{k}, i] = 1", "N[0, i] = 1"]))
        else:
            self.pipeline(depth, list(own), False)

    def bound(self, k: str) -> str:
        return self.draw.choice([f"D[{k}, i]", "N[0, i]", "3", "n"])

    def pipeline(self, depth: int, around: list[str], nested: bool) -> None:
        """A loop whose body is one block, with stages, mostly such that they may be kept."""
        k, first = self.name("k"), self.draw.choice(["0", "0", "1", "N[1, i]"])
        end = self.draw.choice(["N[0, i]", "N[0, i] + N[1, i]", "n", str(self.draw.randint(0, 6))])
        count = self.draw.randint(2, 4)
        values = sorted(self.draw.choice([0, 0, 1, 2]) for _ in range(count))
        order = list(range(count))
        if self.draw.random() < 0.2:
            self.draw.shuffle(order)
        lists = f'"software_pipeline_stage": {values}, "software_pipeline_order": {order}'
        self.add(depth, f"for {k} in T.serial({first}, T.max({first}, {end}), annotations={{{lists}}}):")
        self.add(depth + 1, f'with T.block("{self.name("body")}"):')
        at, own = len(self.lines), list(around)
        for _ in range(count):
            self.statement(depth + 2, k, own, nested)
        for each in own[len(around) :]:
            scope = self.draw.choice(["local", "local", "global"])
            self.lines.insert(at, "    " * (depth + 2) + f'{each} = T.alloc_buffer((1,), "int32", scope="{scope}")')


def program(seed: int, target: str) -> tuple[str, str]:
    """Return the script and the Python of a random program."""
    writer = Writer(seed)
    writer.pipeline(2 + (target == "opencl"), [], True)
    buffers = ", ".join(f'{name}: T.Buffer(({rows}, {LANES}), "int32")' for name, rows in SHAPES.items())
    lanes = f"for i in range({LANES}):"
    head = [f"def main({buffers}, n: T.int32):"]
    if target == "opencl":
        head += ['    for bx in T.thread_binding(1, thread="blockIdx.x"):']
        head += [f'        for i in T.thread_binding({LANES}, thread="threadIdx.x"):']
    else:
        head += ["    " + lanes]
    script = "\n".join(head + writer.lines).replace('"global"', '"local"' if target == "opencl" else '"global"')
    text = "\n".join([f"def main({', '.join(SHAPES)}, n):", "    if True:", "        " + lanes, *writer.lines])
    if target != "opencl":
        text = "\n".join([f"def main({', '.join(SHAPES)}, n):", "    " + lanes, *writer.lines])
    text = re.sub(r"T\.serial\((.*), annotations=.*\):", r"range(\1):", text).replace("T.max", "max")
    text = re.sub(r"with T\.block\(.*\):", "if True:", text)
    return "@T.prim_func\n" + script, re.sub(r"T\.alloc_buffer\(.*\)", "[0]", text)


def arguments(seed: int) -> list[Any]:
    """Rows of D are indices; N bounds loops."""
    draw = np.random.default_rng(seed)
    arrays = {name: draw.integers(-9, 9, (rows, LANES)).astype("int32") for name, rows in SHAPES.items()}
    arrays["D"] = draw.integers(0, 6, (ROWS, LANES)).astype("int32")
    arrays["N"] = draw.integers(0, [[7], [3]], (2, LANES)).astype("int32")
    return [*arrays.values(), int(draw.integers(0, 7))]


@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_random_pipelines_over_data(target):
    """What is not refused for its order computes what the statements do one after another."""
    found: Counter[str] = Counter()
    for seed in seeds(0, 60 if target == "llvm" else 25):
        script, text = program(seed, target)
        scope: dict[str, Any] = {}
        exec(text, scope)
        given = arguments(seed)
        wanted = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
        with np.errstate(over="ignore"):
            scope["main"](*wanted)
        for name in ("interpreter", target):
            arrays = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
            try:
                tw.compile(from_source(script), target=name)(*arrays)
            except tw.Error as error:
                assert name == target and error.code in REFUSED, f"seed {seed}: {error}"
                found[error.code] += 1
                continue
            found["computed"] += name == target
            for array, right in zip(arrays[:-1], wanted[:-1], strict=True):
                np.testing.assert_array_equal(array, right, err_msg=f"seed {seed}, {name}\n{script}")
    assert found["computed"] > 5, found
