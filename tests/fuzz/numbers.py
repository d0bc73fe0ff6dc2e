"""Random programs with bare numbers of Python beside operands of every type, which say themselves what they compute.

What type a number takes is the table of docs/types.md; its value is found by Python's integers and fractions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz.expressions import FLOATS, INTS, limits
from tilewright.support.numpy_dtype import numpy_dtype

Number = int | float
#: Digits of the significand, and the smallest and the largest exponent of the leading one.
FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}
EXTENT = 5


def rounded(number: Number, dtype: str) -> float | None:
    """The number in a format, ties to even; None where it is finite and beyond the range."""
    if isinstance(number, float) and not math.isfinite(number):
        return number
    exact = Fraction(number)
    if exact == 0:
        return math.copysign(0.0, number)
    digits, least, most = FORMATS[dtype]
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()  # of the leading digit, or one more
    exponent = min(max(exponent - (abs(exact) < Fraction(2) ** exponent), least), most + 1)
    quantum = Fraction(2) ** (exponent - digits + 1)
    near = round(exact / quantum) * quantum  # Fraction rounds ties to even
    return None if abs(near) >= Fraction(2) ** (most + 1) else math.copysign(float(near), number)


def alone(number: Number) -> str | None:
    """The type of a number that meets no operand."""
    if isinstance(number, float):
        return "float32" if rounded(number, "float32") is not None else None
    fitting = [dtype for dtype in ("int32", "int64", "uint64") if limits(dtype)[0] <= number <= limits(dtype)[1]]
    return fitting[0] if fitting else None


def beside(number: Number, dtype: str) -> str | None:
    """The type in which a number meets an operand of a type; None where it is refused."""
    if dtype in FLOATS:
        return dtype if rounded(number, dtype) is not None else None
    if isinstance(number, float):
        return alone(number)
    bits = 0 if dtype == "bool" else int(dtype.removeprefix("u").removeprefix("int"))
    wider = [dtype, "int64"] if dtype == "int32" else [dtype]
    usable = wider if bits >= 32 else ["int32", "int64"]
    return next((kind for kind in usable if limits(kind)[0] <= number <= limits(kind)[1]), None)


def draw_number(rng: random.Random, dtype: str) -> Number:
    """A number that is worth trying beside a type."""
    kind = rng.randrange(8)
    if kind <= 1:
        return rng.choice([0.1, -0.1, 1 / 3, math.pi, 1e-3, 2.5, -7.25, 16777217.0, 0.1 + 0.2, 1e-50, 65519.0, 1e30])
    if kind == 2:
        return rng.uniform(-100, 100)
    if kind == 3:
        return math.ldexp(rng.uniform(-2, 2), rng.randint(-160, 140))
    if kind == 4:
        low, high = limits(rng.choice(INTS))
        return rng.choice([low, high, low - 1, high + 1, high // 2 + 1])
    if kind == 5:
        return rng.choice(
            [0x9E3779B1, -1, 16777217, 2**40, 2**53 + 1, 0xFFFFFFFF, 2**24 + 3, 257, 2049, 2**70 + 2**46 + 1]
        )
    return rng.choice([2, 3, 5, 7, -3, 100])


def text_of(number: Number) -> str:
    return f"({number!r})" if number < 0 else repr(number)


def inside(number: int, dtype: str) -> bool:
    low, high = limits(dtype)
    return low <= number <= high


@dataclass
class Step:
    """A buffer that is computed: from which other one, and how."""

    name: str
    dtype: str
    source: str
    value: str
    compute: Callable[[Any], Any]


def integer(value: int, dtype: str) -> int:
    low, high = limits(dtype)
    return (value - low) % (high - low + 1) + low


class Numbers:
    """Draws a program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.special = False
        self.inputs = [(f"A{i}", rng.choice([*INTS, *FLOATS, *FLOATS])) for i in range(rng.randint(1, 3))]
        self.steps: list[Step] = []
        while len(self.steps) < 4:
            step = self.step(f"B{len(self.steps)}")
            if step is not None:
                self.steps.append(step)

    def text(self) -> str:
        buffers = [*self.inputs, *((step.name, step.dtype) for step in self.steps)]
        parameters = ", ".join(f"{name}: T.Buffer(({EXTENT},), {dtype!r})" for name, dtype in buffers)
        lines = ["@T.prim_func", f"def main({parameters}):"]
        for step in self.steps:
            lines += [
                f"    for i in range({EXTENT}):",
                f'        with T.block("{step.name}"):',
                f"            v = T.axis.spatial({EXTENT}, i)",
                f"            {step.name}[v] = {step.value}",
            ]
        return "\n".join(lines) + "\n"

    def expected(self, given: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What the parameters hold afterwards."""
        arrays = {name: array.copy() for (name, _), array in zip(self.inputs, given, strict=False)}
        with np.errstate(all="ignore"):
            for step in self.steps:
                values = [step.compute(item) for item in arrays[step.source].tolist()]
                arrays[step.name] = np.array(values, dtype=object).astype(numpy_dtype(step.dtype))
        return list(arrays.values())

    def step(self, name: str) -> Step | None:
        source, dtype = self.rng.choice(self.inputs)
        number = draw_number(self.rng, dtype)
        meeting = beside(number, dtype)
        how = self.rng.randrange(7)
        if how == 0:
            return self.choice(name, source, dtype)
        if how == 6:
            return self.choice_of_integers(name, source, dtype)
        if meeting is None:
            return None
        return (
            self.comparison(name, source, dtype, number, meeting)
            if how == 1
            else self.arithmetic(name, source, dtype, number, meeting)
        )

    def choice(self, name: str, source: str, dtype: str) -> Step | None:
        """Two numbers that meet the type of a buffer only."""
        target = self.rng.choice(FLOATS)
        yes, no = (float(draw_number(self.rng, target)) for _ in "yn")
        if any(rounded(number, kind) is None for number in (yes, no) for kind in (target, "float32")):
            return None
        a, b = text_of(yes), text_of(no)
        value = self.rng.choice([f"T.if_then_else({source}[v] > 0, {a}, {b})", f"{a} if {source}[v] > 0 else {b}"])
        return Step(name, target, source, value, lambda item: rounded(yes if item > 0 else no, target))

    def choice_of_integers(self, name: str, source: str, dtype: str) -> Step | None:
        """Two integers, and arithmetic with a third one, that meet an operand."""
        yes, no, third = (int(draw_number(self.rng, dtype)) for _ in "ynt")
        symbol = self.rng.choice(["+", "-", "*", "^", "none"])

        def tree(number: int) -> int:
            values = {"+": number + third, "-": number - third, "*": number * third, "^": number ^ third}
            return values.get(symbol, number)

        spread = [tree(yes), tree(no)]
        if symbol == "^":  # its range is that of its bits
            mask = (1 << max((n if n >= 0 else ~n).bit_length() for n in (yes, no, third))) - 1
            spread += [mask, 0 if min(yes, no, third) >= 0 else ~mask]
        own = [kind for kind in ("int32", "int64") if all(inside(n, kind) for n in (*spread, yes, no, third))]
        types = {beside(number, dtype) for number in spread}
        if not own or None in types or yes == no or dtype in ("float16", "bfloat16"):
            return None
        meeting = "int64" if "int64" in types else str(types.pop())
        condition = f"{source}[v] > 0"
        chosen = self.rng.choice(["T.Select({}, {}, {})", "({1} if {0} else {2})"])
        text = chosen.format(condition, text_of(yes), text_of(no))
        text = text if symbol == "none" else f"({text} {symbol} {text_of(third)})"

        def compute(item: Any) -> Any:
            value = tree(yes if item > 0 else no)
            if meeting not in FLOATS:
                return integer(item + value, meeting)
            one, held = rounded(item, meeting), rounded(value, meeting)
            if meeting == "float64":
                return one + held
            if not (math.isfinite(one) and math.isfinite(held)):
                return one + held
            return finite_or_infinite(Fraction(one) + Fraction(held), meeting)

        return Step(name, meeting, source, f"{source}[v] + {text}", compute)

    def comparison(self, name: str, source: str, dtype: str, number: Number, meeting: str) -> Step:
        held = rounded(number, meeting) if meeting in FLOATS else number
        operator = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])

        def compute(item: Any) -> bool:
            one = rounded(item, meeting) if meeting in FLOATS else item
            order = (one > held) - (one < held)
            by_name = {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "==": order == 0}
            return by_name.get(operator, order != 0)

        return Step(name, "bool", source, f"{source}[v] {operator} {text_of(number)}", compute)

    def arithmetic(self, name: str, source: str, dtype: str, number: Number, meeting: str) -> Step:
        held = rounded(number, meeting) if meeting in FLOATS else number
        operator = self.rng.choice(
            ["+", "-", "*", "min", "max"] if meeting in FLOATS else ["+", "-", "*", "&", "^", "min"]
        )
        is_left = self.rng.random() < 0.4

        def compute(item: Any) -> Any:
            one = rounded(item, meeting) if meeting in FLOATS else item
            a, b = (held, one) if is_left else (one, held)
            if operator in ("min", "max"):
                return (min if operator == "min" else max)(a, b)
            if meeting not in FLOATS:
                results = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "^": a ^ b}
                return integer(results[operator], meeting)
            if meeting == "float64":
                return a + b if operator == "+" else a - b if operator == "-" else a * b
            exact = Fraction(a) + Fraction(b) if operator == "+" else Fraction(a) - Fraction(b)
            exact = Fraction(a) * Fraction(b) if operator == "*" else exact
            return finite_or_infinite(exact, meeting)

        a, b = (text_of(number), f"{source}[v]") if is_left else (f"{source}[v]", text_of(number))
        value = f"T.{operator}({a}, {b})" if operator in ("min", "max") else f"{a} {operator} {b}"
        return Step(name, meeting, source, value, compute)


def finite_or_infinite(exact: Fraction, dtype: str) -> float:
    """The fraction in a format; what is beyond the range is infinite."""
    digits, least, most = FORMATS[dtype]
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()  # of the leading digit, or one more
    exponent = min(max(exponent - (abs(exact) < Fraction(2) ** exponent), least), most + 1)
    quantum = Fraction(2) ** (exponent - digits + 1)
    near = round(exact / quantum) * quantum
    if abs(near) >= Fraction(2) ** (most + 1):
        return math.copysign(math.inf, exact)
    return float(near)
