"""Random sparse programs: axes of every kind below one another, and iterations over them.

The interpreter runs a program by coordinates. What is lowered has to compute the same, interpreted and compiled, and
so has what steps on iterations made of it. Values are small integers, so that sums are exact in any order. Each number
also stands for a random format, and a product over it (format_rules.py).
"""

from __future__ import annotations

import copy
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilewright as tw
from fuzz import format_rules, steps
from fuzz.judge import Finding, has_threads
from tilewright import ir, script
from tilewright.compat.tvm.sparse import lower_sparse_buffer, lower_sparse_iter
from tilewright.task.specialize import specialize


@dataclass
class Axis:
    """An axis, and for each position below all of its parents' the coordinate."""

    name: str
    line: str
    parent: Axis | None
    length: int
    coordinates: list[list[int]]  # below each position of the parent
    is_variable: bool = False
    is_sparse: bool = False
    idtype: str = "int32"
    width: int = 0  # of a fixed axis: how many positions it has below each of its parent's

    @property
    def count(self) -> int:
        return sum(map(len, self.coordinates))

    def path(self) -> list[Axis]:
        return [*(self.parent.path() if self.parent else []), self]


@dataclass
class Tensor:
    """A sparse buffer."""

    name: str
    axes: list[Axis]


@dataclass
class Drawn:
    """A program: its text, and its arguments."""

    text: str
    arguments: list[Any]


