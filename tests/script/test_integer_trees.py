"""Expressions of Python integers (selections and arithmetic) keep exact values until combined with a typed operand.

Python's integers say what a tree is at each point, and which values it may have: the choices count as independent.
"""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.samples import samples
from tests.script.test_number_trees import (
    FLAGS,
    POINTS,
    through_alias,
    through_builder,
    through_formula,
    through_text,
)

import tilewright as tw
from tilewright import ir, te
from tilewright.script import tir as T

NUMBERS = [0, 1, 2, 3, 5, 7, -1, -3, 300, 16777217, 10**9, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**40]
OPERATORS: dict[str, Callable[[int, int], int]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "<<": operator.lshift, ">>": operator.rshift},
    **{"//": operator.floordiv, "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor},
}
INT64 = range(-(2**63), 2**63)


@dataclass
class Tree:
    """Text, the value at each point, what it may be, and the least and the largest number that is computed in it."""

    text: str
    values: list[int]
    possible: frozenset[int]
    least: int
    most: int


def tree(rng: random.Random, depth: int, symbols: str) -> Tree:
    if depth == 0:
        number = rng.choice(NUMBERS)
        return Tree(f"({number})", [number] * POINTS, frozenset([number]), number, number)
    a, b = tree(rng, rng.randrange(depth), symbols), tree(rng, depth - 1, symbols)
    both = list(zip(a.values, b.values, strict=True))
    kind = rng.random()
    if kind < 0.5 or "F" not in a.text + b.text:
        bit = rng.randrange(3)
        text = rng.choice(["T.Select(F{}[v] > 0, {}, {})", "T.if_then_else(F{}[v] > 0, {}, {})"])
        values = [x if FLAGS[bit][point] else y for point, (x, y) in enumerate(both)]
        text, possible = text.format(bit, a.text, b.text), a.possible | b.possible
    elif kind < 0.6:
        name, function = rng.choice([("min", min), ("max", max)])
        text, values = f"T.{name}({a.text}, {b.text})", [function(*pair) for pair in both]
        possible = frozenset(function(*pair) for pair in itertools.product(a.possible, b.possible))
    elif kind < 0.7:
        text, values, possible = f"(-{b.text})", [-y for y in b.values], frozenset(-y for y in b.possible)
        a = b
    else:
        symbol = rng.choice(symbols.split())
        if (symbol in ("<<", ">>") and not all(0 <= y < 40 for y in b.possible)) or (
            symbol in ("//", "%") and not all(y > 0 for y in b.possible)
        ):
            symbol = "+"
        text, values = f"({a.text} {symbol} {b.text})", [OPERATORS[symbol](*pair) for pair in both]
        possible = frozenset(OPERATORS[symbol](*pair) for pair in itertools.product(a.possible, b.possible))
    return Tree(text, values, possible, min(a.least, b.least, *possible), max(a.most, b.most, *possible))


def sample_tree(rng: random.Random, symbols: str) -> Tree:
    """One that int64 holds."""
    while True:
        made = tree(rng, rng.choice([1, 2, 3, 4]), symbols)
        # The range of a bitwise operation is that of its bits: one more bit than any value has.
        if "F" in made.text and made.least >= -(2**62) and made.most < 2**62:
            return made


A = [1, -7, 100, 2**20, 0, -1, 5, 127]


@pytest.mark.parametrize("entrance", [through_text, through_builder])
def test_stored_trees_have_the_values_of_python(entrance: Any) -> None:
    rng = random.Random(f"stored {entrance.__name__}")
    for _ in range(samples(20)):
        made = sample_tree(rng, "+ - * << >> // % & | ^")
        program = entrance(made.text, "int64")
        found = np.zeros(POINTS, "int64")
        tw.compile(program, schedule="as written")(*FLAGS, np.array(A), found)
        assert found.tolist() == made.values, f"{made.text}\n{program}"
        ir.assert_structural_equal(tw.script.from_source(program.script()), program)


