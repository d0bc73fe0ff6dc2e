"""Random reductions: where the init runs, in the interpreter, after lowering, decomposed and as machine code.

Axes are bound to anything that stays in their domains: tiles, mirrored, shifted, wrapped and repeated steps, with
predicates, empty loops, symbolic extents, conditions and other blocks around. Python says what is meant: the init runs
where all reduction axes are at the beginnings of their domains. Reductions in which that is not the first step of each
element are refused (tests/analysis/test_skipped_init.py).
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source


class Program:
    """C[i, j] += A[k] over random loops; `n` is the extent of some of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick = self.random.choice
        self.n = pick([0, 1, 2, 3, 5])
        self.loops: list[tuple[str, str, int]] = []  # variable, its text, its extent
        self.conditions: list[str] = []
        self.axes = [self.axis("i", "S"), self.axis("k", "R")]
        if self.random.random() < 0.4:
            self.axes.append(self.axis("l", "R"))
        if self.random.random() < 0.3:
            self.loops.append(("u", "1", 1))
            name, kind, start, extent, value = self.axes[0]
            self.axes[0] = (name, kind, start, extent, f"{value} + u")
        if self.random.random() < 0.1:
            self.loops.append(("idle", "2", 2))
        self.random.shuffle(self.loops)
        if self.random.random() < 0.3:
            self.conditions.append(f"{pick(self.loops)[0]} != {pick([0, 1, 2])}")
        self.inside, self.place = self.random.random(), self.random.randrange(len(self.loops))
        self.guard = f"{self.loops[self.place - 1][0] if self.place else 'n'} != 1" if self.inside < 0.15 else ""
        self.other = pick(["C[vo, 0]", "D[vo]"]) if 0.3 < self.inside < 0.4 else ""
        self.column = pick(["0", "0", "0", "vi % 2"])
        self.row = "vi // 2" if self.column != "0" and self.random.random() < 0.5 else "vi"
        self.start = pick(["100", "100", "D[vi]", "vi"])
        self.steps = " + ".join(f"v{name} * {3 + 4 * number}" for number, (name, *_) in enumerate(self.axes[1:]))

    def loop(self, name: str, extent: int | None = None) -> tuple[str, int]:
        if extent is None and self.random.random() < 0.2:
            self.loops.append((name, "n", self.n))
            return name, max(self.n, 1)
        extent = extent or self.random.choice([1, 2, 3, 4, 7])
        if self.random.random() < 0.03:
            self.loops.append((name, "0", 0))
        else:
            self.loops.append((name, str(extent), extent))
        return name, extent

    def axis(self, name: str, kind: str) -> tuple[str, str, int, int, str]:
        """Name, kind, start and extent of the domain, the value it is bound to."""
        form = self.random.choice(["plain"] * 4 + ["tiles"] * 4 + ["ragged"] * 2 + ["mirrored", "shifted", "wrapped"])
        if kind == "R" and self.random.random() < 0.15:
            form = "repeated"
        if form in ("tiles", "ragged"):
            outer, many = self.loop(name + "0", self.random.choice([1, 2, 3]))
            inner, width = self.loop(name + "1", self.random.choice([1, 2, 4]))
            extent = many * width
            if form == "ragged" and extent > 1:
                extent -= 1
                self.conditions.append(f"{outer} * {width} + {inner} < {extent}")
            return name, kind, 0, extent, f"{outer} * {width} + {inner}"
        loop, extent = self.loop(name + "0")
        if form == "mirrored":
            return name, kind, 0, extent, f"{extent - 1} - {loop}"
        if form == "shifted":
            start = self.random.choice([0, 2])
            return name, kind, start, extent + 2 - start, f"{loop} + 2"
        if form == "wrapped":
            return name, kind, 0, extent, f"({loop} + {self.random.choice([0, 1, 3])}) % {extent}"
        if form == "repeated":
            return name, kind, 0, extent, f"{loop} // 2"
        return name, kind, 0, extent, loop

    def text(self) -> str:
        out = "@T.prim_func\ndef f(a: T.handle, C: T.Buffer((16, 2), 'int32'), D: T.Buffer((16,), 'int32')):\n"
        out += "    n = T.int32()\n    A = T.match_buffer(a, (16, n), 'int32')\n    with T.block('root'):\n"
        indent = " " * 8
        for number, (name, extent, _) in enumerate(self.loops):
            if number == self.place and self.guard:
                out += f"{indent}if {self.guard}:\n"
                indent += "    "
            if number == self.place and 0.15 < self.inside < 0.3:
                out += f"{indent}with T.block('host'):\n{indent}    X = T.alloc_buffer((4,), 'int32')\n"
                indent += "    "
            out += f"{indent}for {name} in range({extent}):\n"
            indent += "    "
        if self.other:
            out += f"{indent}with T.block('other'):\n{indent}    vo = T.axis.opaque(16, {self.loops[0][0]})\n"
            out += f"{indent}    {self.other} = {self.other} + 1\n"
        out += f"{indent}with T.block('C'):\n"
        indent += "    "
        for name, kind, start, extent, value in self.axes:
            method = "spatial" if kind == "S" else "reduce"
            out += f"{indent}v{name} = T.axis.{method}(({start}, {start + extent}), {value})\n"
        if self.conditions:
            out += f"{indent}T.where({' and '.join(self.conditions)})\n"
        if self.random.random() < 0.2:  # regions may speak of reduction axes, which the init does not have
            out += f"{indent}T.reads(C[0:16, 0:2], D[0:16])\n"
            other = self.random.choice(["v" + self.axes[1][0], self.axes[1][4]])
            out += f"{indent}T.writes(C[T.max({self.row} - ({other}), 0) : {self.row} + 1, 0:2])\n"
        element = f"C[{self.row}, {self.column}]"
        out += f"{indent}with T.init():\n{indent}    {element} = {self.start}\n"
        return out + f"{indent}{element} = {element} * 3 + {self.steps} + 1\n"

    def meaning(self) -> list[np.ndarray] | None:
        """The results; nothing where the init does not come first."""
        c, d = (array.tolist() for array in self.arguments()[1:])
        follows = [any(name in value for *_, value in self.axes[1:]) for name, *_ in self.loops]
        outside = [name for name, *_ in self.loops[: follows.index(True)]]
        begun: set[tuple[int, ...]] = set()

        def step(at: dict[str, int]) -> bool:
            if self.other:
                vo = at[self.loops[0][0]]
                row, column = (c[vo], 0) if self.other.startswith("C") else (d, vo)
                row[column] += 1
            if not all(eval(condition, {}, at) for condition in self.conditions):
                return True
            values = {f"v{name}": eval(value, {}, at) for name, *_, value in self.axes}
            begins = all(values[f"v{name}"] == start for name, _, start, *_ in self.axes[1:])
            element = (values["vi"], *(at[name] for name in outside))
            if not begins and element not in begun:
                return False
            begun.add(element)
            row, column = eval(self.row, {}, values), eval(self.column, {}, values)
            if begins:
                c[row][column] = eval(self.start, {"D": d}, values)
            value = c[row][column] * 3 + eval(self.steps, {}, values) + 1
            c[row][column] = (value + 2**31) % 2**32 - 2**31
            return True

        def walk(depth: int, at: dict[str, int]) -> bool:
            if depth == self.place and self.guard and not eval(self.guard, {}, at):
                return True
            if depth == len(self.loops):
                return step(at)
            name, _, extent = self.loops[depth]
            return all(walk(depth + 1, at | {name: value}) for value in range(extent))

        if not walk(0, {"n": self.n}):
            return None
        return [np.array(array, "int32") for array in (c, d)]

    def arguments(self) -> list[np.ndarray]:
        return [
            np.zeros((16, self.n), "int32"),
            np.arange(1000, 1032, dtype="int32").reshape(16, 2),
            np.arange(500, 516, dtype="int32"),
        ]