@dataclass
class Drawing:
    """A program of one number."""

    number: int
    params: list[str] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    axes: list[Axis] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.number)
        self.values = np.random.default_rng(self.number)
        self.lookups = random.Random(f"lookups of {self.number}")  # of its own, so that older numbers draw the same
        self.more = random.Random(f"repeated coordinates, extra storage and variables of {self.number}")
        self.types = self.rng.choice([["int32"], ["int32"], ["int64"], ["int32", "int64"]])

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def parameter(self, name: str, kind: str, value: Any) -> str:
        self.params.append(f"{name}: T.{kind}")
        self.arguments.append(value)
        return name

    def size(self, number: int) -> str:
        """The number itself, or a scalar parameter."""
        return str(number) if self.chance(0.6) else self.parameter(f"n{len(self.params)}", "int32", number)

    def structure(self, numbers: list[int], idtype: str) -> str:
        return self.parameter(f"s{len(self.params)}", "handle", np.array(numbers, idtype))

    def root(self) -> Axis:
        length = self.rng.choice([0, 1, 1, 2, 3, 3, 4, 5])
        name, idtype = f"A{len(self.axes)}", self.rng.choice(self.types)
        line = f'{name} = T.sp.dense_fixed({self.size(length)}, "{idtype}")'
        return self.add(Axis(name, line, None, length, [list(range(length))], idtype=idtype, width=length))

    def child(self, parent: Axis) -> Axis:
        name, length = f"A{len(self.axes)}", self.rng.choice([1, 2, 3, 4, 6])
        kind = self.rng.choice(["dense_varied", "compressed_fixed", "compressed_varied", "compressed_varied"])
        idtype = self.rng.choice(self.types)
        ascends, most = self.chance(0.8), length
        same = self.rng.randint(0, min(most, 3))
        rows: list[list[int]] = []
        for _ in range(parent.count):
            count = same if kind == "compressed_fixed" else self.rng.choice([0, self.rng.randint(0, most), most])
            row = self.rng.sample(range(length), count)
            rows.append(list(range(count)) if kind == "dense_varied" else sorted(row) if ascends else row)
        if not ascends and kind != "dense_varied" and self.more.random() < 0.5:
            rows = [[self.more.randrange(length) for _ in row] for row in rows]
        total = sum(map(len, rows))
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(int).tolist()
        indices = [coordinate for row in rows for coordinate in row]
        parts = f"{parent.name}, ({self.size(length)}, {self.size(same if kind == 'compressed_fixed' else total)})"
        if kind == "dense_varied":
            line = f"{parts}, {self.structure(indptr, idtype)}"
        elif kind == "compressed_fixed":
            line = f"{parts}, {self.structure(indices, idtype)}"
        else:
            line = f"{parts}, ({self.structure(indptr, idtype)}, {self.structure(indices, idtype)})"
        line += f', "{idtype}"'
        line += "" if ascends or kind == "dense_varied" else ", sorted=False"
        variable, sparse = kind.endswith("varied"), kind != "dense_varied"
        return self.add(
            Axis(name, f"{name} = T.sp.{kind}({line})", parent, length, rows, variable, sparse, idtype, same)
        )

    def add(self, axis: Axis) -> Axis:
        self.axes.append(axis)
        self.lines.append(axis.line)
        return axis

    def tensor(self, axes: list[Axis], name: str) -> Tensor:
        shape, open_axes = [], list(axes)
        while open_axes:  # chains that end in a variable axis are one dimension
            first = open_axes.pop(0)
            below = [a for a in open_axes if first in a.path() and a.is_variable]
            if below:
                open_axes = [a for a in open_axes if a not in below[-1].path()]
            last = below[-1] if below else first
            shape.append(last.count if last.is_variable else last.width)
        array = self.values.integers(-3, 4, shape).astype("float64")
        extra = self.more.choice([1, 3]) if self.more.random() < 0.15 else 0
        array = np.concatenate([array, np.full((extra, *shape[1:]), 7.0)])
        param = self.parameter(f"t{len(self.params)}", "handle", array)
        storage = f", extra_storage={extra}" if extra else ""
        default = ", default_value=2" if self.chance(0.2) else ""
        names = ", ".join(axis.name for axis in axes)
        self.lines.append(f'{name} = T.sp.match_buffer({param}, ({names},), "float64"{storage}{default})')
        made = Tensor(name, axes)
        self.tensors.append(made)
        return made

    def program(self) -> Drawn:
        chain = [self.root()]
        for _ in range(self.rng.choice([1, 1, 2, 2, 3])):
            chain.append(self.child(chain[-1]))
        others = [self.root() for _ in range(self.rng.choice([1, 1, 2]))]
        if self.chance(0.4):
            others.append(self.child(self.rng.choice([chain[0], others[0]])))
        for number in range(self.rng.choice([1, 2, 3])):
            axis = self.rng.choice([*chain, chain[-1], *others])
            beside = [a for a in others if a.parent is None and a not in axis.path()]
            extra = [self.rng.choice(beside)] if beside and self.chance(0.4) else []
            axes = [*extra, *axis.path()] if self.chance(0.3) else [*axis.path(), *extra]
            self.tensor(axes, f"B{number}")
        body: list[str] = []
        for number in range(self.rng.choice([1, 1, 2])):
            body += self.iteration(number, chain, others)
        text = f"def f({', '.join(self.params)}):\n" + "".join(f"    {line}\n" for line in [*self.lines, *body])
        return Drawn(text, self.arguments)

    def iteration(self, number: int, chain: list[Axis], others: list[Axis]) -> list[str]:
        axes = chain[: self.rng.randint(1, len(chain))]
        for other in others:
            if self.chance(0.5) and all(a in axes or a.parent is None for a in other.path()):
                axes += [a for a in other.path() if a not in axes]
        order: list[Axis] = []
        while len(order) < len(axes):  # parents first
            ready = [a for a in axes if a not in order and (a.parent is None or a.parent in order)]
            order.append(self.rng.choice(ready) if self.chance(0.4) else ready[0])
        spatial = [a for a in order if self.chance(0.6)]
        spatial = [a for a in order if any(a in s.path() for s in spatial)]
        if not spatial:
            spatial = order[:1]
        output = self.tensor(spatial, f"C{number}")
        variables = {axis.name: f"v{axis.name[1:]}" for axis in order}
        target = f"{output.name}[{', '.join(variables[a.name] for a in spatial)}]"
        value = " * ".join(self.load(order, variables) for _ in range(self.rng.choice([1, 1, 2])))
        kinds = "".join("S" if axis in spatial else "R" for axis in order)
        reduces = "R" in kinds
        repeats = any(a.is_sparse and "sorted=False" in a.line for a in order)
        has_init = reduces and self.chance(0.8)
        update = reduces or self.chance(0.3) or repeats
        cut = self.rng.randint(1, len(order)) if self.chance(0.25) and not has_init else len(order)
        lines, depth = [], 0
        for part, begin, end in (("a", 0, cut), ("b", cut, len(order))):
            if begin == end:
                continue
            names = ", ".join(variables[a.name] for a in order[begin:end])
            listed = self.listed(order[begin:end])
            lines.append(
                "    " * depth + f'with T.sp.iteration([{listed}], "{kinds[begin:end]}", "it{number}{part}") '
                f"as [{names}]:"
            )
            depth += 1
        if has_init:
            lines += ["    " * depth + "with T.init():", "    " * (depth + 1) + f"{target} = T.float64(1)"]
        if self.chance(0.15):
            lines.append("    " * depth + f"if {variables[order[-1].name]} != 1:")
            depth += 1
        conditions, factor = self.lookup(order, variables)
        for condition in conditions:
            lines.append("    " * depth + f"if {condition}:")
            depth += 1
        if self.more.random() < 0.2:
            lines.append("    " * depth + f"value{number}: T.float64 = {value}")
            value = f"value{number}"
        if update and self.more.random() < 0.15:
            lines.append("    " * depth + f"for d{number} in range({self.more.randint(1, 2)}):")
            depth += 1
        lines.append("    " * depth + f"{target} = {f'{target} + ' if update else ''}{value}{factor}")
        if self.chance(0.2):  # a second result, which has no init
            count = target.replace(output.name, self.tensor(spatial, f"D{number}").name, 1)
            lines.append("    " * depth + f"{count} = {count} + T.float64(1)")
        return lines

    def lookup(self, order: list[Axis], variables: dict[str, str]) -> tuple[list[str], str]:
        """Return conditions to put around a statement, and a factor to multiply its value by.

        The factor is a tensor element whose index is loaded from a table. The load from the table is within bounds only
        if the first condition holds; the index is valid only if the second holds.
        """
        roots = [a for a in order if a.parent is None and a.length > 1]
        tensors = [t for t in self.tensors if t.name[0] == "B" and any(a.length for a in t.axes)]
        if not roots or not tensors or self.lookups.random() < 0.8:
            return [], ""
        root, tensor = self.lookups.choice(roots), self.lookups.choice(tensors)
        searched = self.lookups.choice([a for a in tensor.axes if a.length])
        entries = [self.lookups.randrange(searched.length + 2) for _ in range(root.length - 1)]
        table = self.parameter(f"x{len(self.params)}", "handle", np.array(entries, "int32"))
        self.lines.append(f'{table.upper()} = T.match_buffer({table}, ({len(entries)},), "int32")')
        variable = variables[root.name]
        entry = f"{table.upper()}[{variable} - 1]"
        others = [str(self.lookups.randrange(a.length)) if a.length else None for a in tensor.axes]
        if None in others:
            return [], ""
        indices = [entry if a is searched else other for a, other in zip(tensor.axes, others, strict=True)]
        first, second = f"{variable} > 0", f"{entry} < {searched.length}"
        element = f"{tensor.name}[{', '.join(map(str, indices))}]"
        return self.lookups.choice(
            [
                ([first, second], f" * {element}"),
                ([f"{first} and {second}"], f" * {element}"),
                ([f"{first} and {second} and {element} != T.float64(1)"], ""),
                ([f"{variable} == 0 or {entry} >= {searched.length} or {element} != T.float64(1)"], ""),
                ([first], f" * T.if_then_else({second}, {element}, T.float64(2))"),
                ([], f" * T.if_then_else({first}, T.if_then_else({second}, {element}, T.float64(2)), T.float64(3))"),
            ]
        )

    def listed(self, axes: list[Axis]) -> str:
        """The axes of an iteration, some of them fused with their parents."""
        groups: list[list[str]] = []
        for position, axis in enumerate(axes):
            if position and axis.parent is axes[position - 1] and self.chance(0.3):
                groups[-1].append(axis.name)
            else:
                groups.append([axis.name])
        return ", ".join(g[0] if len(g) == 1 else f"T.sp.fuse({', '.join(g)})" for g in groups)

    def load(self, order: list[Axis], variables: dict[str, str]) -> str:
        """An element of a tensor: of the iteration's own axes mostly, else wherever the coordinates lead, also beyond
        the length of an axis that has a parent."""
        tensor = self.rng.choice([t for t in self.tensors if t.name[0] == "B"])
        indices = []
        for axis in tensor.axes:
            inside = [a for a in order if a.length <= axis.length or axis.parent]
            if axis.name in variables and self.chance(0.9):
                indices.append(variables[axis.name])
            elif inside and self.chance(0.9):
                name = variables[self.rng.choice(inside).name]
                beyond = self.rng.choice([f"{name} + 2", f"{name} - 1"]) if axis.parent else None
                near = beyond or f"T.min({name} + 1, {axis.length - 1})"
                indices.append(name if self.chance(0.6) else near)
            elif axis.length:
                indices.append(str(self.rng.randrange(axis.length)))
            else:
                return "T.float64(3)"
        return f"{tensor.name}[{', '.join(indices)}]"


