"""Trees of Python numbers, choices between them and arithmetic, keep their digits until they meet an operand.

Fractions say what a tree is; a number that had become float32 on the way would be off by 1e-8."""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir, te
from tilewright.compat import tvm
from tilewright.script import tir as T
from tilewright.script.ir_builder import IRBuilder
from tilewright.script.ir_builder import tir as B

POINTS = 8
FLAGS = [np.array([point >> bit & 1 for point in range(POINTS)], "int32") for bit in range(3)]
NUMBERS = [0.1, 0.2, 0.7, 1.1, 3.3, 1e-3, 0.5, 2.0, 3, 7, 1 / 3, 2**20]


@dataclass
class Tree:
    """Text, and at each point the value and a bound of all magnitudes in it."""

    text: str
    values: list[Fraction]
    sizes: list[Fraction]


def leaf(rng: random.Random) -> Tree:
    number = rng.choice(NUMBERS)
    return Tree(repr(number), [Fraction(number)] * POINTS, [Fraction(number)] * POINTS)


def chosen(rng: random.Random, depth: int) -> Tree:
    a, b, bit = tree(rng, depth - 1), tree(rng, depth - 1), rng.randrange(3)
    text = rng.choice(["T.Select(F{}[v] > 0, {}, {})", "T.if_then_else(F{}[v] > 0, {}, {})"])
    picked = [a if FLAGS[bit][point] else b for point in range(POINTS)]
    return Tree(
        text.format(bit, a.text, b.text),
        [which.values[point] for point, which in enumerate(picked)],
        [max(a.sizes[point], b.sizes[point]) for point in range(POINTS)],
    )


def tree(rng: random.Random, depth: int) -> Tree:
    kind = rng.random()
    if depth == 0 or kind < 0.1:
        return leaf(rng)
    if kind < 0.45:
        return chosen(rng, depth)
    if kind < 0.55:
        a = tree(rng, depth - 1)
        return Tree(f"(-{a.text})", [-value for value in a.values], a.sizes)
    a, b = tree(rng, depth - 1), tree(rng, depth - 1)
    both = list(zip(a.values, b.values, strict=True))
    sizes = list(zip(a.sizes, b.sizes, strict=True))
    if kind < 0.65 and "." in a.text.replace("T.", ""):
        name = rng.choice(["min", "max"])
        function = {"min": min, "max": max}[name]
        return Tree(f"T.{name}({a.text}, {b.text})", [function(*pair) for pair in both], [max(pair) for pair in sizes])
    symbol = rng.choice("+-*/" if kind < 0.9 else "+-")
    if symbol == "/" and not all(abs(value) * 1000 > size for value, size in zip(b.values, b.sizes, strict=True)):
        symbol = "*"  # what cancels loses digits in any type
    function = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[symbol]
    bound = [x + y if symbol in "+-" else x * y for x, y in sizes]
    if symbol == "/":
        bound = [x / y * 1000 for x, y in zip(a.sizes, b.sizes, strict=True)]
    return Tree(f"({a.text} {symbol} {b.text})", [function(*pair) for pair in both], bound)


def has_choice_of_floats(text: str) -> bool:
    return "F" in text and "." in text.replace("T.", "")


def check(found: np.ndarray, wanted: list[Fraction], sizes: list[Fraction], eps: float, text: str) -> None:
    for point in range(POINTS):
        error = abs(Fraction(float(found[point])) - wanted[point])
        assert error <= Fraction(eps) * sizes[point], (text, point, float(found[point]), float(wanted[point]))


def constants(function: Any) -> set[str]:
    found: set[str] = set()
    ir.visit(function, lambda node: found.add(node.dtype) if isinstance(node, ir.FloatImm) else None)
    return found


A64 = np.array([1.0, 0.1, 3.7, -2.2, 1e-3, 5.5, -0.7, 9.0])
A_EXACT = [Fraction(float(a)) for a in A64]


def through_text(text: str, dtype: str) -> ir.PrimFunc:
    flags = ", ".join(f"F{bit}: T.Buffer(({POINTS},), 'int32')" for bit in range(3))
    return tw.script.from_source(
        f"@T.prim_func\ndef main({flags}, A: T.Buffer(({POINTS},), {dtype!r}), O: T.Buffer(({POINTS},), {dtype!r})):\n"
        f"    for i in range({POINTS}):\n        with T.block('O'):\n            v = T.axis.spatial({POINTS}, i)\n"
        f"            O[v] = {text}\n"
    )


