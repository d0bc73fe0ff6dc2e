"""Indices and extents that are computed from data: a sum that simplification divides or compares stays in its type.

Data may be any number of their type, other than axes and sizes, which are taken to be small. Wherever every part of an
expression is in the type, so is every sum of the simplified one that a quotient, a remainder, a minimum or a maximum
has as an operand. The sum itself may be taken in another order, since an index is computed with 64 bits.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.samples import samples
from tests.typed_expressions import UndefinedValueError, limits

from tilewright import _core, arith
from tilewright.script import tir as T

OPERATORS = ["Add", "Add", "Sub", "Sub", "Mul", "Min", "Max", "FloorDiv", "FloorMod"]
CONSTANTS = [0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, -1, -2, -4, -64]


def value_of(e: Any, data: list[int], *, every_part: bool, is_part: bool = False) -> int:
    """The value by Python's integers; refuses sums that leave their type, and with `every_part` their parts, too."""
    kind = type(e).__name__
    if kind == "IntImm":
        return int(e.value)
    if kind == "BufferLoad":
        return data[int(e.indices[0].value)]
    is_sum = kind in ("Add", "Sub", "Mul")
    a, b = (value_of(operand, data, every_part=every_part, is_part=is_sum) for operand in (e.a, e.b))
    if not is_sum:
        return {"Min": min, "Max": max, "FloorDiv": int.__floordiv__, "FloorMod": int.__mod__}[kind](a, b)
    value = {"Add": a + b, "Sub": a - b, "Mul": a * b}[kind]
    low, high = limits(str(e.dtype))
    if (every_part or not is_part) and not low <= value <= high:
        raise UndefinedValueError
    return value


def expression(rng: random.Random, loads: list[Any], depth: int) -> Any:
    dtype = str(loads[0].dtype)
    constant = _core.const(rng.choice(CONSTANTS), dtype)
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(loads) if rng.random() < 0.75 else constant
    name = rng.choice(OPERATORS)
    a = expression(rng, loads, depth - 1)
    if name in ("Mul", "FloorDiv", "FloorMod"):
        return getattr(T, name)(a, _core.const(rng.choice([2, 3, 4, 6, 8, 64]), dtype))
    return getattr(T, name)(a, constant if rng.random() < 0.5 else expression(rng, loads, depth - 1))


def check(seed: int) -> bool:
    rng = random.Random(seed)
    dtype = rng.choice(["int32", "int64"])
    low, high = limits(dtype)
    buffer = _core.decl_buffer((3,), dtype)
    e = expression(rng, [T.BufferLoad(buffer, [i]) for i in range(3)], rng.randint(2, 4))
    simple = arith.Analyzer().simplify(e)
    compared = False
    for _ in range(60):
        data = [rng.choice([low, low // 2, 0, high // 2, high]) + rng.randint(-70, 70) for _ in range(3)]
        data = [min(max(number, low), high) for number in data]
        try:
            wanted = value_of(e, data, every_part=True)
        except UndefinedValueError:
            continue
        compared = True
        try:
            assert value_of(simple, data, every_part=False) == wanted, (seed, str(e), str(simple), data)
        except UndefinedValueError:
            pytest.fail(f"seed {seed}: {e} became {simple}, which leaves {dtype} with {data}")
    return compared


@pytest.mark.parametrize("seed", range(samples(6)))
def test_sums_over_data_stay_in_their_type(seed: int) -> None:
    assert sum(check(1000 * seed + number) for number in range(400)) > 300
