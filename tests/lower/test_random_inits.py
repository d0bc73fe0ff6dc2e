"""Random reductions: where the init runs, in the interpreter, after lowering, decomposed and as machine code.

Axes are bound to anything that stays in their domains: tiles, mirrored, shifted, wrapped and repeated steps, with
predicates, empty loops, symbolic extents, conditions and other blocks around. The interpreter says what is meant: the
init runs where all reduction axes are at the beginnings of their domains. Reductions that it may skip are refused
(tests/analysis/test_skipped_init.py).
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
        inside, place = self.random.random(), self.random.randrange(len(self.loops))
        for number, (name, extent, _) in enumerate(self.loops):
            if number == place and inside < 0.15:
                out += f"{indent}if {self.loops[number - 1][0] if number else 'n'} != 1:\n"
                indent += "    "
            if number == place and 0.15 < inside < 0.3:
                out += f"{indent}with T.block('host'):\n{indent}    X = T.alloc_buffer((4,), 'int32')\n"
                indent += "    "
            out += f"{indent}for {name} in range({extent}):\n"
            indent += "    "
        if 0.3 < inside < 0.4:
            out += f"{indent}with T.block('other'):\n{indent}    vo = T.axis.opaque(16, {self.loops[0][0]})\n"
            target = self.random.choice(["C[vo, 0]", "D[vo]"])
            out += f"{indent}    {target} = {target} + 1\n"
        out += f"{indent}with T.block('C'):\n"
        indent += "    "
        for name, kind, start, extent, value in self.axes:
            method = "spatial" if kind == "S" else "reduce"
            out += f"{indent}v{name} = T.axis.{method}(({start}, {start + extent}), {value})\n"
        if self.conditions:
            out += f"{indent}T.where({' and '.join(self.conditions)})\n"
        column = self.random.choice(["0", "0", "0", "vi % 2"])
        row = "vi // 2" if column != "0" and self.random.random() < 0.5 else "vi"
        start = self.random.choice(["100", "100", "D[vi]", "vi"])
        if self.random.random() < 0.2:  # regions may speak of reduction axes, which the init does not have
            out += f"{indent}T.reads(C[0:16, 0:2], D[0:16])\n"
            other = self.random.choice(["v" + self.axes[1][0], self.axes[1][4]])
            out += f"{indent}T.writes(C[T.max({row} - ({other}), 0) : {row} + 1, 0:2])\n"
        steps = " + ".join(f"v{name} * {3 + 4 * number}" for number, (name, *_) in enumerate(self.axes[1:]))
        out += f"{indent}with T.init():\n{indent}    C[{row}, {column}] = {start}\n"
        return out + f"{indent}C[{row}, {column}] = C[{row}, {column}] * 3 + {steps} + 1\n"

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
    hoisted = decomposed = refused = 0
    for seed in seeds(part, 30):
        program = Program(seed)
        module = from_source(program.text())
        try:
            before = tw.lower(module, after="lower_prefetches")
        except tw.Error as error:
            assert error.code == "verify/init-skipped"
            refused += 1
            continue
        expected = outcome(partial(_core.interpret, before, "f"), program)
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
    # The test would say nothing if everything stayed where it was.
    assert hoisted > 8 and decomposed > 3 and refused < 30
