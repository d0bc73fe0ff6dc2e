"""Random kernels as statements: loops over blocks, threads and virtual threads, one after another, without schedules.

Buffers of many types in shared memory, filled by all threads together, as vectors or element by element; conditions,
indices that data choose, barriers, atomic operations, reductions across threads, axes of which some loops have none,
grids whose extents are open or 0, several kernels in a function. `teams_in_order` executes a kernel in Python, one
statement after another, and finds the statements whose threads meet; these are left out. All values are small integers,
so that every type holds them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

INTEGERS = ["int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"]
TYPES = [*INTEGERS, "float32", "float16", "float64", "bool"]
#: that have atomic operations
ATOMIC = ["int32", "uint32", "int64", "uint64", "float32", "float64"]
VIRTUAL = {"vthread.x": 2, "vthread.y": 3, "vthread": 2}
MOST_THREADS = 96
#: values are below
RANGE = 16

Env = dict[str, int]
Loop = tuple[str, str, Any]


@dataclass
class Both:
    """An expression in a script, and the same in Python."""

    script: str
    python: str

    @classmethod
    def same(cls, text: str) -> Both:
        return cls(text, text)


@dataclass
class Array:
    """A buffer of one dimension."""

    name: str
    size: int
    dtype: str
    scope: str = "global"


@dataclass
class Node:
    """A statement, with those inside of it."""

    body: list[Node] = field(default_factory=list, kw_only=True)
    is_left_out: bool = field(default=False, kw_only=True)

    def has_statements(self) -> bool:
        return not self.is_left_out and any(each.has_statements() for each in self.body)


@dataclass
class Grid(Node):
    """A kernel: loops over blocks."""

    loops: list[Loop]
    arrays: list[Array] = field(default_factory=list)


@dataclass
class Repeat(Node):
    """A serial loop."""

    var: str
    extent: int
    word: str = "range"


@dataclass
class If(Node):
    """Statements under a condition that all threads find alike."""

    condition: Both


@dataclass
class Team(Node):
    """Loops over threads around statements."""

    loops: list[Loop]


@dataclass
class Step(Node):
    """One that has no statements inside."""

    def has_statements(self) -> bool:
        return not self.is_left_out


@dataclass
class Barrier(Step):
    """All threads wait."""


@dataclass
class Store(Step):
    """A store, or an atomic operation, in as many lanes as `lanes` says."""

    array: Array
    index: Both
    value: Both
    condition: Both | None = None
    atomic: str = ""
    lanes: tuple[str, int] = ("", 1)


@dataclass
class Reduce(Step):
    """A block whose reduction is bound to threads: a sum, a minimum, a maximum, or the place of the maximum."""

    array: Array
    places: Array | None
    operation: str
    spatial: tuple[str, int, str]  # axis, extent, value
    reduced: tuple[str, int, str]
    value: Both
    loops: list[Loop]  # outside of the serial one, if there is one: `serial`
    inner: list[Loop]
    serial: tuple[str, int]
    is_serial_outside: bool
    name: str


class Program:
    """A random function of some kernels.

    Attributes:
        given: the arrays that it is called with, by name.
        open_extent: what is passed for `n`; None if there is no such parameter.
    """

    def __init__(self, number: int) -> None:
        self.rng = random.Random(number)
        self.numbers = np.random.default_rng(number)
        self.names = 0
        self.parameters: list[Array] = []
        self.given: dict[str, np.ndarray] = {}
        self.outputs: list[Array] = []
        for _ in range(self.rng.randint(1, 3)):
            self.new_input(self.rng.choice(TYPES), self.rng.choice([7, 16, 30, 64, 101]))
        self.places = self.new_input("int32", 24)
        self.open_extent = self.rng.choice([0, 1, 2, 3]) if self.chance(0.25) else None
        self.kernels = [self.kernel() for _ in range(self.rng.choice([1, 1, 1, 2]))]

    # ---- names and arrays

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def new_input(self, dtype: str, size: int) -> Array:
        array = Array(self.name("A"), size, dtype)
        self.parameters.append(array)
        self.given[array.name] = self.numbers.integers(0, 2 if dtype == "bool" else RANGE, size).astype(dtype)
        return array

    def new_output(self, dtype: str, size: int) -> Array:
        array = Array(self.name("R"), size, dtype)
        self.parameters.append(array)
        self.outputs.append(array)
        self.given[array.name] = np.full(size, 1 if dtype == "bool" else 7).astype(dtype)
        return array

    def new_shared(self, size: int, dtype: str | None = None) -> Array:
        scope = self.rng.choice(["shared", "shared", "shared.dyn"])
        array = Array(self.name("S"), size, dtype or self.rng.choice(TYPES), scope)
        self.shared.append(array)
        return array

    # ---- kernels

    def most(self, extent: int | str) -> int:
        return max(self.open_extent or 0, 1) if isinstance(extent, str) else max(extent, 1)

    def kernel(self) -> Node:
        rng = self.rng
        self.blocks: list[Loop] = [
            (self.name("b"), tag, rng.choice([1, 2, 3, 2]))
            for tag in rng.sample(["blockIdx.x", "blockIdx.y", "blockIdx.z"], rng.choice([1, 1, 2, 3]))
        ]
        if self.open_extent is not None and self.chance(0.6):
            self.blocks[0] = (*self.blocks[0][:2], "n")
        elif self.chance(0.03):
            self.blocks[0] = (*self.blocks[0][:2], 0)
        self.axes: dict[str, int] = {}
        self.team = 1
        for tag in rng.sample(["threadIdx.x", "threadIdx.y", "threadIdx.z"], rng.choice([1, 1, 2, 3])):
            sizes = [1, 2, 3, 5, 6, 8, 16, 24, 32, 33, 48, 64] if tag == "threadIdx.x" else [1, 2, 3, 4, 5, 8]
            self.axes[tag] = rng.choice([size for size in sizes if size * self.team <= MOST_THREADS])
            self.team *= self.axes[tag]
        self.shared: list[Array] = []
        grid = Grid(self.blocks)
        env = {var: self.most(extent) for var, _, extent in self.blocks}
        grid.body = self.parts(env, 0, rng.randint(3, 8))
        grid.arrays = self.shared
        return Repeat(self.name("h"), 2, body=[grid]) if self.chance(0.12) else grid

    def parts(self, env: Env, depth: int, count: int) -> list[Node]:
        """What a kernel does, one part after another."""
        found: list[Node] = []
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.15 and depth < 2:
                var, extent = self.name("k"), self.rng.randint(1, 3)
                inside = self.parts({**env, var: extent}, depth + 1, self.rng.randint(1, 3))
                found.append(Repeat(var, extent, body=inside))
            elif kind < 0.22 and depth < 2:
                found.append(If(self.uniform(env), body=self.parts(env, depth + 1, self.rng.randint(1, 2))))
            elif kind < 0.27:
                found.append(self.store(env, "0", 1))
            elif kind < 0.42:
                found.append(self.reduction(env))
            else:
                found += self.threads(env)
        return found

    def uniform(self, env: Env) -> Both:
        var, number = self.rng.choice([*env]), self.rng.randint(0, 2)
        load = f"{self.places.name}[{number}] > 5"
        return self.rng.choice(
            [Both.same(f"{var} < {number}"), Both.same(f"{var} != {number}"), Both(load, load_in_python(load))]
        )

    def number_of(self, threads: dict[str, str]) -> tuple[str, int]:
        """The number of a thread among those of some axes, and how many there are."""
        text, extent = "", 1
        for tag in sorted(threads, reverse=True):
            text = f"({text}) * {self.axes[tag]} + {threads[tag]}" if text else threads[tag]
            extent *= self.axes[tag]
        return text or "0", extent

    def threads(self, env: Env) -> list[Node]:
        """Loops over threads, of all axes mostly, and virtual ones."""
        rng, tags = self.rng, list(self.axes)
        if len(tags) > 1 and self.chance(0.15):
            tags = rng.sample(tags, len(tags) - 1)
        names = {tag: self.name("t") for tag in tags}
        text, extent = self.number_of(names)
        inside = {**env, **{names[tag]: self.axes[tag] for tag in tags}}
        loops: list[Loop] = [(names[tag], tag, self.axes[tag]) for tag in rng.sample(tags, len(tags))]
        if self.chance(0.15):
            tag, var = rng.choice([*VIRTUAL]), self.name("v")
            loops.insert(rng.randint(0, len(loops)), (var, tag, VIRTUAL[tag]))
            text, extent = f"({text}) * {VIRTUAL[tag]} + {var}", extent * VIRTUAL[tag]
            inside[var] = VIRTUAL[tag]
        body: list[Node] = [self.fill(inside, text, extent)] if not self.shared or self.chance(0.6) else []
        for _ in range(rng.randint(0, 3)):
            kind = rng.random()
            if kind < 0.2:
                var, count = self.name("k"), rng.randint(1, 4)
                steps: list[Node] = [self.store({**inside, var: count}, text, extent) for _ in range(rng.randint(1, 2))]
                body.append(Repeat(var, count, body=steps))
            elif kind < 0.25:
                body.append(Barrier())
            elif kind < 0.4:
                body.append(self.atomic(inside, text, extent))
            else:
                body.append(self.store(inside, text, extent))
        return [Team(loops, body=body)] if body else []

    # ---- expressions

    def index(self, env: Env, text: str, extent: int, size: int, *, by_data: bool = True) -> Both:
        """An index of an array, from the number of a thread."""
        rng, var, number = self.rng, self.rng.choice([*env]), self.rng.randint(0, 7)
        forms = [
            f"({text}) % {size}", f"({text} + {number}) % {size}", f"({text} + {var}) % {size}", f"{var} % {size}",
            f"({text}) // 2 % {size}", f"{number % size}", f"(({text}) * 3 + {var}) % {size}",
            f"{size - 1} - ({text}) % {size}",
        ]  # fmt: skip
        if extent <= size:
            forms += [text, text, f"{size - 1} - ({text})", f"{extent - 1} - ({text})"]
        chosen = rng.choice(forms)
        if by_data and self.chance(0.08):
            chosen = f"{self.places.name}[({chosen}) % {self.places.size}] % {size}"
        return Both(chosen, load_in_python(chosen))

    def condition(self, env: Env, text: str, extent: int) -> Both:
        rng, var, number = self.rng, self.rng.choice([*env]), self.rng.randint(0, 5)
        chosen = rng.choice([
            f"{text} < {rng.randint(0, extent)}", f"{var} == {number}", f"({text}) % 2 == {number % 2}",
            f"{var} < {number}", f"{text} >= {number}", f"({text}) // 2 == {var}", f"({text} + {var}) % 3 != 0",
            f"{self.places.name}[({text}) % {self.places.size}] > {number}",
        ])  # fmt: skip
        one = Both(chosen, load_in_python(chosen))
        return both_hold(one, Both.same(f"{var} < 2")) if self.chance(0.15) else one

    def load(self, env: Env, text: str, extent: int) -> Both:
        array = self.rng.choice([*self.parameters, *self.shared * 2])
        first = self.index(env, text, extent, array.size)
        if array.dtype == "bool" or self.chance(0.8):
            read = f"{array.name}[{first.script}]"
            script = read if array.dtype == "int32" else f"T.cast({read}, 'int32')"
            return Both(script, f"load('{array.name}', {first.python})")
        second = self.index(env, text, extent, array.size)
        reads = [f"{array.name}[{each.script}]" for each in (first, second)]
        in_python = [f"load('{array.name}', {each.python})" for each in (first, second)]
        if self.chance(0.5):
            return Both(f"T.cast({reads[0]} + {reads[1]}, 'int32')", f"({in_python[0]} + {in_python[1]})")
        return Both(f"T.cast(T.max({reads[0]}, {reads[1]}), 'int32')", f"max({in_python[0]}, {in_python[1]})")

    def number(self, env: Env, text: str, extent: int, depth: int) -> Both:
        """A value of type int32."""
        kind = self.rng.random()
        if depth == 0 or kind < 0.3:
            if kind < 0.08:
                return Both.same(str(self.rng.randrange(RANGE)))
            return Both.same(self.rng.choice([*env])) if kind < 0.2 else self.load(env, text, extent)
        a, b = (self.number(env, text, extent, depth - 1) for _ in range(2))
        if kind < 0.55:
            return Both(f"({a.script} + {b.script})", f"({a.python} + {b.python})")
        if kind < 0.65:
            return Both(f"({a.script} * {b.script})", f"({a.python} * {b.python})")
        if kind < 0.75:
            return Both(f"T.min({a.script}, {b.script})", f"min({a.python}, {b.python})")
        if kind < 0.8:
            return Both(f"T.bitwise_xor({a.script}, {b.script})", f"({a.python} ^ {b.python})")
        if kind < 0.9:
            condition = self.condition(env, text, extent)
            if self.chance(0.5):
                choice = f"choose({condition.python}, {a.python}, {b.python})"
                return Both(f"T.Select({condition.script}, {a.script}, {b.script})", choice)
            choice = f"({a.python} if {condition.python} else {b.python})"
            return Both(f"T.if_then_else({condition.script}, {a.script}, {b.script})", choice)
        return Both(f"({a.script} - {b.script})", f"({a.python} - {b.python})")

    def value(self, env: Env, text: str, extent: int, dtype: str, below: int = RANGE) -> Both:
        found = self.number(env, text, extent, 2)
        return as_type(found, dtype, below)

    # ---- statements

    def fill(self, env: Env, text: str, extent: int) -> Node:
        """All threads fill a buffer in shared memory."""
        array = self.new_shared(self.rng.choice([self.team, self.team, self.team * 2, self.team + 3, 7, 20, 64]))
        lanes = 4 if array.size % 4 == 0 and array.size >= 8 and self.chance(0.3) else 1
        rounds, var, lane = -(-array.size // (extent * lanes)), self.name("o"), self.name("w")
        index = f"{var} * {extent} + {text}"
        inside = {**env, var: rounds}
        if lanes > 1:
            index, inside = f"({index}) * {lanes} + {lane}", {**inside, lane: lanes}
        guard = None if rounds * extent * lanes == array.size else Both.same(f"({index}) < {array.size}")
        if guard and lanes > 1:
            guard = Both.same(f"({var} * {extent} + {text}) * {lanes} < {array.size}")
        same = [each for each in self.parameters if each.dtype == array.dtype and each.size >= array.size]
        value = self.value(inside, index, rounds * extent * lanes, array.dtype)
        if same and lanes > 1:
            read = f"{self.rng.choice(same).name}[{index}]"
            value = Both(read, load_in_python(read))
        store = Store(array, Both.same(index), value, guard, lanes=(lane if lanes > 1 else "", lanes))
        return Repeat(var, rounds, self.rng.choice(["range", "T.unroll"]), body=[store])

    def store(self, env: Env, text: str, extent: int) -> Store:
        rng, var, number = self.rng, self.rng.choice([*env]), self.rng.randint(0, 5)
        guard = None
        if self.chance(0.35) or not self.shared:
            block, blocks = "", 1
            for name, _, size in self.blocks:
                block, blocks = f"({block}) * {self.most(size)} + {name}" if block else name, blocks * self.most(size)
            known = [each for each in self.outputs if each.size == blocks * extent]
            is_known = known and self.chance(0.4)
            array = rng.choice(known) if is_known else self.new_output(rng.choice(TYPES), blocks * extent)
            index = f"({block}) * {extent} + {text}"
        else:
            array = rng.choice(self.shared)
            size = array.size
            index = rng.choice([
                text, text, f"{size - 1} - ({text})", f"{text} + {number}", f"({text} + {var}) % {size}", var,
                f"({text}) * 2 + {number % 2}", f"({text}) // 2", f"({text}) * 3 % {size}",
            ])  # fmt: skip
            guard = Both.same(f"{index} < {size}") if self.chance(0.8) else None
        if self.chance(0.35):
            condition = self.condition(env, text, extent)
            guard = both_hold(guard, condition) if guard else condition
        value = self.value(env, text, extent, array.dtype)
        if array.dtype != "bool" and self.chance(0.3):
            script = f"T.cast({array.name}[{index}], 'int32') + T.cast({value.script}, 'int32')"
            value = as_type(Both(f"({script})", f"(load('{array.name}', {index}) + {value.python})"), array.dtype)
        return Store(array, Both.same(index), value, guard)

    def atomic(self, env: Env, text: str, extent: int) -> Store:
        rng = self.rng
        known = [each for each in (*self.shared, *self.outputs) if each.dtype in ATOMIC]
        is_known = known and self.chance(0.7)
        array = rng.choice(known) if is_known else self.new_output(rng.choice(ATOMIC), rng.choice([1, 3, 8]))
        condition = self.condition(env, text, extent) if self.chance(0.3) else None
        value, index = self.value(env, text, extent, array.dtype, 4), self.index(env, text, extent, array.size)
        kind = "add" if array.dtype.startswith("float") else rng.choice(["add", "min", "max"])
        return Store(array, index, value, condition, kind)

    def reduction(self, env: Env) -> Reduce:
        rng, tags = self.rng, list(self.axes)
        over = rng.sample(tags, rng.randint(1, len(tags)))
        others = [tag for tag in tags if tag not in over]
        if others and self.chance(0.4):
            others = rng.sample(others, rng.randint(0, len(others)))
        names = {tag: self.name("t") for tag in over + others}
        row, rows = self.number_of({tag: names[tag] for tag in others})
        lane, lanes = self.number_of({tag: names[tag] for tag in over})
        length = rng.choice([lanes, lanes, lanes * 2, lanes + 1, max(lanes - 1, 1), rng.randint(1, 50)])
        rounds, var, vi, vk = -(-length // lanes), self.name("k"), self.name("vi"), self.name("vk")
        step = lane
        if rounds > 1:
            step = rng.choice([f"{var} * {lanes} + {lane}", f"({lane}) * {rounds} + {var}"])
        value = self.number({**env, vi: rows, vk: length}, f"{vk} + {vi}", length + rows, 1)
        operation = rng.choice(["sum", "sum", "max", "min", "place"])
        array = self.new_shared(rows, rng.choice([each for each in TYPES if each != "bool"]))
        return Reduce(
            array,
            self.new_shared(rows, "int32") if operation == "place" else None,
            operation,
            (vi, rows, row),
            (vk, length, step),
            as_type(value, array.dtype),
            [(names[tag], tag, self.axes[tag]) for tag in others],
            [(names[tag], tag, self.axes[tag]) for tag in over],
            (var, rounds),
            self.chance(0.4),
            self.name("block"),
        )


def load_in_python(text: str) -> str:
    """An expression whose loads, which contain no others, are calls in Python."""
    name, bracket, rest = text.partition("[")
    if not bracket:
        return text
    index, _, behind = rest.rpartition("]")
    return f"load('{name}', {index}){behind}"


def both_hold(a: Both, b: Both) -> Both:
    return Both(f"T.And({a.script}, {b.script})", f"(({a.python}) and ({b.python}))")


def as_type(number: Both, dtype: str, below: int = RANGE) -> Both:
    """A value of the type below a limit; for bool, whether it is above 4."""
    if dtype == "bool":
        return Both(f"{number.script} > 4", f"int({number.python} > 4)")
    script, python = f"{number.script} % {below}", f"{number.python} % {below}"
    return Both(script if dtype == "int32" else f"T.cast({script}, '{dtype}')", python)


# ---- the script


def script_of(program: Program) -> str:
    """The program in TVMScript."""
    parameters = [f'{each.name}: T.Buffer(({each.size},), "{each.dtype}")' for each in program.parameters]
    if program.open_extent is not None:
        parameters.append("n: T.int32")
    lines = ["@T.prim_func", f"def main({', '.join(parameters)}):", '    T.func_attr({"tir.noalias": True})']
    lines += written(program.kernels, 1)
    return "\n".join(lines) + "\n"


def bound(loops: Sequence[Loop], depth: int) -> list[str]:
    return [
        "    " * (depth + i) + f'for {var} in T.thread_binding({extent}, thread="{tag}"):'
        for i, (var, tag, extent) in enumerate(loops)
    ]


def written(nodes: Iterable[Node], depth: int) -> list[str]:
    lines: list[str] = []
    for node in nodes:
        if node.has_statements():
            lines += lines_of(node, depth)
    return lines


def lines_of(node: Node, depth: int) -> list[str]:
    before = "    " * depth
    if isinstance(node, Grid):
        inside = depth + len(node.loops)
        declared = [
            "    " * inside + f'{each.name} = T.decl_buffer(({each.size},), "{each.dtype}", scope="{each.scope}")'
            for each in node.arrays
        ]
        return [*bound(node.loops, depth), *declared, *written(node.body, inside)]
    if isinstance(node, Repeat):
        return [f"{before}for {node.var} in {node.word}({node.extent}):", *written(node.body, depth + 1)]
    if isinstance(node, If):
        return [f"{before}if {node.condition.script}:", *written(node.body, depth + 1)]
    if isinstance(node, Team):
        return [*bound(node.loops, depth), *written(node.body, depth + len(node.loops))]
    if isinstance(node, Barrier):
        return [f'{before}T.tvm_storage_sync("shared")']
    return reduce_lines(node, depth) if isinstance(node, Reduce) else store_lines(node, depth)


def store_lines(node: Node, depth: int) -> list[str]:
    assert isinstance(node, Store)
    heads, (lane, lanes) = [], node.lanes
    if node.condition:
        heads.append(f"if {node.condition.script}:")
    if lanes > 1:
        heads.append(f"for {lane} in T.vectorized({lanes}):")
    element = f"{node.array.name}[{node.index.script}]"
    text = f"{element} = {node.value.script}"
    if node.atomic:
        text = f"T.atomic_{node.atomic}(T.address_of({element}), {node.value.script})"
    return ["    " * (depth + i) + line for i, line in enumerate([*heads, text])]


def reduce_lines(node: Reduce, depth: int) -> list[str]:
    (vi, rows, row), (vk, length, step), (var, rounds) = node.spatial, node.reduced, node.serial
    serial = [f"for {var} in range({rounds}):"] if rounds > 1 else []
    outside = serial if node.is_serial_outside else []
    heads = [
        *(line.strip() for line in bound(node.loops, 0)),
        *outside,
        *(line.strip() for line in bound(node.inner, 0)),
    ]
    heads += [] if node.is_serial_outside else serial
    lines = ["    " * (depth + i) + line for i, line in enumerate([*heads, f'with T.block("{node.name}"):'])]
    dtype, element, value = node.array.dtype, f"{node.array.name}[{vi}]", node.value.script
    start = {"sum": f"T.cast(0, '{dtype}')", "min": f'T.max_value("{dtype}")'}.get(
        node.operation, f'T.min_value("{dtype}")'
    )
    body = [f"{vi} = T.axis.spatial({rows}, {row})", f"{vk} = T.axis.reduce({length}, {step})"]
    body += [f"T.where({step} < {length})", "with T.init():", f"    {element} = {start}"]
    if node.places:
        place, found = f"{node.places.name}[{vi}]", f"{node.name}_value"
        stays = f"T.Or({element} > {found}, T.And({element} == {found}, {place} < {vk}))"
        body += [f"    {place} = 2147483647", f"{found} = {value}"]
        body += [f"{found}_1 = T.Select({stays}, {element}, {found})", f"{found}_2 = T.Select({stays}, {place}, {vk})"]
        body += [f"{element} = {found}_1", f"{place} = {found}_2"]
    else:
        called = {"min": "T.min({}, {})", "max": "T.max({}, {})", "sum": "{} + {}"}[node.operation]
        body.append(f"{element} = " + called.format(element, value))
    return [*lines, *("    " * (depth + len(heads) + 1) + line for line in body)]