def through_formula(text: str, dtype: str) -> ir.PrimFunc:
    flags = [te.placeholder((POINTS,), "int32", f"F{bit}") for bit in range(3)]
    a = te.placeholder((POINTS,), dtype, "A")
    names = {"T": T, "A": a, **{f"F{bit}": flag for bit, flag in enumerate(flags)}}
    return te.create_prim_func([*flags, a, te.compute((POINTS,), lambda i: eval(text, {**names, "v": i}), "O")])


def through_alias(text: str, dtype: str) -> ir.PrimFunc:
    flags = [tvm.te.placeholder((POINTS,), "int32", f"F{bit}") for bit in range(3)]
    a = tvm.te.placeholder((POINTS,), dtype, "A")
    names = {"T": tvm.tir, "A": a, **{f"F{bit}": flag for bit, flag in enumerate(flags)}}
    made = tvm.te.compute((POINTS,), lambda i: eval(text, {**names, "v": i}), "O")
    return tvm.te.create_prim_func([*flags, a, made])


def through_builder(text: str, dtype: str) -> ir.PrimFunc:
    with IRBuilder() as builder, B.prim_func():
        B.func_name("main")
        flags = {f"F{bit}": B.arg(f"F{bit}", B.Buffer((POINTS,), "int32")) for bit in range(3)}
        a, out = (B.arg(name, B.Buffer((POINTS,), dtype)) for name in "AO")
        with B.serial(POINTS) as i, B.block("O"):
            v = B.axis.spatial(POINTS, i)
            B.buffer_store(out, eval(text, {"T": T, "A": a, "v": v, **flags}), [v])
    made: Any = builder.get()
    return made


@pytest.mark.parametrize("entrance", [through_text, through_formula, through_alias, through_builder])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_trees(entrance: Any, dtype: str) -> None:
    rng = random.Random(f"{entrance.__name__} {dtype}")
    eps = 1e-13 if dtype == "float64" else 2e-5
    ran = 0
    while ran < 25:
        made = tree(rng, rng.choice([1, 2, 3]))
        if not has_choice_of_floats(made.text) or max(made.sizes) > 10**30:
            continue
        ran += 1
        # Alone, a formula is float32; a program that stores a tree says its type.
        alone = [(made.text, made.values, made.sizes)] if entrance in (through_text, through_builder) else []
        text, wanted, sizes = rng.choice(
            [
                *alone,
                *[
                    (
                        f"{made.text} {symbol} A[v]" if rng.random() < 0.5 else f"A[v] {symbol} {made.text}",
                        [],
                        [
                            size + abs(a) if symbol == "+" else size * abs(a)
                            for size, a in zip(made.sizes, A_EXACT, strict=True)
                        ],
                    )
                    for symbol in "+*"
                ],
            ]
        )
        if not wanted:
            function = operator.add if " + A[v]" in text or text.startswith("A[v] +") else operator.mul
            wanted = [function(value, a) for value, a in zip(made.values, A_EXACT, strict=True)]
        program = entrance(text, dtype)
        assert constants(program) <= {dtype}, f"{text}\n{program}"
        found = np.zeros(POINTS, dtype)
        tw.compile(program, schedule="as written")(*FLAGS, A64.astype(dtype), found)
        check(found, wanted, sizes, eps, f"{text}\n{program}")
        if entrance is through_text:
            ir.assert_structural_equal(tw.script.from_source(program.script()), program)


@pytest.mark.parametrize(
    ("other", "together"),
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("float16", "float32"),
        ("int32", "float32"),
        ("uint8", "float32"),
    ],
)
def test_types_of_trees(other: str, together: str) -> None:
    """The table of docs/types.md."""
    rng = random.Random(other)
    for _ in range(60):
        made = tree(rng, 3)
        if not has_choice_of_floats(made.text) or max(made.sizes) > 10**30:
            continue
        buffers = {f"F{bit}": ir.decl_buffer((POINTS,), "int32", f"F{bit}") for bit in range(3)}
        value = eval(made.text, {"T": T, "v": ir.Var("v", "int32"), **buffers})
        if not isinstance(value, ir.Expr):
            continue
        assert value.dtype == "float32"
        beside = value * ir.Var("x", other)
        assert beside.dtype == together and constants(beside) <= {together}, (made.text, beside)
        alone = T.exp(value)
        assert alone.dtype == "float32" and constants(alone) <= {"float32"}
        assert all(np.float32(node.value) == node.value for node in floats(alone))


