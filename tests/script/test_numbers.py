"""A number of Python keeps its value until it meets an operand, whose type it takes: the table of docs/types.md.

Types are expected by that table, values by Python's integers and fractions (fuzz/numbers.py).
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.samples import samples

import tilewright as tw
from fuzz.expressions import FLOATS, INTS
from fuzz.numbers import Number, alone, beside, draw_number, rounded
from tilewright import ir, te
from tilewright.script import tir as T
from tilewright.script.ir_builder import IRBuilder
from tilewright.script.ir_builder import tir as B

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul")},
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    **{name: getattr(T, name) for name in ("Add", "Sub", "Mul", "Min", "Max", "LT", "LE", "GT", "GE", "EQ", "NE")},
    "min": T.min,
    "max": T.max,
    "if_then_else": lambda a, b: T.if_then_else(ir.Var("c", "bool"), a, b),
    "Select": lambda a, b: T.Select(ir.Var("c", "bool"), a, b),
    "te.if_then_else": lambda a, b: te.if_then_else(ir.Var("c", "bool"), a, b),
}
OF_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "truediv": operator.truediv,
    "pow": operator.pow,
    **{name: getattr(T, name) for name in ("atan2", "fmod", "copysign", "hypot", "nextafter", "Div")},
    "T.pow": T.pow,
    "fma": lambda a, b: T.fma(a, b, ir.Var("z", (a if isinstance(a, ir.Expr) else b).dtype)),
}
OF_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift")},
    **{name: getattr(T, name) for name in ("floordiv", "floormod", "truncdiv", "truncmod", "FloorDiv", "FloorMod")},
    **{name: getattr(T, name) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")},
}


def constants(expr: ir.Expr) -> list[tuple[str, Number]]:
    found: list[tuple[str, Number]] = []
    ir.visit(expr, lambda n: found.append(number_of(n)) if isinstance(n, ir.IntImm | ir.FloatImm) else None)
    return found


def number_of(node: ir.IntImm | ir.FloatImm) -> tuple[str, Number]:
    return node.dtype, int(node) if isinstance(node, ir.IntImm) else node.value


def casts(expr: ir.Expr) -> list[str]:
    found: list[str] = []
    ir.visit(expr, lambda n: found.append(n.dtype) if isinstance(n, ir.Cast) else None)
    return found


def same(a: Number, b: Number) -> bool:
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def check(name: str, make: Callable[[Any, Any], Any], dtype: str, number: Number, is_left: bool) -> None:
    meeting = beside(number, dtype)
    x = ir.Var("x", dtype)
    arguments = (number, x) if is_left else (x, number)
    if meeting is None:
        with pytest.raises(tw.Error, match="ir/literal"):
            make(*arguments)
        return
    try:
        expr = make(*arguments)
    except tw.Error as error:
        assert error.code in ("ir/divide-by-zero", "ir/integer-only", "ir/intrinsic-dtype"), (name, dtype, number)
        return
    held = rounded(number, meeting) if meeting in FLOATS else number
    for kind, value in constants(expr):
        assert kind == meeting and same(value, held), (name, dtype, number, expr)
    assert set(casts(expr)) <= ({meeting} if meeting != dtype else set()), (name, dtype, number, expr)


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS, "bool"])
def test_every_operator_and_type(dtype: str) -> None:
    rng = random.Random(dtype)
    operators = {**ARITHMETIC, **(OF_FLOATS if dtype in FLOATS else OF_INTEGERS)}
    for name, make in operators.items():
        for _ in range(samples(30)):
            number = draw_number(rng, dtype)
            if number in (0, 1) or name in ("lshift", "rshift", "shift_left", "shift_right"):
                number = rng.choice([2, 3, 5, 7])
            check(name, make, dtype, number, rng.random() < 0.5)


def test_alone_a_number_is_int32_int64_or_float32() -> None:
    for number in (1, -(2**31), 2**31, -(2**63), 2**63, 0.1, 1e-50, math.inf):
        expr = ir.const(number)
        kind = alone(number)
        held = rounded(number, "float32") if kind == "float32" else number
        assert (expr.dtype, number_of(expr)[1]) == (kind, held)
    assert T.exp(1.2).dtype == "float32"
    assert constants(T.exp(1.2)) == [("float32", float(np.float32(1.2)))]
    assert T.pow(2, 3).dtype == "float32" and T.atan2(0.5, 2).dtype == "float32"
    for number in (2**64, 1e300):
        with pytest.raises(tw.Error, match="ir/literal"):
            ir.const(number)


def through_cast_node(number: Number, dtype: str) -> ir.Expr:
    node = T.Cast(dtype, number)
    return ir.cast(dtype, node.value) if isinstance(node, ir.Cast) else node


def test_conversions_take_all_digits() -> None:
    rng = random.Random(1)
    for dtype in FLOATS:
        for _ in range(300):
            number = draw_number(rng, dtype)
            held = rounded(number, dtype)
            for make in (ir.const, lambda n, t: ir.cast(t, n), through_cast_node, T.cast):
                if (
                    held is None
                    and isinstance(number, int)
                    and -(2**63) <= number < 2**64
                    and make is through_cast_node
                ):
                    assert math.isinf(float(make(number, dtype)))  # T.Cast says that it is meant
                elif held is None:
                    with pytest.raises(tw.Error, match="ir/literal"):
                        make(number, dtype)
                else:
                    made = make(number, dtype)
                    ((kind, value),) = constants(made)
                    assert kind == dtype and same(value, held)
    assert number_of(ir.const(1e15 + 1, "int64")) == ("int64", 10**15 + 1)
    assert int(T.cast(16777217.0, "int32")) == 16777217


def stored(text: str, dtype: str = "float64", source: str = "float64") -> tuple[np.ndarray, ir.PrimFunc]:
    """What a kernel stores for A[i] = 1, 2, 3, and the program."""
    func = tw.script.from_source(
        f"@T.prim_func\ndef main(A: T.Buffer((3,), {source!r}), O: T.Buffer((3,), {dtype!r})):\n"
        f"    for i in range(3):\n        with T.block('O'):\n            v = T.axis.spatial(3, i)\n"
        f"            {text}\n",
        extra_vars={"math": math},
    )
    assert isinstance(func, ir.PrimFunc)
    result = np.zeros(3, dtype)
    tw.compile(func, schedule="as written")(np.arange(1, 4).astype(source), result)
    return result, func


A64 = np.arange(1, 4).astype("float64")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("O[v] = A[v] * 0.1", A64 * 0.1),
        ("O[v] = A[v] * 1e300", A64 * 1e300),
        ("O[v] = A[v] + 1e-50 * 1e50 * math.pi / 3", A64 + 1e-50 * 1e50 * math.pi / 3),
        ("O[v] = A[v] * (0.1 + 0.2)", A64 * (0.1 + 0.2)),
        ("O[v] = 0.1", np.full(3, 0.1)),
        ("O[v] = 2**70 + 1", np.full(3, float(2**70 + 1))),
        ("O[v] = T.Cast('float64', 0.1)", np.full(3, 0.1)),
        ("O[v] = T.if_then_else(A[v] > 2.0, 0.1, 1)", np.where(A64 > 2, 0.1, 1)),
        ("O[v] = 0.1 if A[v] > 2.0 else 0.3", np.where(A64 > 2, 0.1, 0.3)),
        ("O[v] = A[v] + (0.1 if A[v] > 2.0 else 0.3)", A64 + np.where(A64 > 2, 0.1, 0.3)),
        ("O[v] = A[v] * T.Select(A[v] > 2.0, 0.1, T.max(0.3, 0.7))", A64 * np.where(A64 > 2, 0.1, 0.7)),
        ("O[v] = T.min(T.Select(A[v] > 2.0, 0.1, 0.3), 0.2)", np.where(A64 > 2, 0.1, 0.2)),
        ("a: T.float64 = 0.1; O[v] = a * A[v]", A64 * 0.1),
        ("a = 0.1; O[v] = a * A[v]", A64 * 0.1),
        ("a = 0.5; O[v] = a * A[v]", A64 * 0.5),
        ("a = T.float64(); O[v] = T.Let(a * A[v], where={a: 0.1})", A64 * 0.1),
        ("O[v] = 0.1; O[v] += 0.2; O[v] *= A[v]", (0.1 + 0.2) * A64),
        ("O[0:3] = T.Broadcast(0.1, 3)", np.full(3, 0.1)),
        ("O[v] = T.exp(1.5)", np.full(3, np.exp(np.float32(1.5)))),
    ],
)
def test_programs_of_float64_compute_with_all_digits(text: str, want: np.ndarray) -> None:
    result, func = stored(text)
    np.testing.assert_allclose(result, want, rtol=2e-7 if "exp" in text else 0)
    again = tw.script.from_source(func.script())
    assert ir.structural_equal(again, func)
    assert ir.structural_equal(ir.load_json(ir.save_json(func)), func)


def test_doubles_survive_text_and_json() -> None:
    rng = random.Random(2)
    for _ in range(500):
        number = math.ldexp(rng.uniform(-2, 2), rng.randint(-1060, 1000))
        node = ir.const(number, "float64") + ir.Var("x", "float64")
        func = ir.PrimFunc([node.b], {}, "void", {}, ir.Evaluate(node))
        for again in (tw.script.from_source(func.script()), ir.load_json(ir.save_json(func))):
            assert [value for _, value in constants(again.body.value)] == [number]


#: functions of integers by name, where Python computes nothing itself: what they mean of Python's numbers
OF_TWO_INTEGERS: dict[str, Callable[[int, int], int]] = {
    **{"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Min": min, "Max": max, "min": min, "max": max},
    **{
        "FloorDiv": operator.floordiv,
        "FloorMod": operator.mod,
        "floordiv": operator.floordiv,
        "floormod": operator.mod,
    },
    **{"bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor},
    **{"shift_left": operator.lshift, "shift_right": operator.rshift, "abs": lambda a, _: abs(a)},
}


@pytest.mark.parametrize("name", OF_TWO_INTEGERS)
def test_functions_of_two_numbers_keep_their_value(name: str) -> None:
    """What is stored to int64 is Python's value, or the program is refused."""
    rng = random.Random(name)
    near = [sign * 2**bits + step for bits in (0, 4, 31, 32, 40, 62) for sign in (1, -1) for step in (-1, 0, 1)]
    stored_numbers, lines = [], []
    for _ in range(samples(60)):
        a, b = rng.choice(near), rng.choice([*near, *range(-3, 40)])
        if name.startswith("shift"):
            b = rng.randrange(70)
        if b == 0 and name.lower().startswith("floor"):
            continue
        want = OF_TWO_INTEGERS[name](a, b)
        text = f"T.{name}({a})" if name == "abs" else f"T.{name}({a}, {b})"
        if -(2**63) <= want < 2**63 and not (name.startswith("shift_right") and b > 31):
            stored_numbers.append(want)
            lines.append(f"    O[{len(lines)}] = {text}")
        elif want >= 2**64 or want < -(2**63):
            with pytest.raises(tw.Error, match="ir/literal"):
                tw.script.from_source(f"@T.prim_func\ndef main(O: T.Buffer((1,), 'int64')):\n    O[0] = {text}\n")
    head = f"@T.prim_func\ndef main(O: T.Buffer(({len(lines)},), 'int64')):\n"
    out = np.zeros(len(lines), "int64")
    tw.compile(tw.script.from_source("\n".join([head, *lines])), "interpreter")(out)
    assert out.tolist() == stored_numbers, list(zip(lines, out.tolist(), stored_numbers, strict=True))