def is_sparse(text: str) -> bool:
    """Whether the text is that of a program over axes."""
    return "T.sp." in text


def draw(number: int) -> Drawn:
    """A program and its arguments."""
    return Drawing(number).program()


def outputs(program: Any, drawn: Drawn, target: str, threads: int = 0, flat: bool = False) -> list[Any]:
    """All arguments after a call; `flat`: they are given as arrays of one dimension."""
    whole = copy.deepcopy(drawn.arguments)
    arguments = [each.reshape(-1) if flat and isinstance(each, np.ndarray) else each for each in whole]
    kernel = tw.compile(program, target=target)
    kernel.threads = threads
    kernel(*arguments)
    return whole


def structures(drawn: Drawn) -> list[int]:
    """Return the positions of the arguments that hold the structure of axes."""
    names = re.findall(r"(\w+): T\.\w+", drawn.text.splitlines()[0])
    return [at for at, name in enumerate(names) if name.startswith("s")]


def damaged(drawn: Drawn, rng: random.Random) -> Drawn | None:
    """Return the program with another number in its structure: one that is too large or negative, or that of another
    place. None if it has no such number."""
    filled = [at for at in structures(drawn) if len(drawn.arguments[at])]
    if not filled:
        return None
    arguments = copy.deepcopy(drawn.arguments)
    array = arguments[rng.choice(filled)]
    at = rng.randrange(len(array))
    array[at] = rng.choice([-1, len(array) + 1, 7, array[at - 1], array[rng.randrange(len(array))]])
    return Drawn(drawn.text, arguments)


