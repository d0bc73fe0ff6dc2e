"""Random expressions of every data type, as text of a script, and indices that stay inside their buffers.

Results must be comparable bit by bit, whatever order a schedule gives to sums and wherever the compiler contracts a
multiplication and an addition. Integers wrap, so any order will do. For floats a program follows one of these rules:

exact         values are small integers (and NaN, infinities, zeros of both signs): `Value.bound` limits what sums can
              reach, so that nothing is ever rounded
additive      any values, and no multiplication; sums are not accumulated
multiplicative  any values, and no addition or subtraction
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTS = SIGNED + UNSIGNED
INDICES = ["int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool", *INTS, *FLOATS]
RULES = ["exact", "exact", "exact", "exact", "additive", "multiplicative"]
#: Integers up to this size are exact in the type.
EXACT = {"float16": 2.0**11, "bfloat16": 2.0**8, "float32": 2.0**24, "float64": 2.0**53}
#: The largest number among the arguments of a program that follows the rule "exact".
SMALL = 4.0

Extent = int | str


@dataclass
class Axis:
    """A variable over [start, start + extent); an extent that is text is symbolic, and starts at 0."""

    name: str
    extent: Extent
    start: int = 0
    is_reduction: bool = False


@dataclass
class Buffer:
    """What is known of a buffer: `box` is what may be read, `bound` how large its floats may be."""

    name: str
    dtype: str
    shape: list[Extent]
    bound: float = SMALL
    box: list[tuple[int, int]] | None = None
    is_param: bool = False
    scope: str = "global"
    is_wide: bool = False

    def readable(self, dimension: int) -> tuple[int, int]:
        if self.box is not None:
            return self.box[dimension]
        extent = self.shape[dimension]
        assert isinstance(extent, int)
        return 0, extent


@dataclass
class Value:
    """The text of an expression, and how large its absolute value may be (of floats that follow the rule "exact")."""

    text: str
    bound: float = 0.0


def limits(dtype: str) -> tuple[int, int]:
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@dataclass
class Expressions:
    """Draws expressions over `axes` and what is readable of `buffers`; `loads` notes which were loaded."""

    rng: random.Random
    rule: str
    oddness: float = 1.0
    buffers: list[Buffer] = field(default_factory=list)
    axes: list[Axis] = field(default_factory=list)
    index_buffer: Buffer | None = None
    loads: list[Buffer] = field(default_factory=list)
    #: Variables that hold what was read: the type and the variable.
    lets: list[tuple[str, Value]] = field(default_factory=list)
    #: Arithmetic of indices does not overflow, by definition: variables of loops and large numbers do not meet.
    has_axes_as_values: bool = False

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # ---- indices

    def index(self, extent: Extent, low: int, high: int) -> str:
        """An index in [low, high), or in [0, extent) where that is symbolic."""
        if isinstance(extent, str):
            return self.symbolic_index(extent)
        count = high - low
        usable = [axis for axis in self.axes if isinstance(axis.extent, int)]
        if not usable or self.chance(0.04):
            return str(self.rng.randrange(low, high)) if self.chance(0.8) else self.any_index(low, count)
        axis = self.rng.choice(usable)
        name, first, span = axis.name, axis.start, int(axis.extent)
        fitting = [a for a in usable if int(a.extent) <= count]
        if fitting and self.chance(1 - 0.3 * self.oddness):
            axis = self.rng.choice(fitting)
            name, first, span = axis.name, axis.start, int(axis.extent)
            return self.shifted(name, 1, low - first, count - span)
        draw = self.rng.randrange(9)
        if draw == 0 and span <= count:
            return f"{low + first + span - 1 + self.rng.randint(0, count - span)} - {name}"
        if draw == 1:
            return self.plus(f"({name} * {self.rng.choice([1, 2, 3, 5, 7])} + {self.rng.randrange(8)}) % {count}", low)
        if draw == 2:
            steps = [s for s in (2, 3, 4) if s * (span - 1) < count]
            if steps:
                step = self.rng.choice(steps)
                return self.shifted(name, step, low - first * step, count - 1 - step * (span - 1))
        if draw == 3:
            step = self.rng.choice([2, 3, 4])
            top = (first + span - 1) // step - first // step
            if top < count:
                return self.shifted(f"{name} // {step}", 1, low - first // step, count - 1 - top)
        if draw == 4:
            return f"T.min(T.max({name} + {self.rng.randint(-3, 3)}, {low}), {high - 1})"
        if draw in (5, 6) and len(usable) > 1:
            return self.two_variables(usable, low, count)
        return self.any_index(low, count)

    def two_variables(self, usable: list[Axis], low: int, count: int) -> str:
        a, b = self.rng.sample(usable, 2)
        s, d = self.rng.choice([1, 1, 2, 3]), self.rng.choice([1, 1, 2])
        reach = s * (int(a.extent) - 1) + d * (int(b.extent) - 1)
        if reach >= count:
            return self.plus(f"({a.name} * {s} + {b.name} * {d}) % {count}", low)
        base = low - s * a.start - d * b.start + self.rng.randint(0, count - 1 - reach)
        left = a.name if s == 1 else f"{a.name} * {s}"
        right = b.name if d == 1 else f"{b.name} * {d}"
        return self.plus(f"{left} + {right}", base)

    def any_index(self, low: int, count: int) -> str:
        """An index that is no affine function: of data, a product, a selection."""
        if self.index_buffer is not None and self.chance(0.6):
            at = self.index(self.index_buffer.shape[0], *self.index_buffer.readable(0))
            self.loads.append(self.index_buffer)
            return self.plus(f"{self.index_buffer.name}[{at}] % {count}", low)
        names = [axis.name for axis in self.axes if isinstance(axis.extent, int)]
        if not names:
            return str(low)
        a, b = self.rng.choice(names), self.rng.choice(names)
        texts = [f"({a} * {b}) % {count}", f"T.Select({a} < {b}, {a}, {b}) % {count}", f"({a} // 2 * 2) % {count}"]
        return self.plus(self.rng.choice(texts), low)

    def shifted(self, text: str, step: int, base: int, room: int) -> str:
        """text * step + base + something in [0, room]; mostly nothing, or all of it."""
        shift = base + self.rng.choice([0, 0, 0, room, self.rng.randint(0, room)])
        return self.plus(text if step == 1 else f"{text} * {step}", shift)

    @staticmethod
    def plus(text: str, number: int) -> str:
        return text if number == 0 else f"{text} + {number}" if number > 0 else f"{text} - {-number}"

    def symbolic_index(self, extent: str) -> str:
        same = [axis.name for axis in self.axes if axis.extent == extent]
        if same and self.chance(0.85):
            name = self.rng.choice(same)
            more = self.rng.randint(1, 5)
            texts = [name] * 8 + [f"{extent} - 1 - {name}", f"({name} + {more}) % ({extent})"]
            return self.rng.choice([*texts, f"T.min({name} + {more}, {extent} - 1)", f"T.max({name} - {more}, 0)"])
        names = [axis.name for axis in self.axes]
        if names and self.chance(0.8):
            return f"{self.rng.choice(names)} % ({extent})"
        return self.rng.choice(["0", f"{extent} - 1"])

    def load(self, buffer: Buffer) -> Value:
        """A load from the buffer; at times padded: a condition keeps it inside."""
        self.loads.append(buffer)
        pads, indices = [], []
        for dimension, extent in enumerate(buffer.shape):
            names = [a for a in self.axes if a.extent == extent or isinstance(a.extent, int)]
            if names and self.chance(0.1 * self.oddness):
                axis = self.rng.choice(names)
                shift = self.rng.choice([-2, -1, 1, 2])
                text = self.plus(axis.name, shift)
                low, high = buffer.readable(dimension) if isinstance(extent, int) else (0, extent)
                pads += [f"{low} <= {text}", f"{text} < {high}"]
            else:
                low, high = buffer.readable(dimension) if isinstance(extent, int) else (0, 0)
                text = self.index(extent, low, high)
            indices.append(text)
        access = f"{buffer.name}[{', '.join(indices) or '()'}]"
        if len(indices) == 1 and self.index_buffer is not None and self.chance(0.04 * self.oddness):
            return self.load_where_data_allow(buffer)
        if pads:
            self.rng.shuffle(pads)
            access = f"T.if_then_else({' and '.join(pads)}, {access}, {self.constant(buffer.dtype).text})"
        return Value(access, buffer.bound)

    def load_where_data_allow(self, buffer: Buffer) -> Value:
        """A load at an index that data give, if that lies inside."""
        assert self.index_buffer is not None
        at = self.index(self.index_buffer.shape[0], *self.index_buffer.readable(0))
        self.loads.append(self.index_buffer)
        place = self.plus(f"{self.index_buffer.name}[{at}]", self.rng.choice([-2, -1, 0, 1]))
        low, high = buffer.readable(0) if isinstance(buffer.shape[0], int) else (0, buffer.shape[0])
        inside, access = f"{low} <= {place} and {place} < {high}", f"{buffer.name}[{place}]"
        if buffer.dtype == "bool" and self.chance(0.5):
            return Value(f"({inside} and {access})")
        constant = self.constant(buffer.dtype)
        return Value(f"T.if_then_else({inside}, {access}, {constant.text})", max(buffer.bound, constant.bound))

    # ---- values

    def constant(self, dtype: str) -> Value:
        if dtype == "bool":
            return Value(self.rng.choice(["T.bool(True)", "T.bool(False)"]))
        if dtype in INTS:
            low, high = limits(dtype)
            if dtype in INDICES and self.has_axes_as_values:
                return Value(f"T.{dtype}({self.rng.randint(-3, 5)})")
            special = [low, high, low + 1, high - 1, self.rng.randint(low, high)]
            value = self.rng.choice(special) if self.chance(0.2) else self.rng.randint(0 if low == 0 else -3, 5)
            return Value(f"T.{dtype}({value})")
        if self.chance(0.1):
            return Value(f'T.{dtype}("{self.rng.choice(["nan", "inf", "-inf"])}")')
        if self.rule != "exact" and self.chance(0.3):
            return Value(f"T.{dtype}({self.rng.choice(['0.1', '-0.0', '1e-3', '250.0', '-1e4'])})")
        value = self.rng.choice([-2.0, -1.0, 0.0, -0.0, 1.0, 2.0, 3.0])
        return Value(f"T.{dtype}({value})", abs(value))

    def value(self, dtype: str, depth: int) -> Value:
        """An expression of the type."""
        loads = [buffer for buffer in self.buffers if buffer.dtype == dtype]
        if depth <= 0 or self.chance(0.25):
            if loads and self.chance(0.4 if self.lets else 0.8):
                return self.load(self.rng.choice(loads))
            return self.leaf(dtype)
        if self.chance(0.1):
            condition = self.value("bool", depth - 1)
            a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
            name = self.rng.choice(["T.Select", "T.if_then_else"])
            return Value(f"{name}({condition.text}, {a.text}, {b.text})", max(a.bound, b.bound))
        if self.chance(0.12):
            return self.cast(dtype, depth)
        if dtype == "bool":
            return self.condition(depth)
        if self.chance(0.2):
            name = self.rng.choice(["T.min", "T.max"])
            a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
            return Value(f"{name}({a.text}, {b.text})", max(a.bound, b.bound))
        return self.integer(dtype, depth) if dtype in INTS else self.float(dtype, depth)

    def leaf(self, dtype: str) -> Value:
        known = [value for kind, value in self.lets if kind == dtype]
        if known and self.chance(0.7):
            return self.rng.choice(known)
        if self.axes and dtype != "bool" and self.chance(0.5):
            axis = self.rng.choice(self.axes)
            extent = axis.extent if isinstance(axis.extent, int) else 64
            if dtype in INDICES and not self.has_axes_as_values:
                return self.constant(dtype)
            if dtype in INTS or self.rule != "exact" or axis.start + extent < EXACT[dtype]:
                return Value(f'T.Cast("{dtype}", {axis.name})', float(axis.start + extent))
        if self.buffers and self.chance(0.6):
            return self.cast(dtype, 1)
        return self.constant(dtype)

    def cast(self, dtype: str, depth: int) -> Value:
        """A conversion from another type; what becomes a float that must stay exact is made small before."""
        others = [buffer.dtype for buffer in self.buffers if buffer.dtype != dtype] or ["int32"]
        source = self.rng.choice(others) if self.chance(0.8) else self.rng.choice(DTYPES)
        inner = self.value(source, depth - 1)
        if dtype in INDICES and not self.has_axes_as_values and any(f", {a.name})" in inner.text for a in self.axes):
            return self.constant(dtype)  # made from variables of loops, if by way of another type
        if dtype not in FLOATS or self.rule != "exact":
            return Value(f'T.Cast("{dtype}", {inner.text})', inner.bound)
        if source in INTS:
            return Value(f'T.Cast("{dtype}", ({inner.text}) % T.{source}(5))', 4.0)
        if source in FLOATS and inner.bound >= EXACT[dtype]:
            return self.constant(dtype)
        return Value(f'T.Cast("{dtype}", {inner.text})', max(inner.bound, 1.0))

    def condition(self, depth: int) -> Value:
        if self.lets and self.chance(0.5):
            dtype, variable = self.rng.choice(self.lets)
            if dtype == "bool":
                return variable
            operator = self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
            return Value(f"({variable.text} {operator} {self.value(dtype, 2).text})")
        if self.chance(0.3):
            a, b = self.value("bool", depth - 1), self.value("bool", depth - 1)
            return Value(f"({a.text} {self.rng.choice(['and', 'or'])} {b.text})")
        if self.chance(0.1):
            return Value(f"(not {self.value('bool', depth - 1).text})")
        types = [buffer.dtype for buffer in self.buffers] or ["int32"]
        dtype = self.rng.choice([*types, "int32"])
        if dtype in FLOATS and self.chance(0.2):
            return Value(f"T.{self.rng.choice(['isnan', 'isinf', 'isfinite'])}({self.value(dtype, depth - 1).text})")
        operator = self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
        if dtype in INTS and self.chance(0.15 * self.oddness):
            a, b = self.value(dtype, depth - 1).text, self.value(dtype, depth - 1).text
            remainder = f"T.{self.rng.choice(['floormod', 'truncmod'])}({a}, {b}) {operator} T.{dtype}(1)"
            zero = f"T.{dtype}(0)"
            return Value(f"({b} != {zero} and {remainder})" if self.chance(0.5) else f"({b} == {zero} or {remainder})")
        return Value(f"({self.value(dtype, depth - 1).text} {operator} {self.value(dtype, depth - 1).text})")

    def integer(self, dtype: str, depth: int) -> Value:
        a = self.value(dtype, depth - 1).text
        draw = self.rng.randrange(12)
        if draw == 0:
            divisor = self.rng.choice([2, 3, 7, limits(dtype)[1]] + ([-3, -1] if dtype in SIGNED else []))
            name = self.rng.choice(["floordiv", "floormod", "truncdiv", "truncmod"])
            return Value(f"T.{name}({a}, T.{dtype}({divisor}))")
        if draw == 1:
            b = self.value(dtype, depth - 1).text
            name = self.rng.choice(["floordiv", "floormod", "truncdiv", "truncmod"])
            if self.chance(0.3):
                return Value(f"T.if_then_else({b} != T.{dtype}(0), T.{name}({a}, {b}), {a})")
            return Value(f"T.{name}({a}, T.bitwise_or({b}, T.{dtype}(1)))")
        if draw == 2:
            bits = self.rng.randrange(int(dtype.removeprefix("u").removeprefix("int")))
            return Value(f"T.{self.rng.choice(['shift_left', 'shift_right'])}({a}, T.{dtype}({bits}))")
        if draw == 3:
            return Value(f"T.{self.rng.choice(['bitwise_not', 'popcount', 'abs'])}({a})")
        b = self.value(dtype, depth - 1).text
        if draw <= 5:
            return Value(f"T.{self.rng.choice(['bitwise_and', 'bitwise_or', 'bitwise_xor'])}({a}, {b})")
        return Value(f"({a} {self.rng.choice(['+', '+', '-', '*'])} {b})")

    def float(self, dtype: str, depth: int) -> Value:
        a = self.value(dtype, depth - 1)
        if self.chance(0.2):
            return Value(f"T.{self.rng.choice(['floor', 'ceil', 'trunc', 'round', 'fabs'])}({a.text})", a.bound)
        if self.rule != "exact" and self.chance(0.08):
            return Value(f"T.sqrt(T.fabs({a.text}))")  # rounded once, so that it is the same everywhere
        b = self.value(dtype, depth - 1)
        if self.chance(0.06):
            return Value(f"T.fmod({a.text}, {b.text})", a.bound)
        if self.rule == "multiplicative":
            if self.rng.choice(["*", "*", "/"]) == "*":
                return Value(f"({a.text} * {b.text})")
            # No quotients by zero: their sign would be that of the zero, which min and max leave open.
            return Value(f"({a.text} / T.Select({b.text} == T.{dtype}(0), T.{dtype}(1), {b.text}))")
        operator = self.rng.choice(["+", "-"] if self.rule == "additive" else ["+", "+", "-", "*"])
        bound = a.bound * b.bound if operator == "*" else a.bound + b.bound
        if self.rule == "exact" and bound >= EXACT[dtype] / 64:
            return Value(f"T.max({a.text}, {b.text})", max(a.bound, b.bound))
        return Value(f"({a.text} {operator} {b.text})", bound)