@pytest.mark.parametrize("entrance", [through_text, through_formula, through_alias, through_builder])
def test_trees_beside_int64_and_float64(entrance: Any) -> None:
    rng = random.Random(f"beside {entrance.__name__}")
    for _ in range(samples(12)):
        made = sample_tree(rng, "+ - * << >> // %")
        program = entrance(f"A[v] - {made.text}", "int64")
        found = np.zeros(POINTS, "int64")
        tw.compile(program, schedule="as written")(*FLAGS, np.array(A), found)
        assert found.tolist() == [(a - value + 2**63) % 2**64 - 2**63 for a, value in zip(A, made.values, strict=True)]
        text = f"A[v] * {made.text}" if rng.random() < 0.5 else f"({made.text} * 1.0) * A[v]"
        as_float = entrance(text, "float64")
        halves, out = np.array(A) / 2, np.zeros(POINTS)
        tw.compile(as_float, schedule="as written")(*FLAGS, halves, out)
        # Up to 2^53 each step is exact; beyond, the number is rounded once.
        assert out.tolist() == [a * float(value) for a, value in zip(halves.tolist(), made.values, strict=True)], text


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int32", "int64", "uint8", "int16"])
def test_types_beside_integers(dtype: str) -> None:
    """The table of docs/types.md, for whatever the tree may be."""
    rng = random.Random(dtype)
    usable = {"int32": ["int32", "int64"], "uint8": ["int32", "int64"], "int16": ["int32", "int64"]}.get(dtype, [dtype])
    for _ in range(samples(60)):
        made = sample_tree(rng, "+ - *")
        buffers = {f"F{bit}": ir.decl_buffer((POINTS,), "int32", f"F{bit}") for bit in range(3)}
        value = eval(made.text, {"T": T, "v": ir.Var("v", "int32"), **buffers})
        bounds = min(made.possible), max(made.possible)
        fitting = [kind for kind in usable if np.iinfo(kind).min <= bounds[0] and bounds[1] <= np.iinfo(kind).max]
        for make in (operator.add, operator.lt, operator.xor, T.max, T.GE):
            if not fitting:
                with pytest.raises(tw.Error, match="ir/literal"):
                    make(ir.Var("x", dtype), value)
                continue
            node = make(ir.Var("x", dtype), value)
            both = node.args if isinstance(node, ir.Call) else [getattr(node, side, node) for side in "ab"]
            assert {part.dtype for part in both} == {fitting[0]}, (made.text, dtype)