@pytest.mark.parametrize(
    ("text", "dtype", "source", "want"),
    [
        ("O[v] = (A[v] * 0x9E3779B1) >> 22", "uint32", "uint32", [(i * 0x9E3779B1) % 2**32 >> 22 for i in (1, 2, 3)]),
        (
            "m = 0x9E3779B1; O[v] = (A[v] * m) >> 22",
            "uint32",
            "uint32",
            [(i * 0x9E3779B1) % 2**32 >> 22 for i in (1, 2, 3)],
        ),
        ("O[v] = A[v] ^ 0xFFFFFFFFFFFFFFFF", "uint64", "uint64", [i ^ (2**64 - 1) for i in (1, 2, 3)]),
        ("O[v] = A[v] * 4000000000", "int64", "int32", [i * 4000000000 for i in (1, 2, 3)]),
        ("O[v] = A[v] + 300", "int32", "int8", [301, 302, 303]),
        ("O[v] = A[v] + 300", "int32", "uint16", [301, 302, 303]),
        ("O[v] = A[v] * 1000", "float16", "float16", [1000, 2000, 3000]),
        ("O[v] = 16777217.0", "int32", "int32", [16777217] * 3),
    ],
)
def test_programs_of_integers(text: str, dtype: str, source: str, want: list[int]) -> None:
    assert stored(text, dtype, source)[0].tolist() == want


