"""Random programs as text of a script: well defined for all arguments, mostly.

A program is a sequence of stages; each writes one or two buffers, new ones or such that exist. What a stage may do is
the list STAGES: one method each.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from fuzz.expressions import DTYPES, EXACT, FLOATS, INTS, RULES, SMALL, Axis, Buffer, Expressions, Extent, Value, limits
from fuzz.formulas import Formulas

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
    """Loops around a block: their headers, what the axes of the block are bound to, and conditions."""

    loops: list[str] = field(default_factory=list)
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

    # ---- the function

    def program(self) -> Program:
        params = [self.parameter() for _ in range(self.rng.choice([2, 2, 3]))]
        if self.chance(0.35):
            index = Buffer("I", "int32", [self.rng.choice([4, 6, 8])], is_param=True)
            params.append(index)
            self.e.index_buffer = index
        self.buffers += params
        for _ in range(self.rng.choice([1, 1, 2, 2, 2, 3, 3, 4])):
            self.e.buffers, self.e.axes, self.e.lets = list(self.buffers), [], []
            stage = self.rng.choice(STAGES if self.chance(0.3 + 0.7 * self.oddness) else PLAIN_STAGES)
            stage(self)
        if self.chance(0.8) and any(not buffer.is_param for buffer in self.buffers):
            self.use_all(params)
        header = ["@T.prim_func"]
        if self.is_symbolic:
            header.append(f"def main({', '.join(f'p{p.name}: T.handle' for p in params)}):")
            header += ["    n = T.int32()", "    m = T.int32()"]
            header += [f"    {p.name} = T.match_buffer(p{p.name}, {shape(p)}, {p.dtype!r})" for p in params]
            # A size is known from a parameter whose extent it is.
        else:
            header.append(f"def main({', '.join(f'{p.name}: T.Buffer({shape(p)}, {p.dtype!r})' for p in params)}):")
        for buffer in [*self.buffers, *self.hidden]:
            if not buffer.is_param:
                header.append(f"    {buffer.name} = T.alloc_buffer({shape(buffer)}, {buffer.dtype!r})")
        text = "\n".join([*header, *self.lines]) + "\n"
        return Program(text, self.chance(0.5), SIZES if self.is_symbolic else [{}])

    def parameter(self) -> Buffer:
        dtype = self.rng.choice(self.dtypes)
        buffer = Buffer(self.name("A"), dtype, self.shape(), is_param=True)
        if self.is_symbolic and not any(s in b.shape for b in self.buffers for s in ("n", "m")):
            buffer.shape = ["n", "m"] if self.names == 1 else buffer.shape
        return buffer

    def shape(self) -> list[Extent]:
        if self.chance(0.02 + 0.06 * self.oddness):
            return []
        while True:
            extents: list[Extent] = [self.rng.choice(EXTENTS) for _ in range(self.rng.choice([1, 1, 2, 2, 2, 3]))]
            if self.is_symbolic:
                extents = [self.rng.choice(SYMBOLIC) if self.chance(0.7) else extent for extent in extents[:2]]
            if product(extents) <= LARGEST_NEST:
                return extents

    def use_all(self, params: list[Buffer]) -> None:
        """A last stage that stores what the allocated buffers hold, so that it is seen."""
        temporaries = [buffer for buffer in self.buffers if not buffer.is_param]
        target = self.rng.choice(params)
        if target is self.e.index_buffer:
            return
        self.e.buffers = temporaries + [b for b in temporaries if b.dtype == target.dtype] * 2
        self.e.axes, self.e.lets = [], []
        self.elementwise(target)

    # ---- targets

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

    def nest(self, axes: list[Axis], depth: int) -> int:
        """Writes loops and the head of a block over the axes; the depth of the block's body."""
        nest = Nest()
        rest = list(axes)
        while rest:
            axis = rest.pop(0)
            if rest and isinstance(axis.extent, int) and isinstance(rest[0].extent, int) and self.chance(0.06):
                self.fused(nest, axis, rest.pop(0))
            else:
                self.bound(nest, axis)
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
        span = f"{extent}" if start == 0 else f"{start}, {start + int(extent)}"
        kind = "range"
        if self.chance(0.06) and not is_reduction:
            kind = self.rng.choice(
                ["T.parallel", "T.unroll", "T.vectorized" if isinstance(extent, int) else "T.serial"]
            )
        elif self.chance(0.02):
            kind, span = "T.serial", span + ', annotations={"note": "x"}'
        nest.loops.append(f"for {name} in {kind}({span}):")
        return name

    def bind(self, nest: Nest, axis: Axis, value: str) -> None:
        domain = f"{axis.extent}" if axis.start == 0 else f"({axis.start}, {axis.start + int(axis.extent)})"
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

    # ---- stages

    def elementwise(self, target: Buffer | None = None) -> None:
        """C[f(v)] = expression: plain, under a condition, masked, in place, through a variable, or twice."""
        buffer, is_new = (target, False) if target else self.target()
        axes, indices = self.axes_for(buffer, is_new)
        depth = self.nest(axes, 1)
        self.e.axes = axes
        access = f"{buffer.name}[{', '.join(indices)}]"
        self.let(depth)
        value = self.e.value(buffer.dtype, 1 if self.oddness == 0 else 3)
        draw = self.rng.random() if self.chance(self.oddness) else 1.0
        if draw < (0.5 if self.e.lets else 0.12) and not is_new:
            self.add(depth, f"if {self.e.value('bool', 2).text}:")
            self.add(depth + 1, f"{access} = {value.text}")
            if self.chance(0.3):
                other = self.e.value(buffer.dtype, 2)
                self.add(depth, "else:")
                self.add(depth + 1, f"{access} = {other.text}")
                value.bound = max(value.bound, other.bound)
        elif draw < 0.18 and not is_new:
            self.add(depth, f"{access} = T.Select({self.e.value('bool', 2).text}, {value.text}, {access})")
        elif draw < 0.28 and not is_new and self.grows(buffer, product([a.extent for a in axes])):
            before = self.neighbor(buffer, indices) if self.chance(0.3) else access
            self.add(depth, f"{access} = {before} {self.accumulate(buffer.dtype, value.text)}")
            value.bound = buffer.bound + product([a.extent for a in axes]) * value.bound
        elif draw < 0.36:
            self.add(depth, f"{self.name('x')}: T.{buffer.dtype} = {value.text}")
            self.add(depth, f"{access} = x{self.names}")
        elif draw < 0.40:
            self.add(depth, f"{access} = {value.text}")
            again = self.e.value(buffer.dtype, 1)
            self.add(depth, f"{access} = T.max({access}, {again.text})")
            value.bound = max(value.bound, again.bound)
        else:
            self.add(depth, f"{access} = {value.text}")
        self.settle(buffer, is_new, value.bound)

    def settle(self, buffer: Buffer, is_new: bool, bound: float) -> None:
        buffer.bound = bound if is_new else max(buffer.bound, bound)
        if is_new:
            self.buffers.append(buffer)

    def grows(self, buffer: Buffer, times: int) -> bool:
        """Whether that many additions to the buffer stay exact."""
        if buffer.dtype not in FLOATS:
            return True
        return self.rule == "exact" and buffer.bound + times * 64 < EXACT[buffer.dtype]

    def accumulate(self, dtype: str, text: str) -> str:
        return f"or {text}" if dtype == "bool" else f"+ {text}"

    def neighbor(self, buffer: Buffer, indices: list[str]) -> str:
        """The element before, in the first dimension: a chain from iteration to iteration."""
        if not buffer.shape:
            return f"{buffer.name}[()]"
        moved = f"({indices[0]} + {self.rng.choice([1, 1, 2])}) % ({buffer.shape[0]})"
        return f"{buffer.name}[{', '.join([moved, *indices[1:]])}]"

    def reduction(self) -> None:
        """A reduction with init: sums, maxima, products, bits; at times no commutative one, or under a condition."""
        buffer, is_new = self.target()
        axes, indices = self.axes_for(buffer, is_new)
        inner = [
            Axis(self.name("k"), self.reduced_extent(), is_reduction=True) for _ in range(self.rng.choice([1, 1, 2]))
        ]
        times = product([axis.extent for axis in inner])
        if product([axis.extent for axis in axes]) * times > 2 * LARGEST_NEST:
            inner, times = inner[:1], product([inner[0].extent])
        order = [*axes, *inner]
        if self.chance(0.2):
            self.rng.shuffle(order)
        depth = self.nest(order, 1)
        access = f"{buffer.name}[{', '.join(indices)}]"
        self.e.axes = list(axes)
        init = self.e.constant(buffer.dtype) if self.chance(0.75) else self.e.value(buffer.dtype, 1)
        if buffer.dtype in FLOATS and self.rule == "exact":
            init.bound = min(init.bound, 64.0)
        has_init = is_new or self.chance(0.85)
        if has_init:
            self.add(depth, "with T.init():")
            self.add(depth + 1, f"{access} = {init.text}")
        self.e.axes = order
        self.let(depth)
        value = self.e.value(buffer.dtype, 2)
        update, bound = self.update(buffer, access, value.text, value.bound, times)
        if self.chance(0.4 if self.e.lets else 0.08):
            self.add(depth, f"if {self.e.value('bool', 2).text if self.chance(0.6) else f'{access} < {value.text}'}:")
            depth += 1
        for line in update:
            self.add(depth, line)
        self.settle(buffer, is_new, max(bound, init.bound if has_init else buffer.bound))

    def reduced_extent(self) -> Extent:
        if self.is_symbolic and self.chance(0.5):
            return self.rng.choice(["n", "m"])
        return self.rng.choice([1, 2, 3, 4, 5, 6, 8])

    def update(self, buffer: Buffer, access: str, text: str, bound: float, times: int) -> tuple[list[str], float]:
        """The lines of an update, and how large the result may be."""
        dtype = buffer.dtype
        order_free = [f"{access} = T.max({access}, {text})", f"{access} = T.min({access}, {text})"]
        if dtype == "bool":
            joined = self.rng.choice(["and", "or"])
            return [f"{access} = {access} {joined} {text}"], 1.0
        if dtype in INTS:
            low, high = limits(dtype)
            lines = [
                *order_free,
                *[f"{access} = {access} + {text}"] * 4,
                f"{access} = {access} * {text}",
                f"{access} = {access} - {text}",
                f"{access} = {access} * T.{dtype}(2) + {text}",
                f"{access} = {text} - {access}",
                *[f"{access} = T.bitwise_{op}({access}, {text})" for op in ("and", "or", "xor")],
                f"{access} = T.Select({text} < {access}, {text}, {access})",
            ]
            chosen = self.rng.choice(lines)
            if self.chance(0.06):
                name = self.name("x")
                return [f"{name}: T.{dtype} = T.max({access}, {text})", f"{access} = {access} + {name}"], 0.0
            return [chosen], 0.0
        # The init has at most 64, what is in the buffer at most `bound`; nests may run the update twice as often.
        reach = max(buffer.bound, 64.0) + 4 * times * bound
        if self.rule == "exact" and reach < EXACT[dtype] and self.chance(0.8):
            if self.chance(0.06) and times * 8 < 20:
                return [f"{access} = {text} - {access}"], reach
            return [f"{access} = {access} {self.rng.choice('+++-')} {text}"], reach
        return [self.rng.choice(order_free)], max(buffer.bound, 64.0, bound)

    def argmax(self) -> None:
        """A reduction of pairs: the largest value and where it is."""
        dtype = self.rng.choice([d for d in self.dtypes if d != "bool"] or ["float32"])
        extent: Extent = self.rng.choice(EXTENTS)
        place = Buffer(self.name("B"), "int32", [extent])
        best = Buffer(self.name("B"), dtype, [extent])
        v, k = Axis(self.name("v"), extent), Axis(self.name("k"), self.rng.choice([2, 3, 4, 6]), is_reduction=True)
        depth = self.nest([v, k], 1)
        self.e.axes = [v, k]
        value = self.e.value(dtype, 1)
        at, top = f"{place.name}[{v.name}]", f"{best.name}[{v.name}]"
        low = f'T.{dtype}("-inf")' if dtype in FLOATS else f"T.{dtype}({limits(dtype)[0]})"
        self.add(depth, "with T.init():")
        self.add(depth + 1, f"{at} = -1")
        self.add(depth + 1, f"{top} = {low}")
        test = f"{top} >= {value.text}" if self.chance(0.5) else f"{top} > {value.text}"
        if self.chance(0.5):
            test = f"{top} > {value.text} or ({top} == {value.text} and {at} < {k.name})"
        self.add(depth, f"xp: T.int32 = T.Select({test}, {at}, {k.name})")
        self.add(depth, f"xv: T.{dtype} = T.Select({test}, {top}, {value.text})")
        self.add(depth, f"{at} = xp")
        self.add(depth, f"{top} = xv")
        self.settle(place, True, 16.0)
        self.settle(best, True, value.bound)

    def padded(self) -> None:
        """A copy that is larger than what it copies, with a constant around."""
        candidates = [b for b in self.buffers if b.box is None and b.shape]
        candidates = [b for b in candidates if all(isinstance(extent, int) for extent in b.shape)]
        if not candidates:
            return self.elementwise()
        source = self.rng.choice(candidates)
        margins = [(self.rng.choice([0, 1, 2]), self.rng.choice([0, 1, 2])) for _ in source.shape]
        shape: list[Extent] = [int(n) + low + high for n, (low, high) in zip(source.shape, margins, strict=True)]
        buffer = Buffer(self.name("B"), source.dtype, shape)
        axes = [Axis(self.name("v"), extent) for extent in shape]
        depth = self.nest(axes, 1)
        inside, indices = [], []
        for axis, extent, (low, high) in zip(axes, source.shape, margins, strict=True):
            inside += [f"{low} <= {axis.name}"] * (low > 0) + [f"{axis.name} < {int(extent) + low}"] * (high > 0)
            indices.append(f"{axis.name} - {low}" if low else axis.name)
        constant = self.e.constant(source.dtype)
        value = f"{source.name}[{', '.join(indices)}]"
        if inside:
            value = f"T.if_then_else({' and '.join(inside)}, {value}, {constant.text})"
        self.add(depth, f"{buffer.name}[{', '.join(axis.name for axis in axes)}] = {value}")
        self.settle(buffer, True, max(source.bound, constant.bound))
        return None

    def biased(self) -> None:
        """A sum of integers, and another buffer that holds it with something added."""
        dtype = self.rng.choice([dtype for dtype in self.dtypes if dtype in INTS] or ["int32"])
        extent = self.rng.choice(EXTENTS)
        total, result = (Buffer(self.name("B"), dtype, [extent]) for _ in range(2))
        v, k = Axis(self.name("v"), extent), Axis(self.name("k"), self.rng.choice([2, 3, 4]), is_reduction=True)
        depth = self.nest([v, k], 1)
        self.e.axes = [v, k]
        self.add(depth, "with T.init():")
        self.add(depth + 1, f"{total.name}[{v.name}] = T.{dtype}(0)")
        self.add(depth, f"{total.name}[{v.name}] = {total.name}[{v.name}] + {self.e.value(dtype, 1).text}")
        v = Axis(self.name("v"), extent)
        depth = self.nest([v], 1)
        self.e.axes = [v]
        self.add(depth, f"{result.name}[{v.name}] = {total.name}[{v.name}] + {self.e.value(dtype, 1).text}")
        self.hidden.append(total)
        self.settle(result, True, 0.0)

    def chain(self) -> None:
        """What one buffer holds, element by element, in a new one: blocks that can be moved into one another."""
        sources = [b for b in self.buffers if not b.is_param and b.box is None and b.shape]
        if not sources:
            return self.elementwise()
        source = self.rng.choice(sources)
        result = Buffer(self.name("B"), source.dtype, list(source.shape))
        axes = [Axis(self.name("v"), extent) for extent in source.shape]
        depth = self.nest(axes, 1)
        indices = ", ".join(axis.name for axis in axes)
        constant = self.e.constant(source.dtype)
        value = f"T.Select({source.name}[{indices}] == {constant.text}, {constant.text}, {source.name}[{indices}])"
        if source.dtype != "bool":
            value = f"T.{self.rng.choice(['max', 'min'])}({source.name}[{indices}], {constant.text})"
        self.add(depth, f"{result.name}[{indices}] = {value}")
        self.settle(result, True, max(source.bound, constant.bound))
        return None

    def in_place(self) -> None:
        """A buffer in place, element by element."""
        candidates = [b for b in self.buffers if b is not self.e.index_buffer and b.box is None and b.shape]
        candidates = [b for b in candidates if b.dtype != "bool"]
        if not candidates:
            return self.elementwise()
        buffer = self.rng.choice(candidates)
        axes = [Axis(self.name("v"), extent) for extent in buffer.shape]
        depth = self.nest(axes, 1)
        self.e.axes = axes
        access = f"{buffer.name}[{', '.join(axis.name for axis in axes)}]"
        value = self.e.value(buffer.dtype, 1)
        self.add(depth, f"{access} = T.max({access}, {value.text})")
        self.settle(buffer, False, max(buffer.bound, value.bound))
        return None

    def stencil(self) -> None:
        """A buffer, and a smaller one whose elements are made of neighbors in it: tiles that overlap, once it is
        computed for each of them."""
        dtype = self.rng.choice(self.dtypes)
        rank = self.rng.choice([1, 1, 2])
        inner: list[Extent] = [self.rng.choice([4, 6, 8, 8, 12] if rank == 1 else [4, 6]) for _ in range(rank)]
        reach = [self.rng.choice([1, 2, 2, 3]) for _ in range(rank)]
        source = Buffer(self.name("B"), dtype, [int(n) + r for n, r in zip(inner, reach, strict=True)])
        axes = [Axis(self.name("v"), extent) for extent in source.shape]
        depth = self.nest(axes, 1)
        self.e.axes = axes
        value = self.e.value(dtype, 1)
        self.add(depth, f"{source.name}[{', '.join(axis.name for axis in axes)}] = {value.text}")
        self.settle(source, True, value.bound)
        result = Buffer(self.name("B"), dtype, inner)
        axes = [Axis(self.name("v"), extent) for extent in inner]
        depth = self.nest(axes, 1)
        names = [axis.name for axis in axes]
        far = [plus(name, self.rng.choice([r, r, r - 1])) for name, r in zip(names, reach, strict=True)]
        near, other = f"{source.name}[{', '.join(names)}]", f"{source.name}[{', '.join(far)}]"
        joined = f"({near} or {other})" if dtype == "bool" else f"T.max({near}, {other})"
        self.add(depth, f"{result.name}[{', '.join(names)}] = {joined}")
        self.settle(result, True, value.bound)

    def scatter(self) -> None:
        """C[f(k)] += expression, where several k may meet: with a reduction axis, or (wrongly named) a spatial one."""
        candidates = [b for b in self.buffers if b.box is None and len(b.shape) == 1 and isinstance(b.shape[0], int)]
        candidates = [b for b in candidates if b is not self.e.index_buffer and self.grows(b, 64)]
        if not candidates:
            return self.elementwise()
        buffer = self.rng.choice(candidates)
        count = int(buffer.shape[0])
        axis = Axis(self.name("k"), self.rng.choice(EXTENTS), is_reduction=self.chance(0.6))
        depth = self.nest([axis], 1)
        self.e.axes = [axis]
        target = self.e.any_index(0, count) if self.chance(0.6) else self.e.index(count, 0, count)
        value = self.e.value(buffer.dtype, 1)
        if value.bound > 64:
            value.text, value.bound = self.e.constant(buffer.dtype).text, SMALL
        access = f"{buffer.name}[{target}]"
        self.add(depth, f"{access} = {access} {self.accumulate(buffer.dtype, value.text)}")
        self.settle(buffer, False, buffer.bound + 24 * value.bound)
        return None

    def opaque(self) -> None:
        """A block over loops of its own, with regions as declared: right, wider, or (at times) wrong."""
        outer, inner = self.rng.choice([1, 2, 3]), self.rng.choice([2, 3, 4])
        dtype = self.rng.choice(self.dtypes)
        buffer = Buffer(self.name("B"), dtype, [outer * inner])
        v, t = Axis(self.name("v"), outer), Axis(self.name("t"), inner)
        depth = self.nest([v], 1)
        self.e.axes, self.e.loads = [v, t], []
        value = self.e.value(dtype, 2)
        if self.chance(0.7):
            width = inner if self.chance(0.92) else max(inner - 1, 1)
            reads = {b.name: f"{b.name}[{', '.join(self.whole(b)) or '()'}]" for b in self.e.loads}
            self.add(depth, f"T.reads({', '.join(reads.values())})")
            self.add(depth, f"T.writes({buffer.name}[{v.name} * {inner}:{v.name} * {inner} + {width}])")
        head = f"for {t.name} in range({inner}):"
        if self.chance(0.2):
            head = f"for {t.name} in {self.rng.choice(['T.unroll', 'T.vectorized'])}({inner}):"
        self.add(depth, head)
        place = self.rng.choice([t.name, f"{inner - 1} - {t.name}"])
        self.add(depth + 1, f"{buffer.name}[{v.name} * {inner} + {place}] = {value.text}")
        self.settle(buffer, True, value.bound)

    def whole(self, buffer: Buffer) -> list[str]:
        ranges = []
        for dimension, extent in enumerate(buffer.shape):
            low, high = buffer.readable(dimension) if isinstance(extent, int) else (0, extent)
            ranges.append(f"{low}:{high}")
        return ranges

    def nested(self) -> None:
        """A block with blocks inside: a tile, at times with a buffer of its own or through views."""
        outer, inner = self.rng.choice([1, 2, 3, 4]), self.rng.choice([2, 3, 4])
        dtype = self.rng.choice(self.dtypes)
        buffer = Buffer(self.name("B"), dtype, [outer * inner])
        v = Axis(self.name("v"), outer)
        depth = self.nest([v], 1)
        target, base = buffer.name, f"{v.name} * {inner} + "
        tile = f"{v.name} * {inner}:{v.name} * {inner} + {inner}"
        if self.chance(0.4):
            target, base = self.name("W"), ""
            factor = self.rng.choice(["", ", offset_factor=1", ', strides=["s"], offset_factor=1'])
            if "strides" in factor:
                self.add(depth, f"{self.name('s')} = T.int32()")
                factor = f", strides=[s{self.names}], offset_factor=1"
            view = f"{target} = T.match_buffer({buffer.name}[{tile}], ({inner},), {dtype!r}{factor})"
            self.add(depth, view)
            if self.chance(0.3):
                view, target = target, self.name("W")
                factor = self.rng.choice(["", ", offset_factor=1"])
                self.add(depth, f"{target} = T.match_buffer({view}[0:{inner}], ({inner},), {dtype!r}{factor})")
        visible = list(self.e.buffers)
        own = None
        if self.chance(0.5):
            own = Buffer(self.name("L"), dtype, [inner])
            scope = self.rng.choice(["", ', scope="local"'])
            self.add(depth, f"{own.name} = T.alloc_buffer(({inner},), {dtype!r}{scope})")
            w = Axis(self.name("v"), inner)
            body = self.nest([w], depth)
            self.e.axes = [v, w]
            value = self.e.value(dtype, 2)
            self.add(body, f"{own.name}[{w.name}] = {value.text}")
            own.bound = value.bound
            self.e.buffers = [*visible, own, own, own]
        w = Axis(self.name("v"), inner)
        if self.chance(0.25) and dtype not in FLOATS:
            k = Axis(self.name("k"), self.rng.choice([2, 3]), is_reduction=True)
            body = self.nest([w, k], depth)
            self.e.axes = [v, w]
            access = f"{target}[{base}{w.name}]"
            self.add(body, "with T.init():")
            self.add(body + 1, f"{access} = {self.e.constant(dtype).text}")
            self.e.axes = [v, w, k]
            value = self.e.value(dtype, 2)
            lines, value.bound = self.update(buffer, access, value.text, value.bound, 3)
            for line in lines:
                self.add(body, line)
        else:
            body = self.nest([w], depth)
            self.e.axes = [v, w]
            value = self.e.value(dtype, 2)
            place = self.rng.choice([w.name, w.name, f"{inner - 1} - {w.name}"])
            self.add(body, f"{target}[{base}{place}] = {value.text}")
        self.e.buffers = visible
        self.settle(buffer, True, value.bound)

    def inner_loops(self) -> None:
        """Loops inside of a block, over one dimension of what it writes; their extent may depend on data."""
        buffer, is_new = self.target()
        if not buffer.shape:
            return self.elementwise()
        last = buffer.shape[-1]
        axes, indices = self.axes_for(Buffer("", buffer.dtype, buffer.shape[:-1]), is_new=False)
        if buffer.shape[:-1] == []:
            indices = []
        if is_new and any(any(c in i for c in "*[") or i.isdigit() for i in indices):
            return self.elementwise()
        if is_new and any(axis.start or axis.extent not in buffer.shape for axis in axes):
            return self.elementwise()
        depth = self.nest(axes, 1)
        t = Axis(self.name("t"), last)
        self.e.axes = axes
        extent = f"{last}"
        if not is_new and isinstance(last, int) and self.chance(0.3):
            extent = f"T.min({self.e.any_index(0, last)} + 1, {last})"
        self.add(depth, f"for {t.name} in range({extent}):")
        self.e.axes = [*axes, t]
        self.let(depth + 1)
        value = self.e.value(buffer.dtype, 2)
        if not is_new and self.chance(0.6 if self.e.lets else 0.1):
            depth += 1
            self.add(depth, f"if {self.e.value('bool', 2).text}:")
        self.add(depth + 1, f"{buffer.name}[{', '.join([*indices, t.name])}] = {value.text}")
        self.settle(buffer, is_new, value.bound)
        return None

    def while_loop(self) -> None:
        """A block that counts in a cell of its own."""
        buffer, is_new = self.target()
        axes, indices = self.axes_for(buffer, is_new)
        depth = self.nest(axes, 1)
        cell = self.name("w")
        access = f"{buffer.name}[{', '.join(indices)}]"
        self.add(depth, f'{cell} = T.alloc_buffer((1,), "int32", scope="local")')
        self.add(depth, f"{cell}[0] = {self.rng.choice([0, 1, 2])}")
        self.e.axes = axes
        value = self.e.value(buffer.dtype, 2)
        self.add(depth, f"{access} = {value.text}")
        self.add(depth, f"while {cell}[0] < {self.rng.choice([1, 2, 3])}:")
        other = self.e.value(buffer.dtype, 1)
        self.add(depth + 1, f"{access} = T.max({access}, {other.text})")
        self.add(depth + 1, f"{cell}[0] = {cell}[0] + 1")
        self.settle(buffer, is_new, max(value.bound, other.bound))