def judge_validation(func: Any, drawn: Drawn, rng: random.Random, counts: Counter[str]) -> None:
    """Compare which structures kernels refuse with those that the interpreter refuses. Kernels may refuse more: numbers
    that no axis uses.

    Raises:
        Finding: the interpreter refuses a structure that the kernel accepts, or the kernel refuses one without damage.
    """
    kernel = tw.compile(func)
    for each in [drawn, *(damaged(drawn, rng) for _ in range(4))]:
        if each is None:
            continue
        reasons = []
        for check in (kernel.validate, tw.compile(func, target="interpreter")):
            try:
                check(*copy.deepcopy(each.arguments))
                reasons.append("")
            except tw.Error as error:
                reasons.append(str(error))
        counts["structures refused" if reasons[0] else "structures accepted"] += 1
        if (reasons[0] and each is drawn) or (reasons[1] and not reasons[0]):
            said = "\n".join(reason or "accepted" for reason in reasons)
            raise Finding("sparse: validation", f"{said}\n{[each.arguments[i] for i in structures(each)]}\n{each.text}")


def judge_text(func: Any, drawn: Drawn) -> None:
    """Compare the function with its text, for scalars that are numbers.

    Raises:
        Finding: the text is that of another function.
    """
    values = zip(func.params, drawn.arguments, strict=True)
    fixed = specialize(func, {param: value for param, value in values if isinstance(value, int)})
    if not ir.structural_equal(script.from_source(fixed.script()), fixed):
        raise Finding("sparse: text", f"{fixed.script()}\n{drawn.text}")