def test_formulas_and_builders_keep_digits() -> None:
    x = te.placeholder((4,), "float64", "x")
    k = te.reduce_axis((0, 4), "k")
    scaled = te.compute((4,), lambda i: x[i] * 0.1 + te.if_then_else(x[i] > 1.0, 0.1, 0.3), "scaled")
    total = te.compute((1,), lambda i: te.sum(scaled[k] * 1e-50, axis=k, init=0.1), "total")
    data = np.arange(4.0)
    want = data * 0.1 + np.where(data > 1, 0.1, 0.3)
    got = tw.compile([x, scaled, total], schedule="as written")(data)
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], [0.1])
    with IRBuilder() as builder, B.prim_func():
        B.func_name("fill")
        a = B.arg("A", B.Buffer((8,), "float64"))
        with B.serial(8) as i, B.block("fill"):
            v = B.axis.spatial(8, i)
            B.buffer_store(a, 0.1, [v])
    filled = np.zeros(8)
    tw.compile(builder.get(), schedule="as written")(filled)
    assert filled.tolist() == [0.1] * 8


@pytest.mark.parametrize(
    ("text", "dtype", "said"),
    [
        ("O[v] = A[v] > -1", "uint32", "-1 meets an operand of type uint32"),
        ("O[v] = A[v] + 4294967296", "uint32", "4294967296 meets an operand of type uint32"),
        ("O[v] = A[v] + 2**63", "int64", "no signed type holds it"),
        ("O[v] = A[v] * 1e39", "float32", "beyond the range of float32"),
        ("O[v] = 70000", "float16", "beyond the range of float16"),
        ("O[v] = A[v] * 10**400", "float64", "no type holds it"),
        ("O[v] = T.float32(1e39)", "float32", "beyond the range of float32"),
    ],
)
def test_numbers_that_no_type_holds_are_refused_where_they_stand(text: str, dtype: str, said: str) -> None:
    with pytest.raises(tw.ScriptError, match="ir/literal") as info:
        stored(text, dtype, dtype)
    assert said in str(info.value)
    assert ":6:" in str(info.value) and text in str(info.value)


