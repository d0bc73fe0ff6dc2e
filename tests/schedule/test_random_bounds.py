"""Random programs whose bounds read data that the programs change: steps keep what plain Python computes, or refuse."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright.script import from_source

SHAPES = {"D": (16,), "X": (4, 8), "Y": (4, 8), "N": (4,), "R": (4,), "E": (4,)}
CHANGES = ("N[{}] = (N[{}] * 2 + 1) % 5", "N[{}] = 3", "N[{}] = T.max(N[{}] - 1, 0)", "N[{}] = 4 - N[{}]")
EXTENTS = ("N[0]", "N[i]", "N[1]", "N[0] + 1", "T.min(N[i], 3)", "4")


class Program:
    """The text of a program, and that of the same loops in Python."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.script, self.python = rng, "", ""
        self.blocks: list[str] = []
        self.rate = rng.choice([0, 0.15, 0.15, 0.3])  # of changes
        self.extent = rng.choice(EXTENTS)  # that most loops share
        self.nest("t", f"X[vi, vj] = D[vi + vj] + {rng.randint(1, 5)}")
        if rng.random() < 0.8:
            self.nest("c", rng.choice(["Y[vi, vj] = X[vi, vj] * 2", "Y[vi, vj] = X[3 - vi, vj] + N[vi]"]))
        if rng.random() < 0.7:
            step = rng.choice(["R[vi] = R[vi] + Y[vi, vj]", "R[vi] = R[vi] + X[vi, vj]"])
            self.nest("s", step, rng.choice(["R[vi] = 0", "R[vi] = 0", None]))
        if rng.random() < 0.4:
            self.line(1, f"for x in range({rng.choice(['4', 'N[0]', 'N[3]'])}):")
            self.begin(2, "e")
            self.line(3, "vx = T.axis.spatial(4, x)", "vx = x")
            self.line(3, "E[vx] = " + rng.choice(["R[vx] * 2", "N[vx] + 1", "X[vx, 0]"]))
        own = [name for name in "XYR" if rng.random() < 0.5]
        self.parameters = [name for name in SHAPES if name not in own]
        head = ", ".join(f"{name}: T.Buffer({SHAPES[name]}, 'int32')" for name in self.parameters)
        allocated = "".join(f"    {name} = T.alloc_buffer({SHAPES[name]}, 'int32')\n" for name in own)
        self.script = f"@T.prim_func\ndef main({head}):\n{allocated}{self.script}"
        self.python = f"def main({', '.join(SHAPES)}):\n{self.python}"

    def line(self, depth: int, text: str, python: str | None = None) -> None:
        self.script += "    " * depth + text + "\n"
        plain = (text if python is None else python).replace("T.max(", "max(").replace("T.min(", "min(")
        self.python += "    " * depth + plain + "\n"

    def begin(self, depth: int, name: str) -> None:
        self.blocks.append(name)
        self.line(depth, f'with T.block("{name}"):', "if True:")

    def change(self, depth: int) -> None:
        """Perhaps something that changes N, a statement or a block."""
        if self.rng.random() >= self.rate:
            return
        at = self.rng.choice(["0", "1", "i"] if depth > 1 else ["0", "1"])
        text = self.rng.choice(CHANGES).format(at, at)
        if self.rng.random() < 0.4:
            self.line(depth, text)
            return
        self.begin(depth, f"u{len(self.blocks)}")
        if depth > 1 and self.rng.random() < 0.7:
            self.line(depth + 1, "vi = T.axis.spatial(4, i)", "vi = i")
            text = text.replace("[i]", "[vi]")
        self.line(depth + 1, "T.reads(N[0:4])", "pass")
        self.line(depth + 1, "T.writes(N[0:4])", "pass")
        self.line(depth + 1, text)

    def nest(self, name: str, step: str, init: str | None = None) -> None:
        extent = self.extent if self.rng.random() < 0.75 else self.rng.choice(["4", "N[0]", "N[i]"])
        domain = self.rng.choice(["8", "8", extent if "i" not in extent else "8"])
        self.change(1)
        self.line(1, "for i in range(4):")
        self.change(2)
        self.line(2, f"for j in range({extent}):")
        self.begin(3, name)
        self.line(4, "vi = T.axis.spatial(4, i)", "vi = i")
        self.line(4, f"vj = T.axis.{'reduce' if name == 's' else 'spatial'}({domain}, j)", "vj = j")
        if init:
            self.line(4, "with T.init():", "if vj == 0:")
            self.line(5, init)
        self.line(4, step)
        self.change(3)
        self.change(2)


