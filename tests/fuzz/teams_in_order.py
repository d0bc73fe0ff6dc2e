"""Kernels of `teams`, executed in Python: one statement after another, each for all threads of a block.

Each statement reads what all earlier ones have written. It has no meaning, and is left out, if its threads meet: one
stores to an element that another one reads or writes in it. Elements of main memory that a block has in common with
others, or its threads without a barrier or the end of a loop over threads in between, may not be written either; atomic
operations of one kind may meet. Indices stay inside of arrays, and what is read has a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

import numpy as np

from fuzz.teams import Barrier, Both, Grid, If, Node, Program, Reduce, Repeat, Store, Team

Names = dict[str, Any]
#: how an element of main memory was used: kernel, block, epoch, whether it was written, kind of atomic operation
Use = tuple[int, tuple[int, ...], int, bool, str]
#: in place of the thread that used it
SEVERAL = (("several threads", 0),)


class Meets(Exception):
    """A statement does not mean the same on all machines."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node


def results(program: Program) -> dict[str, np.ndarray]:
    """Leave out what has no meaning, and return what the arrays hold at the end."""
    extent = program.open_extent
    if extent == 0:  # statements that do not run are in the program too
        program.open_extent = 1
        settled(program)
        program.open_extent = 0
    return settled(program)


def settled(program: Program) -> dict[str, np.ndarray]:
    while True:
        try:
            return Machine(program).run()
        except Meets as found:
            found.node.is_left_out = True