def published(module: Any) -> Any:
    """The program as SparseTIR's implementation is called: arrays have one dimension."""
    return lower_sparse_buffer(lower_sparse_iter(module))


def judge(number: int, counts: Counter[str] | None = None) -> None:
    """Compare all ways to run a program.

    Raises:
        Finding: two of them differ, or something fails that must not.
    """
    counts = Counter() if counts is None else counts
    drawn = draw(number)
    func = script.from_source("@T.prim_func\n" + drawn.text)
    try:
        want = outputs(func, drawn, "interpreter")
    except tw.Error as error:
        raise Finding("sparse: interpreter", f"{error}\n{drawn.text}") from error

    def compare(what: str, program: Any, target: str, threads: int = 0, flat: bool = False) -> None:
        try:
            got = outputs(program, drawn, target, threads, flat)
        except Exception as error:
            raise Finding(f"sparse: {what}", f"{error}\n{drawn.text}") from error
        for have, wanted in zip(got, want, strict=True):
            if not np.array_equal(have, wanted, equal_nan=True):
                raise Finding(f"sparse: {what}", f"{have}\ninstead of\n{wanted}\n{drawn.text}")

    judge_text(func, drawn)
    judge_validation(func, drawn, random.Random(f"damage of {number}"), counts)
    rng = random.Random(number)
    sch = tw.Schedule(func, seed=1)
    for name in [f"it{n}{part}" for n in range(2) for part in "ab"]:
        try:
            iters = sch.get_sp_iters(name)
            counts["sparse iterations"] += 1
            if rng.random() < 0.5:
                sch.sparse_reorder(*rng.sample(iters, len(iters)))
                counts["sparse_reorder"] += 1
            if len(iters) > 1 and rng.random() < 0.5:
                at = rng.randrange(len(iters) - 1)
                sch.sparse_fuse(*iters[at : at + 2])
                counts["sparse_fuse"] += 1
        except tw.ScheduleError:
            counts["refused"] += 1
    compare("steps on iterations", sch.mod, "interpreter")
    for what, program in (("lowered", func), ("steps, lowered", sch.mod)):
        lowering = tw.Schedule(program, seed=1)
        try:
            lowering.lower_sparse_iter()
        except tw.ScriptError as error:
            raise Finding(f"sparse: {what}", f"{error}\n{drawn.text}") from error
        compare(what, lowering.mod, "interpreter")
    counts["sparse programs"] += 1
    for sequence in range(3):
        done = steps.Scheduling(lowering.mod["main"], steps.block_names(lowering.mod), number)
        for _ in range(rng.randint(1, 8)):
            name, code = done.draw(rng)
            if code != steps.IMPOSSIBLE:
                counts[f"{name} {'refused' if code else 'accepted'}"] += 1
        what = f"{[step.name for step in done.done]} on the lowered program"
        try:
            ir.verify(done.sch.mod)
            compare(what, done.sch.mod, "interpreter")
        except (tw.Error, Finding) as error:
            raise Finding(f"sparse: {what}", f"{error}\n{drawn.text}\n{done.sch.trace}") from error
        if sequence == 0 and not has_threads(done.sch.mod):
            compare(f"{what}, compiled", done.sch.mod, "native", 2)
    for threads in (1, 2):
        compare("compiled", func, "native", threads)
    for target in ("interpreter", "native"):
        compare("as published", published(sch.mod), target, flat=True)
    format_rules.judge(number, counts)
