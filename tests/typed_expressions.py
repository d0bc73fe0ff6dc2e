"""Random expressions that mix integer types of all widths, and what they are by Python's integers."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

from tilewright import _core
from tilewright.script import tir as T

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
#: Most expressions are of indices, whose arithmetic is simplified most.
TYPES = [*INTEGERS, *["int32"] * 4, *["int64"] * 3]
NUMBERS = ["Add", "Sub", "Mul", "Min", "Max", "Div", "Mod", "FloorDiv", "FloorMod", "FloorDiv", "FloorMod"]
BITS = ["shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"]
COMPARISONS = ["EQ", "NE", "LT", "LE", "GT", "GE"]
CONSTANTS = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 63, 64, 100, 127, 128, 200, 255, -1, -2, -3, -4, -8, -128]


class UndefinedValueError(Exception):
    """A division by 0, or an index that leaves its type."""


def limits(dtype: str) -> tuple[int, int]:
    bits = 1 if dtype == "bool" else int(dtype.split("int")[1])
    return (0, 2**bits - 1) if dtype[0] in "ub" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def wrapped(dtype: str, value: int) -> int:
    low, high = limits(dtype)
    return (value - low) % (high - low + 1) + low


def result_of(dtype: str, value: int) -> int:
    """Indices do not overflow; all other integers wrap."""
    if dtype in ("int32", "int64") and wrapped(dtype, value) != value:
        raise UndefinedValueError
    return wrapped(dtype, value)


def divided(name: str, a: int, b: int) -> int:
    if b == 0:
        raise UndefinedValueError
    if name.startswith("Floor"):
        return a // b if name == "FloorDiv" else a % b
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if name == "Div" else a - quotient * b


def shifted(name: str, dtype: str, a: int, count: int) -> int:
    if 0 <= count < limits(dtype)[1].bit_length() + (dtype[0] == "i"):
        return a << count if name == "shift_left" else a >> count
    return -1 if name == "shift_right" and a < 0 else 0


SIMPLE: dict[str, Callable[[int, int], int]] = {
    **{"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Min": min, "Max": max},
    **{"bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor},
}


def value_of(e: Any, point: dict[Any, int]) -> int:
    """The value at a point, by Python's integers."""
    kind, dtype = type(e).__name__, str(e.dtype)
    if kind == "IntImm":
        return wrapped(dtype, int(e.value))
    if kind == "Var":
        return point[e]
    if kind == "Cast":
        value = value_of(e.value, point)
        return int(value != 0) if dtype == "bool" else wrapped(dtype, value)
    if kind == "Not":
        return 1 - value_of(e.a, point)
    if kind in ("And", "Or"):
        return value_of(e.b, point) if value_of(e.a, point) == (kind == "And") else int(kind == "Or")
    if kind == "Select":  # evaluates both values
        values = [value_of(value, point) for value in (e.false_value, e.true_value)]
        return values[value_of(e.condition, point)]
    name = e.op.name.removeprefix("tir.") if kind == "Call" else kind
    if name == "if_then_else":
        return value_of(e.args[1] if value_of(e.args[0], point) else e.args[2], point)
    operands = e.args if kind == "Call" else [e.a, e.b]
    a, *rest = [value_of(operand, point) for operand in operands]
    if name == "clz":
        low, high = limits(str(operands[0].dtype))
        return (high - low).bit_length() - (a % (high - low + 1)).bit_length()
    if name in COMPARISONS:
        return int(getattr(operator, name.lower())(a, *rest))
    if name in ("shift_left", "shift_right"):
        return result_of(dtype, shifted(name, dtype, a, *rest))
    return result_of(dtype, SIMPLE[name](a, *rest) if name in SIMPLE else divided(name, a, *rest))


class Sampler:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.variables: list[Any] = []

    def constant(self, dtype: str) -> Any:
        low, high = limits(dtype)
        near = self.rng.random() < 0.85
        value = wrapped(dtype, self.rng.choice(CONSTANTS if near else [low, high, low + 1, high - 1, high // 2]))
        return _core.const(bool(value) if dtype == "bool" else value, dtype)

    def leaf(self, dtype: str) -> Any:
        variable = self.rng.choice(self.variables)
        if dtype == "bool" or self.rng.random() < 0.3:
            return self.constant(dtype)
        return variable if variable.dtype == dtype else T.Cast(dtype, variable)

    def expression(self, dtype: str, depth: int) -> Any:
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            return self.leaf(dtype)
        if rng.random() < 0.1:
            choose = T.Select if rng.random() < 0.5 else T.if_then_else
            return choose(*(self.expression(of, depth - 1) for of in ("bool", dtype, dtype)))
        if dtype == "bool":
            if rng.random() < 0.35:
                return self.logic(depth)
            of = rng.choice(TYPES)
            return self.binary(rng.choice(COMPARISONS), of, depth)
        if rng.random() < 0.2:
            of = rng.choice(["bool", *TYPES])
            return T.Cast(dtype, self.expression(of, depth - 1))
        if rng.random() < 0.07:
            return T.Cast(dtype, T.clz(self.expression(rng.choice(INTEGERS), depth - 1)))
        return self.binary(rng.choice([*NUMBERS, *NUMBERS, *BITS]), dtype, depth)

    def logic(self, depth: int) -> Any:
        """Some conditions guard what stands behind them, in parts that have one condition in common."""
        a, b, c = (self.expression("bool", depth - 1) for _ in range(3))
        of = self.rng.choice(["int32", "int64", "uint8"])
        divisor = self.expression(of, depth - 1)
        divides = T.EQ(T.FloorMod(self.expression(of, depth - 1), divisor), self.constant(of))
        guards = T.NE(divisor, _core.const(0, of))
        outer, inner = (T.Or, T.And) if self.rng.random() < 0.5 else (T.And, T.Or)
        return self.rng.choice([
            inner(a, b), outer(inner(a, b), inner(c, b)), T.Not(a), T.And(guards, divides),
            T.Or(T.And(guards, divides), T.And(T.And(a, guards), divides)),
        ])  # fmt: skip

    def binary(self, name: str, dtype: str, depth: int) -> Any:
        a = self.expression(dtype, depth - 1)
        is_constant = self.rng.random() < (0.8 if "Div" in name or "Mod" in name or "shift" in name else 0.4)
        b = self.constant(dtype) if is_constant else self.expression(dtype, depth - 1)
        return getattr(T, name)(a, b) if name[0].isupper() else T.call_intrin(dtype, f"tir.{name}", a, b)

    def ranges(self) -> list[tuple[int, int]]:
        """Of new variables, some at an end of their type: the first number, and how many there are."""
        ranges = []
        for number in range(self.rng.randint(1, 3)):
            dtype = self.rng.choice(TYPES)
            low, high = limits(dtype)
            count = self.rng.choice([1, 2, 3, 4, 7, 8])
            first = self.rng.choice([0, 0, 0, 1, -1, -3, 5, low, high - 8])
            self.variables.append(_core.Var(f"x{number}", dtype))
            ranges.append((min(max(first, low), high - count), count))
        return ranges