def floats(expr: ir.Expr) -> list[ir.FloatImm]:
    found: list[ir.FloatImm] = []
    ir.visit(expr, lambda node: found.append(node) if isinstance(node, ir.FloatImm) else None)
    return found


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1.0 / T.Select(F0[v] > 0, 3.0, 7.0) * A[v]", [1 / (3 if f else 7) for f in FLAGS[0]]),
        ("-T.Select(F0[v] > 0, 0.1, 0.2) * A[v]", [-(0.1 if f else 0.2) for f in FLAGS[0]]),
        ("(T.Select(F0[v] > 0, 1, 2) + 0.1) * A[v]", [(1 if f else 2) + 0.1 for f in FLAGS[0]]),
        ("((1 if F0[v] > 0 else 2) * 2 + 0.1) * A[v]", [(1 if f else 2) * 2 + 0.1 for f in FLAGS[0]]),
        ("T.Add(T.Select(F0[v] > 0, 0.1, 0.2), 0.3) * A[v]", [(0.1 if f else 0.2) + 0.3 for f in FLAGS[0]]),
        ("T.Select(F0[v] > 0, 0.1, 0.2).astype('float64') * A[v]", [0.1 if f else 0.2 for f in FLAGS[0]]),
        ("T.Cast('float64', T.Select(F0[v] > 0, 0.1, 0.2) + 1) * A[v]", [(0.1 if f else 0.2) + 1 for f in FLAGS[0]]),
        ("(T.Select(F0[v] > 0, 0.1, 0.2) % 0.03) * A[v]", [(0.1 if f else 0.2) % 0.03 for f in FLAGS[0]]),
        ("(T.max(0.1, 0.2) + 0.3) * A[v]", [0.2 + 0.3] * POINTS),
        ("-T.max(0.1, 0.2) * A[v]", [-0.2] * POINTS),
        ("+T.max(0.1, 0.2) * A[v]", [0.2] * POINTS),
        (
            "T.if_then_else(T.Select(F0[v] > 0, 0.1, 0.2) == 0.1, 1.0, 2.0) * A[v]",
            [1.0 if f else 2.0 for f in FLAGS[0]],
        ),
        # Equal in float32, and not in Python.
        (
            "T.if_then_else(T.Select(F0[v] > 0, 0.1, 0.2) < 0.10000000001, 1.0, 2.0) * A[v]",
            [1.0 if f else 2.0 for f in FLAGS[0]],
        ),
        (
            "T.if_then_else(0.10000000001 < T.Select(F0[v] > 0, 0.1, 0.2), 1.0, 2.0) * A[v]",
            [2.0 if f else 1.0 for f in FLAGS[0]],
        ),
        (
            "T.if_then_else(T.LT(T.Select(F0[v] > 0, 0.1, 0.2), 0.10000000001), 1.0, 2.0) * A[v]",
            [1.0 if f else 2.0 for f in FLAGS[0]],
        ),
        # Constants of a type are no numbers of Python.
        (
            "(T.Select(F0[v] > 0, T.float32(0.5), T.float32(0.25)) + 0.1) * A[v]",
            [np.float32(0.5 if f else 0.25) + np.float32(0.1) for f in FLAGS[0]],
        ),
        ("T.exp(T.Select(F0[v] > 0, 0.5, 0.25)) * A[v]", [np.exp(np.float32(0.5 if f else 0.25)) for f in FLAGS[0]]),
    ],
)
def test_trees_by_hand(text: str, want: list[float]) -> None:
    program = through_text(text, "float64")
    found = np.zeros(POINTS)
    tw.compile(program, schedule="as written")(*FLAGS, A64, found)
    np.testing.assert_allclose(found, np.array(want, "float64") * A64, rtol=1e-15 if "exp" not in text else 3e-7)
    ir.assert_structural_equal(tw.script.from_source(program.script()), program)


def test_numbers_beyond_the_range_are_refused_inside_of_trees() -> None:
    value = T.Select(ir.Var("c", "bool"), 1e300, 0.1) + 0.2
    assert (value * ir.Var("x", "float64")).dtype == "float64"
    with pytest.raises(tw.Error, match="ir/literal"):
        value * ir.Var("x", "float32")


def test_a_long_sum_of_numbers_and_operands_is_built_at_once() -> None:
    total, x = T.Select(ir.Var("c", "bool"), 0.1, 0.2), ir.Var("x", "float32")
    for _ in range(300):
        total = total + 0.1
    assert total.dtype == "float32"
    for _ in range(3000):
        x = x + 0.1
    assert x.dtype == "float32"
