"""What drawing a program takes: buffers, nests of loops around blocks, axes and indices, the function around them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from fuzz.expressions import DTYPES, EXACT, FLOATS, RULES, Axis, Buffer, Expressions, Extent, Value

EXTENTS = [1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12]
SYMBOLIC = ["n", "n", "m", "n + 2", "n * 2", "n // 2 + 1", "(n + 3) // 4"]
#: Iterations of one nest, at most.
LARGEST_NEST = 200
SIZES = [{"n": 7, "m": 5}, {"n": 1, "m": 1}, {"n": 13, "m": 4}, {"n": 0, "m": 3}, {"n": 5, "m": 0}]


@dataclass
class Program:
    """The text of a program, how its arguments are drawn, and the symbolic sizes to try."""

    text: str
    special: bool
    sizes: list[dict[str, int]]


@dataclass
class Nest:
    """Loops around a block: their headers and variables, what the axes of the block are bound to, and conditions."""

    loops: list[str] = field(default_factory=list)
    variables: list[Axis] = field(default_factory=list)
    bindings: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)


class Writer:
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rule = self.rng.choice(RULES)
        #: How often what is unusual is drawn, compared with programs that have as much of it as possible: steps that
        #: need simple programs shall find some.
        self.oddness = self.rng.choice([0.0, 0.2, 0.5, 1.0])
        self.e = Expressions(self.rng, self.rule, self.oddness, has_axes_as_values=self.chance(0.5))
        self.lines: list[str] = []
        self.names = 0
        self.is_symbolic = self.chance(0.12)
        self.is_for_threads = not self.is_symbolic and self.chance(0.1)
        #: Which loops, axes and buffers have extents of int64: of one sort within a nest, of both within a program.
        self.widths = random.Random(~seed)
        self.has_widths = not self.is_symbolic and self.widths.random() < 0.08
        self.is_wide = False
        #: Whether there are stages behind those that `rng` draws.
        self.more = random.Random(f"more {seed}")
        main = self.rng.choice(["float32", "float32", "int32", *DTYPES])
        self.dtypes = [main, main, main, *self.rng.sample(DTYPES, self.rng.choice([0, 0, 1, 2]))]
        self.buffers: list[Buffer] = []
        #: Which no other stage reads.
        self.hidden: list[Buffer] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, base: str) -> str:
        self.names += 1
        return f"{base}{self.names}"

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def size(self, extent: Extent) -> str:
        return f"T.int64({extent})" if self.is_wide else f"{extent}"

    # ---- buffers

    def shape(self) -> list[Extent]:
        if self.chance(0.02 + 0.06 * self.oddness):
            return []
        while True:
            extents: list[Extent] = [self.rng.choice(EXTENTS) for _ in range(self.rng.choice([1, 1, 2, 2, 2, 3]))]
            if self.is_symbolic:
                extents = [self.rng.choice(SYMBOLIC) if self.chance(0.7) else extent for extent in extents[:2]]
            if product(extents) <= LARGEST_NEST:
                return extents

    def target(self) -> tuple[Buffer, bool]:
        """What a stage writes, and whether that is a new buffer, of which nothing may be read."""
        existing = [b for b in self.buffers if b is not self.e.index_buffer and b.box is None]
        if existing and self.chance(0.15 + 0.3 * self.oddness):
            return self.rng.choice(existing), False
        return Buffer(self.name("B"), self.rng.choice(self.dtypes), self.shape()), True

    def store_bound(self, buffer: Buffer, bound: float) -> None:
        buffer.bound = max(0.0 if buffer not in self.buffers else buffer.bound, bound)

    def finish(self, buffer: Buffer, is_new: bool) -> None:
        if is_new:
            self.buffers.append(buffer)

    # ---- nests

    def nest(self, axes: list[Axis], depth: int, by_data: bool = False) -> int:
        """Writes loops and the head of a block over the axes; the depth of the block's body.

        With `by_data`, data may decide which iterations run: what they write keeps its value in the others.
        """
        nest = Nest()
        self.is_wide = self.has_widths and self.widths.random() < 0.6
        rest = list(axes)
        while rest:
            axis = rest.pop(0)
            if rest and isinstance(axis.extent, int) and isinstance(rest[0].extent, int) and self.chance(0.06):
                self.fused(nest, axis, rest.pop(0))
            else:
                self.bound(nest, axis)
        if by_data and self.chance(0.15 * self.oddness):
            self.e.axes = [axis for axis in nest.variables if axis.extent != 0]
            nest.conditions.insert(self.rng.randint(0, len(nest.conditions)), self.e.condition(1).text)
        if len(nest.loops) > 1 and self.chance(0.15):
            self.rng.shuffle(nest.loops)
        for loop in nest.loops:
            self.add(depth, loop)
            depth += 1
        self.add(depth, f'with T.block("{self.name("S")}"):')
        for line in nest.bindings:
            self.add(depth + 1, line)
        if nest.conditions:
            self.add(depth + 1, f"T.where({' and '.join(nest.conditions)})")
        if self.chance(0.04):
            self.add(depth + 1, 'T.block_attr({"note": 1})')
        return depth + 1

    def loop(self, nest: Nest, extent: Extent, start: int = 0, is_reduction: bool = False) -> str:
        name = self.name("i")
        span = self.size(extent) if start == 0 else f"{self.size(start)}, {self.size(start + int(extent))}"
        kind = "range"
        if self.chance(0.06) and not is_reduction:
            kind = self.rng.choice(
                ["T.parallel", "T.unroll", "T.vectorized" if isinstance(extent, int) else "T.serial"]
            )
        elif self.chance(0.02):
            kind, span = "T.serial", span + ', annotations={"note": "x"}'
        nest.loops.append(f"for {name} in {kind}({span}):")
        nest.variables.append(Axis(name, extent, start))
        return name

    def bind(self, nest: Nest, axis: Axis, value: str) -> None:
        domain = self.size(axis.extent)
        if axis.start != 0:
            domain = f"({self.size(axis.start)}, {self.size(axis.start + int(axis.extent))})"
        kind = "reduce" if axis.is_reduction else "spatial"
        nest.bindings.append(f"{axis.name} = T.axis.{kind}({domain}, {value})")

    def bound(self, nest: Nest, axis: Axis) -> None:
        """One axis: bound to a loop, or to a function of one or two."""
        extent, start, is_reduction = axis.extent, axis.start, axis.is_reduction
        style = self.rng.random() if self.chance(self.oddness) else 0.5
        if isinstance(extent, str):
            i = self.loop(nest, extent, is_reduction=is_reduction)
            return self.bind(nest, axis, i if style > 0.05 else f"{extent} - 1 - {i}")
        if extent == 1 and start == 0 and style < 0.4:
            return self.bind(nest, axis, "0")
        if is_reduction and style < 0.06:
            i = self.loop(nest, 0)
            return self.bind(nest, axis, i)
        if style < 0.7:
            i = self.loop(nest, extent, start, is_reduction)
            return self.bind(nest, axis, i)
        if style < 0.76:
            i = self.loop(nest, extent, is_reduction=is_reduction)
            return self.bind(nest, axis, f"{start + extent - 1} - {i}")
        if style < 0.81:
            i = self.loop(nest, extent, is_reduction=is_reduction)
            return self.bind(nest, axis, plus(f"({i} + {self.rng.randint(1, 5)}) % {extent}", start))
        if style < 0.90:
            factor = self.rng.choice([2, 3, 4])
            i = self.loop(nest, -(-extent // factor), is_reduction=is_reduction)
            j = self.loop(nest, factor, is_reduction=is_reduction)
            if extent % factor:
                nest.conditions.append(f"{i} * {factor} + {j} < {extent}")
            return self.bind(nest, axis, plus(f"{i} * {factor} + {j}", start))
        if style < 0.94:
            i = self.loop(nest, extent + self.rng.randint(1, 3), is_reduction=is_reduction)
            nest.conditions.append(f"{i} < {extent}")
            return self.bind(nest, axis, plus(i, start))
        if style < 0.95 and self.e.index_buffer is not None:
            index = self.e.index_buffer
            i = self.loop(nest, extent, is_reduction=is_reduction)
            return self.bind(nest, axis, plus(f"{index.name}[{i} % {index.shape[0]}] % {extent}", start))
        if style < 0.97:
            i = self.loop(nest, extent * 2, is_reduction=is_reduction)
            return self.bind(nest, axis, plus(f"{i} // 2", start))
        i = self.loop(nest, extent, start + 2, is_reduction)
        return self.bind(nest, axis, f"{i} - 2")

    def fused(self, nest: Nest, a: Axis, b: Axis) -> None:
        width = int(b.extent)
        i = self.loop(nest, int(a.extent) * width, is_reduction=a.is_reduction or b.is_reduction)
        self.bind(nest, a, plus(f"{i} // {width}", a.start))
        self.bind(nest, b, plus(f"{i} % {width}", b.start))

    def axes_for(self, buffer: Buffer, is_new: bool) -> tuple[list[Axis], list[str]]:
        """Axes of a block that writes the buffer, and the indices at which it does."""
        shape = buffer.shape
        if not shape:
            return [], ["()"]
        numbers = [extent for extent in shape if isinstance(extent, int)]
        if len(numbers) == len(shape) == 2 and self.chance(0.06):
            axis = Axis(self.name("v"), product(shape))
            return [axis], [f"{axis.name} // {numbers[1]}", f"{axis.name} % {numbers[1]}"]
        axes, indices, box = [], [], []
        for extent in shape:
            axis, index, written = self.axis_for(extent, is_new)
            axes.append(axis)
            indices.append(index)
            box.append(written)
        if len(numbers) == len(shape) and any(w != (0, n) for w, n in zip(box, numbers, strict=True)):
            buffer.box = box if is_new else buffer.box
        if len(axes) > 1 and self.chance(0.1):
            self.rng.shuffle(axes)
        return axes, indices

    def axis_for(self, extent: Extent, is_new: bool) -> tuple[Axis, str, tuple[int, int]]:
        name = self.name("v")
        draw = self.rng.random() if self.chance(self.oddness) else 0.5
        if isinstance(extent, str):
            axis = Axis(name, extent)
            return axis, name if draw > 0.08 else f"{extent} - 1 - {name}", (0, 0)
        whole = (0, extent)
        if draw < 0.72:
            return Axis(name, extent), name, whole
        if draw < 0.78:
            return Axis(name, extent), f"{extent - 1} - {name}", whole
        if draw < 0.82:
            return Axis(name, extent), f"({name} + {self.rng.randint(1, 4)}) % {extent}", whole
        if draw < 0.90 or is_new:
            low = self.rng.randrange(extent)
            high = self.rng.randint(low + 1, extent)
            if self.chance(0.5):
                return Axis(name, high - low, low), name, (low, high)
            return Axis(name, high - low), plus(name, low), (low, high)
        if draw < 0.94 and extent >= 2:
            return Axis(name, extent // 2), plus(f"{name} * 2", self.rng.choice([0, extent % 2])), whole
        if draw < 0.97 and self.e.index_buffer is not None:
            index = self.e.index_buffer
            self.e.loads.append(index)
            return Axis(name, extent), f"{index.name}[{name} % {index.shape[0]}] % {extent}", whole
        return Axis(name, extent), str(self.rng.randrange(extent)), whole

    def let(self, depth: int) -> None:
        """At times a variable for what is read here: conditions are made of it, later."""
        if not self.e.buffers or not self.chance(0.3 * self.oddness):
            return
        dtype = self.rng.choice([buffer.dtype for buffer in self.e.buffers])
        value = self.e.value(dtype, 1)
        self.add(depth, f"{self.name('x')}: T.{dtype} = {value.text}")
        self.e.lets.append((dtype, Value(f"x{self.names}", value.bound)))

    # ---- what is written

    def reads(self, buffer: Buffer, value: Value) -> bool:
        """Whether the value may depend on what the buffer holds."""
        variables = [variable.text for _, variable in self.e.lets]
        return any(name in value.text for name in [f"{buffer.name}[", *variables])

    def value_for(self, buffer: Buffer, depth: int, sums: bool = False) -> Value:
        """A value to store to the buffer, or with `sums` to add to it.

        Iterations that read what others have stored would square numbers again and again until they are rounded: they
        get limits that they do not leave.
        """
        value = self.e.value(buffer.dtype, depth)
        exact = buffer.dtype in FLOATS and self.rule == "exact"
        if not exact or buffer not in self.buffers or not self.reads(buffer, value):
            return value
        if sums:
            return self.e.constant(buffer.dtype)
        if value.bound <= buffer.bound:
            return value
        low, high = (f"T.{buffer.dtype}({bound})" for bound in (-buffer.bound, buffer.bound))
        return Value(f"T.max(T.min({value.text}, {high}), {low})", buffer.bound)

    def settle(self, buffer: Buffer, is_new: bool, bound: float) -> None:
        buffer.bound = bound if is_new else max(buffer.bound, bound)
        if is_new:
            self.buffers.append(buffer)

    def grows(self, buffer: Buffer, times: int, value: Value | None = None) -> bool:
        """Whether that many additions (of the value) to the buffer stay exact."""
        if buffer.dtype not in FLOATS:
            return True
        if value is not None and self.reads(buffer, value):
            return False
        # Bindings may run each of them twice.
        most = max(32.0, value.bound if value is not None else 0.0)
        return self.rule == "exact" and buffer.bound + 2 * times * most < EXACT[buffer.dtype]

    def accumulate(self, dtype: str, text: str) -> str:
        return f"or {text}" if dtype == "bool" else f"+ {text}"

    def whole(self, buffer: Buffer) -> list[str]:
        ranges = []
        for dimension, extent in enumerate(buffer.shape):
            low, high = buffer.readable(dimension) if isinstance(extent, int) else (0, extent)
            ranges.append(f"{low}:{high}")
        return ranges


def plus(text: str, number: int) -> str:
    return Expressions.plus(text, number)


def shape(buffer: Buffer) -> str:
    sizes = (f"T.int64({extent})" if buffer.is_wide else f"{extent}" for extent in buffer.shape)
    return "(" + "".join(f"{size}, " for size in sizes) + ")"


def product(extents: list[Extent]) -> int:
    """The product of extents, symbolic ones at the largest value that is tried."""
    result = 1
    for extent in extents:
        result *= extent if isinstance(extent, int) else eval(extent, {"n": 13, "m": 5})
    return result