def test_alone_a_tree_has_the_first_type_that_holds_it() -> None:
    c = ir.Var("c", "bool")
    for value, dtype in [
        (T.Select(c, 7, 2) * 1000000000, "int64"),
        (T.Select(c, 2**31 - 1, 2) + 1, "int64"),
        (T.Select(c, 2**31 - 2, 2) + 1, "int32"),
        (-T.Select(c, -(2**31), 2), "int64"),
        (T.Select(c, 7, 1) << 40, "int64"),
        (1 << T.Select(c, 7, 30), "int32"),
        (1 << T.Select(c, 7, 31), "int64"),
        (~T.Select(c, 2**31 - 1, 1), "int32"),
        (T.Select(c, 2**63, 1), "uint64"),
        (T.Select(c, 2**40, 1) // 2**40, "int64"),
        (T.Select(c, 7, 2) / 2, "float32"),
        (T.max(2**31 - 1, 5) + 1, "int64"),
        (T.Select(c, T.int32(2**31 - 1), T.int32(2)) + 1, "int32"),
    ]:
        assert value.dtype == dtype, value


@pytest.mark.parametrize(
    "text",
    [
        "A[v] > T.Select(F0[v] > 0, -1, 5)",
        "A[v] > (-1 if F0[v] > 0 else 5)",
        "A[v] == T.if_then_else(F0[v] > 0, -1, 5)",
        "A[v] + (T.Select(F0[v] > 0, 3, 2) - T.Select(F0[v] > 0, 4, 2))",
        "A[v] > T.Select(F0[v] > 0, 2**64, 5)",
        "A[v] + T.Select(F0[v] > 0, 2**64, 5) * 2",
        "T.max(A[v], ~T.Select(F0[v] > 0, 1, 5))",
        "T.Select(F0[v] > 0, 2**63, -1) ^ 1",
        "T.Select(F0[v] > 0, 2**63, -1)",
        "T.Select(F0[v] > 0, 1, 5) < 2**64",
        "T.Select(F0[v] > 0, T.Select(F0[v] > 0, 2**64, 3), 5)",
    ],
)
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_values_that_no_type_holds_are_refused(text: str, dtype: str) -> None:
    with pytest.raises(tw.ScriptError, match="ir/literal"):
        through_text(text, dtype)


def test_a_tree_that_no_type_holds_is_refused_wherever_it_is_passed() -> None:
    """Conversions of arguments may not throw: this ended the process."""
    c = ir.Var("c", "bool")
    for value in (T.Select(c, 1e300, 0.1), T.Select(c, 2**64, 1), T.Select(c, 2**63, -1)):
        for make in (ir.Evaluate, ir.Not, T.exp, T.floor):
            with pytest.raises(tw.Error, match="ir/literal"):
                make(value)


def test_values_that_a_buffer_does_not_hold_are_refused() -> None:
    for text, dtype in [("T.Select(F0[v] > 0, 100, 5) * 3", "int8"), ("T.Select(F0[v] > 0, 0, 1) - 1", "uint32")]:
        with pytest.raises(tw.ScriptError, match="builder/constant"):
            through_text(text, dtype)
    with pytest.raises(tw.ScriptError, match=r"ir/literal.*beyond the range of float16"):
        through_text("A[v] * T.Select(F0[v] > 0, 70000, 5)", "float16")
    assert through_text("T.Cast('int8', T.Select(F0[v] > 0, 100, 5) * 3)", "int8")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("T.Select(F0[v] > 0, 16777217, 5) * 1.0", [16777217.0 if f else 5.0 for f in FLAGS[0]]),
        ("T.Select(F0[v] > 0, 7, 2) / 2", [3.5 if f else 1.0 for f in FLAGS[0]]),
        ("T.Select(F0[v] > 0, 2**70, 5) * 3", [float(2**70 * 3 if f else 15) for f in FLAGS[0]]),
        ("T.Select(F0[v] > 0, 2**63, -1) + 0.5", [2.0**63 + 0.5 if f else -0.5 for f in FLAGS[0]]),
        ("T.if_then_else(T.Select(F0[v] > 0, 2**40, 5) == 2**40, 1.0, 2.0)", [1.0 if f else 2.0 for f in FLAGS[0]]),
    ],
)
def test_trees_of_integers_in_float64(text: str, want: list[float]) -> None:
    found = np.zeros(POINTS)
    program = through_text(text, "float64")
    tw.compile(program, schedule="as written")(*FLAGS, np.zeros(POINTS), found)
    assert found.tolist() == want
    ir.assert_structural_equal(tw.script.from_source(program.script()), program)


def test_constants_of_int32_that_overflow_are_printed_with_their_type() -> None:
    """Without it, the text would be a tree of Python's integers, which does not overflow."""
    text = "T.Cast('int64', T.Select(F0[v] > 0, T.int32(2147483647), T.int32(2)) + T.int32(1)) + A[v]"
    program = through_text(text, "int64")
    found = np.zeros(POINTS, "int64")
    tw.compile(program, schedule="as written")(*FLAGS, np.zeros(POINTS, "int64"), found)
    assert found.tolist() == [-(2**31) if f else 3 for f in FLAGS[0]]
    ir.assert_structural_equal(tw.script.from_source(program.script()), program)


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Div", "Mod", "Min", "Max", "LT", "EQ"])
def test_operators_of_int32_constants_are_printed_as_what_they_are(kind: str) -> None:
    values = (-(2**31), -(2**31) + 1, -7, -1, 1, 5, 2**30, 2**31 - 2, 2**31 - 1)
    for a, b in itertools.product(values, values):
        node = getattr(ir, kind)(ir.IntImm("int32", a), ir.IntImm("int32", b))
        outer = ir.Add(node, ir.IntImm("int32", 3)) if node.dtype == "int32" else node
        for value in (node, outer):
            handle, buffer = ir.Var("a", "handle"), ir.decl_buffer((1,), "int32", name="A")
            store = ir.BufferStore(buffer, ir.Cast("int32", value), [0])
            func = ir.PrimFunc(params=[handle], buffer_map={handle: buffer}, ret_type="void", body=store)
            again = tw.script.from_source(func.script())
            assert ir.structural_equal(again.body, func.body, map_free_vars=True), func.script()