def outcome(run: Any, program: Program) -> list[np.ndarray]:
    arguments = program.arguments()
    run(*arguments)
    return arguments[1:]


def agree(expected: list[np.ndarray], got: list[np.ndarray], text: str) -> None:
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=text)


@pytest.mark.parametrize("part", range(4))
def test_inits_keep_their_meaning(part: int) -> None:
    hoisted = decomposed = kept = refused = unproved = 0
    for seed in seeds(part, 60):
        program = Program(seed)
        module = from_source(program.text())
        expected = program.meaning()
        try:
            before = tw.lower(module, after="lower_prefetches")
        except tw.Error as error:
            assert error.code == "verify/init-skipped", module.script()
            is_open = any(extent == "n" for _, extent, _ in program.loops) or "n" in program.guard.split()
            assert expected is None or is_open, f"{seed}\n{error}"
            refused += 1
            unproved += expected is not None
            continue
        assert expected is not None, f"{seed}\n{module.script()}"
        kept += 1
        agree(expected, outcome(partial(_core.interpret, before, "f"), program), module.script())
        lowered = tw.lower(module, after="lower_init_blocks")
        text = module.script() + lowered.script()
        agree(expected, outcome(partial(_core.interpret, lowered, "f"), program), text)
        agree(expected, outcome(tw.compile(module, schedule="as written"), program), text)
        hoisted += "C_init" in lowered.script()
        for number in range(len(tw.Schedule(module).get_loops("C"))):
            sch = tw.Schedule(module)
            try:
                sch.decompose_reduction("C", sch.get_loops("C")[number])
            except tw.ScheduleError:
                continue
            decomposed += 1
            after = sch.mod
            text = module.script() + after.script()
            agree(expected, outcome(partial(_core.interpret, after, "main"), program), text)
            agree(expected, outcome(tw.compile(after, schedule="as written"), program), text)
    # The test would say nothing if everything stayed where it was, or nothing were accepted.
    assert hoisted > 8 and decomposed > 3 and kept > 20 and refused > 4 and unproved < 8