def step(rng: random.Random, sch: Any, names: list[str]) -> tuple[str, Callable[[], Any]]:
    name, other, position = rng.choice(names), rng.choice(names), rng.choice([0, 0, 1])
    loops = sch.get_loops(name)
    loop, to = rng.choice(loops), rng.choice(sch.get_loops(other))
    steps: dict[str, Callable[[], Any]] = {
        "blockize": lambda: sch.blockize(loop),
        "cache_index": lambda: sch.cache_index(name, "local"),
        "cache_inplace": lambda: sch.cache_inplace(name, position, "local"),
        "cache_read": lambda: sch.cache_read(name, position, "local"),
        "cache_write": lambda: sch.cache_write(name, position, "local"),
        "compute_at": lambda: sch.compute_at(name, to),
        "compute_inline": lambda: sch.compute_inline(name),
        "decompose_reduction": lambda: sch.decompose_reduction(name, loop),
        "fuse": lambda: sch.fuse(*loops[:2]),
        "loop_partition": lambda: sch.loop_partition(loop, [1, None]),
        "parallel": lambda: sch.parallel(loop),
        "read_at": lambda: sch.read_at(loop, name, position, "global"),
        "reindex": lambda: sch.reindex(name, (rng.choice(["read", "write"]), position)),
        "reorder": lambda: sch.reorder(*reversed(loops)),
        "reverse_compute_at": lambda: sch.reverse_compute_at(name, to),
        "reverse_compute_inline": lambda: sch.reverse_compute_inline(name),
        "rfactor": lambda: sch.rfactor(loop, 0),
        "split": lambda: sch.split(loop, [None, 2]),
        "unroll": lambda: sch.unroll(loop),
        "vectorize": lambda: sch.vectorize(loop),
        "write_at": lambda: sch.write_at(loop, name, position, "global"),
    }
    return rng.choice([*steps.items()])


def run(program: Any, target: str, names: list[str], given: dict[str, np.ndarray]) -> list[np.ndarray]:
    arrays = [given[name].copy() for name in names]
    tw.compile(program, target, schedule="as written")(*arrays)
    return arrays


def examine(seed: int, accepted: Counter[str]) -> None:
    rng = random.Random(seed)
    program = Program(rng)
    given = {name: np.array(rng.choices(range(5), k=int(np.prod(s))), "int32").reshape(s) for name, s in SHAPES.items()}
    scope: dict[str, Any] = {}
    exec(program.python, scope)
    wanted = {name: array.copy() for name, array in given.items()}
    try:
        scope["main"](**wanted)
        original = from_source(program.script)
        run(original, "interpreter", program.parameters, given)
    except (IndexError, tw.Error):  # it goes out of bounds, or reads what nothing has written
        return
    schedules: list[tuple[Any, str, Any]] = [(original, target, "") for target in ("interpreter", "native")]
    for _ in range(8):
        sch = tw.Schedule(original)
        for _ in range(rng.randint(1, 8)):
            try:
                name, do = step(rng, sch, program.blocks)
                do()
            except (tw.ScheduleError, ValueError, IndexError):  # a loop or block that another step has taken away
                continue
            accepted[name] += 1
        schedules.append((sch, rng.choice(["interpreter", "interpreter", "native"]), sch.trace))
    for scheduled, target, trace in schedules:
        about = f"seed {seed}, {target}\n{program.script}\n{trace}"
        try:
            results = run(scheduled, target, program.parameters, given)
        except tw.Error as error:
            # The compiler does not prove that a sum without an init has a value where loops may have no iterations.
            assert error.code == "lower/no-first-value", f"{error}\n{about}"
            continue
        for name, result in zip(program.parameters, results, strict=True):
            np.testing.assert_array_equal(result, wanted[name], err_msg=f"{name}, {about}")


@pytest.mark.parametrize("part", range(2))
@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
def test_bounds_that_the_program_changes(part: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in seeds(part, 40):
        examine(seed, accepted)
    assert len(accepted) > 12 and accepted.total() > 100, accepted