@pytest.mark.parametrize("name", ["shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor", "abs"])
def test_calls_with_int32_constants_are_printed_as_what_they_are(name: str) -> None:
    values = (-(2**31), -7, 0, 1, 5, 31, 40, 2**31 - 1)
    for a, b in itertools.product(values, values):
        numbers = [f"T.int32({a})", f"T.int32({b})"][: 1 if name == "abs" else 2]
        program = through_text(f"T.Cast('int64', T.{name}({', '.join(numbers)})) + A[v]", "int64")
        ir.assert_structural_equal(tw.script.from_source(program.script()), program)


def test_a_tree_that_stands_in_many_places_of_itself_is_built_at_once() -> None:
    for start in (1, 0.5):
        total = T.Select(ir.Var("c", "bool"), start, 2)
        for _ in range(60):
            total = T.max(total + total, 3) // 2
        assert total.dtype in ("int32", "int64", "uint64", "float32")


SCALARS = [
    (np.float64(0.1), "float32", "float64"),
    (np.float32(0.1), "float64", "float64"),
    (np.float16(0.1), "float32", "float32"),
    (np.float32(0.1), "float16", "float32"),
    (np.float64(0.1), "int32", "float64"),
    (np.int64(3), "int8", "int64"),
    (np.int8(3), "int8", "int8"),
    (np.int8(3), "uint8", "uint8"),
    (np.uint8(3), "int32", "int32"),
    (np.int32(3), "uint32", "uint32"),
    (np.int32(-1), "int64", "int64"),
    (np.int32(-1), "uint8", "int32"),
    (np.int64(3), "float16", "float16"),
]


def stored_values(func: Any) -> list[ir.Expr]:
    found: list[ir.Expr] = []
    ir.visit(func, lambda node: found.append(node.value) if isinstance(node, ir.BufferStore) else None)
    return found


@pytest.mark.parametrize(("scalar", "dtype", "together"), SCALARS)
def test_scalars_of_numpy_have_a_type(scalar: Any, dtype: str, together: str) -> None:
    """The table of two operands, on either side, in formulas and in scripts."""
    element = te.placeholder((POINTS,), dtype, "A")[0]
    for make in (operator.add, operator.sub, operator.mul, T.max, T.Add, te.power if "f" in together else operator.xor):
        for node in (make(element, scalar), make(scalar, element)):
            assert node.dtype == together, (make, scalar)
    for make in (operator.lt, operator.ge, operator.eq):
        for node in (make(element, scalar), make(scalar, element)):
            assert isinstance(node, ir.Expr) and {node.a.dtype, node.b.dtype} == {together}
    for text in ("A[v] * s", "s * A[v]"):
        source = (
            f"@T.prim_func\ndef main(A: T.Buffer((4,), {dtype!r}), O: T.Buffer((4,), {together!r})):\n"
            f"    for i in range(4):\n        with T.block('O'):\n            v = T.axis.spatial(4, i)\n"
            f"            O[v] = {text}\n"
        )
        values = stored_values(tw.script.from_source(source, extra_vars={"s": scalar}))
        assert [(type(value), value.dtype) for value in values] == [(ir.Mul, together)]


def test_negative_scalars_beside_unsigned_operands_are_refused() -> None:
    for dtype, scalar in (("uint32", np.int32(-1)), ("uint64", np.int32(-1)), ("uint32", T.int32(-1))):
        x = te.placeholder((4,), dtype, "A")[0]
        for make in (operator.mul, operator.gt, T.max, T.Add):
            for pair in ((x, scalar), (scalar, x)):
                with pytest.raises(tw.Error, match="ir/literal"):
                    make(*pair)


def test_arrays_of_numpy_still_multiply_element_by_element() -> None:
    x = te.placeholder((4,), "float32", "A")[0]
    made = np.array([1.0, 2.0]) * x
    assert made.shape == (2,) and [element.dtype for element in made] == ["float32"] * 2
