"""Random programs over a few buffers that are written in part, again, in another order, padded and through views.

What a primitive that copies or moves accepts computes the same.
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

SIZE = 8


class Program:
    """Blocks in sequence, some of them in a common loop or nested, over three parameters and two temporary buffers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.blocks: list[tuple[str, str]] = []  # names, with what they write
        self.written = {"A", "B", "C"}
        self.lines: list[str] = []
        self.targets = ["A", "B", "C", "X", "X", "Y"]
        if self.random.random() < 0.5:
            self.chain()
        for _ in range(self.random.choice([2, 3, 3, 4, 5])):
            form = self.random.random()
            if form < 0.2:
                self.nested()
            elif form < 0.4:
                self.lines.append(f"for s in range({SIZE}):")
                for _ in range(2):
                    self.block("s", None, "    ")
            else:
                self.block("i", SIZE, "")
        for name, target in [("X", "D"), ("Y", "E")]:
            if name not in self.written:
                continue
            self.blocks.append((f"last{name}", target))
            self.lines += ["for i in range(2, 7):", f"    with T.block('last{name}'):"]
            self.lines += [f"        v = T.axis.spatial({SIZE}, i)", f"        {target}[v] = {name}[v] * 3"]

    def chain(self) -> None:
        """X, Y and C one from another: what can be moved and inlined."""
        for name, read in [("X", {"A", "B"}), ("Y", {"X"}), ("C", {"X", "Y"})]:
            self.targets = [name]
            written, self.written = self.written, read
            self.block("i", SIZE, "")
            self.written |= written
        self.targets = ["A", "B"]

    def index(self, v: str) -> tuple[str, str]:
        """An index, and the condition under which it is inside."""
        shift = self.random.choice([0, 0, 0, 1, -1, -3])
        if shift == 0:
            return self.random.choice([v, v, v, f"{SIZE - 1} - {v}", f"({v} + 3) % {SIZE}"]), ""
        return f"{v} + {shift}", f"{v} + {shift} >= 0 and {v} + {shift} < {SIZE}"

    def read(self, v: str, names: set[str]) -> str:
        name = self.random.choice(sorted(names))
        at, condition = self.index(v)
        return f"T.if_then_else({condition}, {name}[{at}], 5)" if condition else f"{name}[{at}]"

    def block(self, loop: str, extent: int | None, indent: str) -> None:
        name, target = f"b{len(self.blocks)}", self.random.choice(self.targets)
        low, count = self.random.choice([(0, SIZE)] * 4 + [(0, 5), (2, 4)])
        reduces = self.random.random() < 0.25 and self.written != {target}
        sources = self.written - {target} if reduces else self.written
        value = " + ".join(self.read("v", sources) for _ in range(self.random.choice([1, 2])))
        self.blocks.append((name, target))
        if extent:
            self.lines.append(f"{indent}for {loop} in range({count}):")
            indent += "    "
        self.lines.append(f"{indent}with T.block('{name}'):")
        indent += "    "
        self.lines.append(f"{indent}v = T.axis.spatial({SIZE}, {loop}{f' + {low}' if extent and low else ''})")
        if self.random.random() < 0.1:
            self.lines.append(f"{indent}T.where({loop} != 3)")
        if reduces:
            bound = f"{indent}k = T.axis.reduce(1, 0)"
            self.lines.append(bound)
            self.lines += [f"{indent}with T.init():", f"{indent}    {target}[v] = 1"]
            self.lines.append(f"{indent}{target}[v] = {target}[v] * 2 + {value} + k")
        else:
            self.lines.append(f"{indent}{target}[v] = {value} + {len(self.blocks)}")
        self.written.add(target)

    def nested(self) -> None:
        """A block around two others, padded reads and views inside."""
        number, target = len(self.blocks), self.random.choice(["B", "C", "X", "Y"])
        source = self.random.choice(sorted(self.written - {target}))
        self.blocks += [(f"b{number}", target), (f"b{number + 1}", target)]
        lines = ["for o in range(2):", f"    with T.block('b{number}'):", "        vo = T.axis.spatial(2, o)"]
        if self.random.random() < 0.5:
            lines += [
                f"        T.reads({source}[vo * 4:vo * 4 + 4])",
                f"        T.writes({target}[vo * 4:vo * 4 + 4])",
                f"        V = T.match_buffer({source}[vo * 4:vo * 4 + 4], (4,), 'int32', offset_factor=1)",
                f"        W = T.match_buffer({target}[vo * 4:vo * 4 + 4], (4,), 'int32', offset_factor=1)",
            ]
            value, to = "V[3 - v] * 2", "W[v]"
        else:
            lines += [
                f"        T.reads({source}[vo * 4 - 3:vo * 4 + 7])",
                f"        T.writes({target}[vo * 4:vo * 4 + 4])",
            ]
            shift = self.random.choice([-3, 3])
            at = f"vo * 4 + v + {shift}"
            value, to = f"T.if_then_else({at} >= 0 and {at} < {SIZE}, {source}[{at}], 7)", f"{target}[vo * 4 + v]"
        lines += ["        for i in range(4):", f"            with T.block('b{number + 1}'):"]
        lines += ["                v = T.axis.spatial(4, i)", f"                {to} = {value} + {number}"]
        self.lines += lines
        self.written.add(target)

    def text(self) -> str:
        out = "@T.prim_func\ndef f("
        out += (
            ", ".join(f"{name}: T.Buffer(({SIZE},), 'int32')" for name in "ABCDE") + "):\n    with T.block('root'):\n"
        )
        out += "".join(f"        {name} = T.alloc_buffer(({SIZE},), 'int32')\n" for name in "XY")
        return out + "".join(f"        {line}\n" for line in self.lines)

    def steps(self) -> list[Any]:
        """What may be tried on a schedule."""
        names = [name for name, _ in self.blocks]
        steps: list[Any] = []
        for name in names:
            scope = self.random.choice(["global", "shared", "local"])
            consumer = self.random.choice(names)
            for method in ("cache_read", "cache_write"):
                steps += [partial(copy, method, name, number, scope, consumers=None) for number in range(2)]
                steps.append(partial(copy, method, name, 0, scope, consumers=[consumer]))
            steps += [partial(inline, "compute_inline", name), partial(inline, "reverse_compute_inline", name)]
            for method in ("compute_at", "reverse_compute_at"):
                steps += [partial(move, method, name, target) for target in names if target != name]
        return steps