class Machine:
    """The state of one execution."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.memory: dict[str, Any] = {name: array.copy() for name, array in program.given.items()}
        self.uses: dict[tuple[str, int], dict[Use, tuple[tuple[str, int], ...]]] = {}
        self.written = {each.name for each in program.outputs}
        self.codes: dict[str, CodeType] = {}
        self.kernel = self.epoch = 0
        self.block: tuple[int, ...] = ()
        self.node: Node = Node()
        self.loads: list[tuple[str, int]] = []
        self.known: Names = {"load": self.load, "choose": lambda holds, a, b: a if holds else b}

    def run(self) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            self.execute(self.program.kernels, {"n": self.program.open_extent})
        return {name: self.memory[name] for name in self.program.given}

    # ---- expressions

    def evaluate(self, expression: Both, names: Names) -> int:
        text = expression.python
        if text not in self.codes:
            self.codes[text] = compile(text, "expression", "eval")
        return int(eval(self.codes[text], names))

    def load(self, name: str, index: int) -> int:
        values = self.memory[name]
        if not 0 <= index < len(values) or values[index] is None:
            raise Meets(self.node)
        self.loads.append((name, index))
        return int(values[index])

    # ---- statements

    def execute(self, nodes: Iterable[Node], names: Names) -> None:
        for node in nodes:
            if not node.has_statements():
                continue
            self.node = node
            if isinstance(node, Repeat):
                for i in range(node.extent):
                    self.execute(node.body, {**names, node.var: i})
            elif isinstance(node, If):
                if self.evaluate(node.condition, {**names, **self.known}):
                    self.execute(node.body, names)
            elif isinstance(node, Grid):
                self.grid(node, names)
            elif isinstance(node, Team):
                variables = [var for var, _, _ in node.loops]
                points = [dict(zip(variables, at, strict=True)) for at in np.ndindex(*(e for _, _, e in node.loops))]
                self.team(node.body, names, points)
                self.epoch += 1
            elif isinstance(node, Store):
                self.store(node, names, [{}])
                self.epoch += 1
            else:
                self.reduce(node, names)
                self.epoch += 1

    def grid(self, node: Grid, names: Names) -> None:
        self.kernel += 1
        extents = [names["n"] if extent == "n" else extent for _, _, extent in node.loops]
        for at in np.ndindex(*extents):
            self.block = at
            self.epoch += 1
            for array in node.arrays:
                self.memory[array.name] = [None] * array.size
            self.execute(node.body, {**names, **{var: i for (var, _, _), i in zip(node.loops, at, strict=True)}})

    def team(self, nodes: Iterable[Node], names: Names, points: list[Names]) -> None:
        for node in nodes:
            if not node.has_statements():
                continue
            if isinstance(node, Repeat):
                for i in range(node.extent):
                    self.team(node.body, {**names, node.var: i}, points)
            elif isinstance(node, Barrier):
                self.epoch += 1
            else:
                self.store(node, names, points)

    def store(self, node: Node, names: Names, points: list[Names]) -> None:
        """Evaluate the statement for all threads, then store."""
        assert isinstance(node, Store)
        self.node = node
        name, (lane, lanes) = node.array.name, node.lanes
        stores: list[tuple[int, int, int]] = []  # thread, index, value
        readers: dict[tuple[str, int], set[int]] = {}
        for thread, point in enumerate(points):
            self.loads, known = [], {**names, **point, **self.known}
            if node.condition is None or self.evaluate(node.condition, known):
                for known[lane] in range(lanes):
                    value, index = self.evaluate(node.value, known), self.evaluate(node.index, known)
                    if not 0 <= index < node.array.size or (node.atomic and self.memory[name][index] is None):
                        raise Meets(node)
                    stores.append((thread, index, value))
            for element in self.loads:
                readers.setdefault(element, set()).add(thread)
        writers: dict[int, int] = {}
        for thread, index, _ in stores:
            if index in writers and not node.atomic:
                raise Meets(node)
            writers[index] = thread
        for (read, index), threads in readers.items():
            if read == name and index in writers and (node.atomic or threads != {writers[index]}):
                raise Meets(node)
            for thread in threads:
                self.use(read, index, points[thread], "", writes=False)
        for thread, index, value in stores:
            self.use(name, index, points[thread], node.atomic, writes=True)
            before, combine = self.memory[name][index], COMBINE[node.atomic]
            self.memory[name][index] = np.array(combine(before, value)).astype(node.array.dtype)[()]

    def use(self, name: str, index: int, point: Names, atomic: str, *, writes: bool) -> None:
        """Record an access to global memory, and reject it if it races with an earlier one."""
        if name not in self.written:
            return
        who = tuple(sorted(point.items()))
        earlier = self.uses.setdefault((name, index), {})
        for (kernel, block, epoch, has_written, kind), thread in earlier.items():
            if kernel != self.kernel or not (writes or has_written) or (atomic and kind == atomic):
                continue
            if block != self.block or (epoch == self.epoch and thread != who):
                raise Meets(self.node)
        use = (self.kernel, self.block, self.epoch, writes, atomic)
        earlier[use] = who if earlier.get(use, who) == who else SEVERAL

    def reduce(self, node: Node, names: Names) -> None:
        assert isinstance(node, Reduce)
        (vi, rows, _), (vk, length, _) = node.spatial, node.reduced
        own = {node.array.name, *([node.places.name] if node.places else [])}
        found: list[tuple[int, int]] = []  # value, place
        for row in range(rows):
            values = []
            for step in range(length):
                self.loads = []
                values.append(self.evaluate(node.value, {**names, vi: row, vk: step, **self.known}))
                if any(name in own for name, _ in self.loads):
                    raise Meets(node)
                for name, index in self.loads:
                    self.use(name, index, {vi: row, vk: step}, "", writes=False)
            best = {"sum": sum, "min": min}.get(node.operation, max)(values)
            found.append((best, values.index(best) if node.places else 0))
        for row, (value, place) in enumerate(found):
            self.memory[node.array.name][row] = np.array(value).astype(node.array.dtype)[()]
            if node.places:
                self.memory[node.places.name][row] = place


COMBINE: dict[str, Callable[[Any, int], Any]] = {
    "": lambda before, value: value,
    "add": lambda before, value: int(before) + value,
    "min": lambda before, value: min(int(before), value),
    "max": lambda before, value: max(int(before), value),
}