@pytest.mark.parametrize("text", ["2**63", "T.abs(-2**63)", "T.max(2**63, 3)", "T.uint64(2**63)", "2**64 - 1"])
def test_numbers_of_64_bits_are_named_as_they_are(text: str) -> None:
    value = 2**64 - 1 if text == "2**64 - 1" else 2**63
    with pytest.raises(tw.ScriptError, match=f"] {value} does not fit into 'O', which holds int64") as info:
        stored(f"O[v] = {text}", "int64", "int64")
    assert info.value.code == "builder/constant"


def test_the_absolute_value_of_the_least_int64_is_a_number_of_uint64() -> None:
    result, _ = stored("O[v] = T.abs(-2**63)", "uint64", "uint64")
    assert result.tolist() == [2**63] * 3


def test_infinity_and_underflow_are_no_mistakes() -> None:
    x = ir.Var("x", "float16")
    assert constants(x * math.inf) == [("float16", math.inf)]
    assert constants(x + 1e-30) == [("float16", 0.0)]
    assert [math.isnan(value) for _, value in constants(x * math.nan)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "O[v] = A[v] and 7",
        "O[v] = (A[v] > 1) and 7",
        "O[v] = A[v] > 1 or A[v]",
        "O[v] = (A[v] and A[v]) + 1",
        "O[v] = T.max(A[v] and 1, 2)",
        "x = A[v] or 1; O[v] = x",
        "O[v] = (A[v] and 1) if A[v] > 1 else 2",
    ],
)
def test_values_of_and_and_or_are_refused(text: str) -> None:
    with pytest.raises(tw.ScriptError, match="script/truth-value"):
        stored(text, "int32", "int32")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("if A[v] and A[v] - 2: O[v] = 7", [7, 0, 7]),
        ("O[v] = 5 if A[v] - 1 and A[v] - 2 else 6", [6, 6, 5]),
        ("O[v] = T.if_then_else(A[v] - 1 and A[v] - 2, 5, 6)", [6, 6, 5]),
        ("O[v] = T.if_then_else(not (A[v] - 1 or 0), 5, 6)", [5, 6, 6]),
        ("O[v] = T.Select(A[v] - 3 or A[v] == 9, 5, 6)", [5, 5, 6]),
        ("O[v] = 7 and A[v]", [1, 2, 3]),
        ("O[v] = 1 if False or (A[v] or 2) else 3", [1, 1, 1]),
        ("O[v] = 0 or A[v]", [1, 2, 3]),
        ("O[v] = A[v] > 1 and A[v] < 3", [0, 1, 0]),
        ("O[v] = not A[v] - 2", [0, 1, 0]),
        ("O[v] = 1 < A[v] < 3", [0, 1, 0]),
    ],
)
def test_truth_in_conditions(text: str, want: list[int]) -> None:
    assert stored(text, "int32", "int32")[0].tolist() == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("if A[v]: O[v] = 7.0", [7, 0, 7, 0]),
        ("if A[v] and A[0]: O[v] = 7.0", [7, 0, 7, 0]),
        ("while A[v] and O[v] < 3.0: O[v] = O[v] + 1.0", [3, 0, 3, 0]),
        ("O[v] = 5.0 if A[v] else 6.0", [5, 6, 5, 6]),
        ("O[v] = T.if_then_else(A[v], 5.0, 6.0)", [5, 6, 5, 6]),
        ("O[v] = T.Select(A[v], 5.0, 6.0)", [5, 6, 5, 6]),
        ("O[v] = T.Select(not A[v], 5.0, 6.0)", [6, 5, 6, 5]),
        ("T.where(A[i]); O[v] = 7.0", [7, 0, 7, 0]),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_decide_by_whether_they_are_zero(text: str, want: list[int], dtype: str) -> None:
    """As in Python: NaN is true, both zeros are false."""
    func = tw.script.from_source(
        f"@T.prim_func\ndef main(A: T.Buffer((4,), {dtype!r}), O: T.Buffer((4,), 'float32')):\n"
        f"    for i in range(4):\n        with T.block('O'):\n            v = T.axis.opaque(4, i)\n"
        f"            T.reads(A[0:4], O[0:4])\n            T.writes(O[0:4])\n            {text}\n"
    )
    numbers = np.array([0.5, 0.0, math.nan, -0.0], dtype)
    assert [bool(number) for number in numbers] == [True, False, True, False]
    for target in ("interpreter", "native"):
        found = np.zeros(4, "float32")
        tw.compile(func, target=target)(numbers, found)
        assert found.tolist() == want, target