def copy(method: str, name: str, number: int, scope: str, sch: Any, consumers: list[str] | None) -> None:
    getattr(sch, method)(name, number, scope, consumer_blocks=consumers)


def inline(method: str, name: str, sch: Any) -> None:
    getattr(sch, method)(name)


def move(method: str, name: str, target: str, sch: Any) -> None:
    getattr(sch, method)(name, sch.get_loops(target)[0])


def run(module: Any, name: str) -> list[np.ndarray]:
    buffers = [np.arange(10 * k, 10 * k + SIZE, dtype="int32") for k in (1, 5, 9, 2, 3)]
    if name:
        _core.interpret(module, name, *buffers)
    else:
        tw.compile(module)(*buffers)
    return buffers


def examine(seed: int, accepted: dict[str, int]) -> None:
    program = Program(seed)
    module = from_source(program.text())
    try:
        expected = run(tw.Schedule(module).mod, "main")
    except tw.Error:
        return  # reads what nothing has written
    for step in program.steps():
        sch = tw.Schedule(module)
        try:
            step(sch)
        except tw.ScheduleError:
            continue
        kind = str(sch.trace).strip().splitlines()[-1].split("sch.")[1].split("(")[0]
        accepted[kind] = accepted.get(kind, 0) + 1
        text = f"seed {seed}\n{module.script()}\n{sch.trace}\n{sch.mod.script()}"
        try:
            for after in (run(sch.mod, "main"), run(from_source(sch.mod.script()), "main"), run(sch.mod, "")):
                np.testing.assert_array_equal(after, expected, err_msg=text)
        except tw.Error as error:
            raise AssertionError(f"{error}\n{text}") from error


@pytest.mark.parametrize("part", range(2))
def test_what_is_accepted_computes_the_same(part: int) -> None:
    accepted: dict[str, int] = {}
    for seed in seeds(part, 5):
        examine(seed, accepted)
    assert min(accepted[name] for name in ("cache_read", "cache_write", "reverse_compute_at")) > 2