def plus(text: str, number: int) -> str:
    return Expressions.plus(text, number)


def shape(buffer: Buffer) -> str:
    return "(" + "".join(f"{extent}, " for extent in buffer.shape) + ")"


def product(extents: list[Extent]) -> int:
    """The product of extents, symbolic ones at the largest value that is tried."""
    result = 1
    for extent in extents:
        result *= extent if isinstance(extent, int) else eval(extent, {"n": 13, "m": 5})
    return result


STAGES = [
    *[Writer.elementwise] * 6,
    *[Writer.reduction] * 4,
    Writer.argmax,
    Writer.padded,
    Writer.biased,
    Writer.scatter,
    Writer.opaque,
    Writer.nested,
    Writer.nested,
    Writer.inner_loops,
    Writer.while_loop,
    Writer.stencil,
    Writer.chain,
    Writer.in_place,
]
#: Of simple programs, mostly: what steps that ask for much can be taken in.
PLAIN_STAGES = [
    *[Writer.elementwise] * 7,
    *[Writer.chain] * 2,
    *[Writer.in_place] * 2,
    *[Writer.reduction] * 2,
    *[Writer.biased] * 2,
    *[Writer.stencil] * 4,
    Writer.padded,
]


def draw(seed: int) -> Program:
    """The program of a number."""
    if formulas := formulas_of(seed):
        return Program(formulas.text(), special=False, sizes=[{}])
    return Writer(seed).program()


def formulas_of(seed: int) -> Formulas | None:
    """What the program of a number is built from, if that is formulas."""
    rng = random.Random(-seed)
    return Formulas(rng) if rng.random() < 0.05 else None