def test_the_builder_takes_numbers_as_conditions() -> None:
    with IRBuilder() as builder, B.prim_func():
        B.func_name("main")
        a = B.arg("A", B.Buffer((1,), "float32"))
        with B.If(a[0]), B.Then():
            B.buffer_store(a, 7.0, [0])
    for number, want in ((0.5, 7.0), (0.0, 0.0)):
        found = np.full(1, number, "float32")
        tw.compile(builder.get(), schedule="as written")(found)
        assert found[0] == want


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32"])
def test_true_and_false_have_a_type(dtype: str) -> None:
    """As in NumPy, they do not make an operand wider."""
    x = ir.Var("x", dtype)
    expected = str((np.zeros(1, dtype) + True).dtype)
    for made in (x + True, True + x, T.max(x, False), T.Add(x, True)):
        assert made.dtype == expected == dtype


def test_texts_of_integers_keep_their_digits() -> None:
    assert int(T.int64("9007199254740993")) == 9007199254740993
    assert int(T.uint64("18446744073709551615")) == 2**64 - 1
    assert T.float64("9007199254740993").value == 9007199254740992.0
    with pytest.raises(tw.ScriptError, match="300 is no int8"):
        T.int8("300")
    assert int(T.IntImm("uint64", 2**64 - 1)) == 2**64 - 1


def test_expressions_are_compared_with_none() -> None:
    n = ir.Var("n", "int32")
    for value in (n, n + 1, T.int32(3), T.float32(0.5)):
        assert (value == None, value != None) == (False, True)  # noqa: E711
        assert value not in [None] and None not in [value]
    with pytest.raises(TypeError, match="unsupported operand"):
        n + None


def test_strings_of_programs_are_keys() -> None:
    assert {"x": 1}[ir.StringImm("x")] == 1 == {ir.StringImm("é"): 1}["é"]
