"""Values of attributes: what Python gives is what it reads back, also from text, JSON and pickles."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T


@T.prim_func
def program(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            A[v] = 1.0


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, NaN and the sign of zero included."""
    return repr(a) == repr(b) and type(a) is type(b)


VALUES = [
    *(0, -1, 2**31 - 1, -(2**31), True, False),
    *(0.0, -0.0, 0.5, 0.1, 1 / 3, 1e300, -1e300, 5e-324, 1e-45, 3.4e38, 3.5e38, math.inf, -math.inf, math.nan),
    *("", "a\"b'c", "two\nlines", "\\n", "\0", "\x7f", "\x85", "\u2028", "é", "\U0001f600", "tab\tand\rreturn"),
    *([], {}, [1, [0.1, ["x"]], {}], {"a": {"b": [1e300, {"": -0.0}]}, 'quoted "': 0.1, "two\nlines": 1}),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_of_python(value: Any) -> None:
    func = program.with_attr("k", value)
    assert same(func.attrs["k"], value)
    sch = tw.Schedule(program)
    sch.annotate(sch.get_block("B"), "k", value)
    for made in (func, sch.mod):
        again = [
            tw.script.from_source(made.script(show_meta=True)),
            tw.script.from_source(made.script(show_meta=True, syntax_sugar=False)),
            ir.load_json(ir.save_json(made)),
            pickle.loads(pickle.dumps(made)),
        ]
        for other in again:
            ir.assert_structural_equal(other, made)
            assert ir.structural_hash(other) == ir.structural_hash(made)
    replayed = tw.Schedule(program)
    tw.Trace.apply_json_to_schedule(sch.trace.as_json(), replayed)
    ir.assert_structural_equal(replayed.mod, sch.mod)
    ir.assert_structural_equal(pickle.loads(pickle.dumps(sch)).mod, sch.mod)


CONSTANTS = [
    *(2**31, 2**63 - 1, -(2**63), 2**63, 2**64 - 1),
    *(np.float64(0.5), np.float64(0.1), np.float16(0.1), np.int8(-3), np.uint64(2**64 - 1), np.array(3)),
    *(T.float64(0.5), T.float64("inf"), T.float64("nan"), T.float16(0.5), T.int64(3)),
]


@pytest.mark.parametrize("value", CONSTANTS, ids=repr)
def test_constants_keep_their_type(value: Any) -> None:
    func = program.with_attr("k", value)
    constant = func.attrs["k"]
    if isinstance(constant, ir.Node):  # which Python reads as a node
        assert constant.dtype == getattr(value, "dtype", constant.dtype)
    assert float(constant) == float(value) or float(value) != float(value)
    ir.assert_structural_equal(program.with_attr("k", constant), func)
    ir.assert_structural_equal(tw.script.from_source(func.script()), func)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(0.5, "float32"), (-0.0, "float32"), (math.inf, "float32"), (0.1, "float64"), (1e300, "float64")],
)
def test_types_of_floats(value: float, dtype: str) -> None:
    text = "@T.prim_func\ndef f(A: T.Buffer((4,))):\n    T.func_attr({'k': value})\n    A[0] = 1.0"
    func = tw.script.from_source(text, {"value": value})
    written = value if math.isfinite(value) else f'"{value}"'
    assert f'T.func_attr({{"k": T.{dtype}({written})}})' in func.script()
    attr = tw.script.from_source(
        text.replace("T.func_attr({'k': value})", "T.attr(A.data, 'k', [value])"), {"value": value}
    )
    assert f'T.attr(A.data, "k", [T.{dtype}({written})])' in attr.script()


def test_results_of_arithmetic_get_a_type() -> None:
    """T.max of two Python numbers is still one of them, with all digits."""
    for attrs in ("{'k': T.max(0.1, 0.2)}", "{'k': [T.max(0.1, 0.2)]}"):
        func = tw.script.from_source(
            f"@T.prim_func\ndef f(A: T.Buffer((4,))):\n    T.func_attr({attrs})\n    A[0] = 1.0"
        )
        ir.assert_structural_equal(tw.script.from_source(func.script()), func)
        ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)
        assert func.attrs["k"] in (0.2, [0.2])


REFUSED = {
    "None": "an attribute cannot hold a value of type NoneType",
    "[1, {'a': None}]": "an attribute cannot hold a value of type NoneType",
    "2**64": "an attribute cannot hold an integer of more than 64 bits",
    "-2**63 - 1": "an attribute cannot hold an integer of more than 64 bits",
    "b'x'": "an attribute cannot hold a value of type bytes",
    "'\\udc80'": "an attribute cannot hold a value of type str",
    "{'inside': {1: 2}}": "an attribute cannot hold a dict with a key of type int",
}


@pytest.mark.parametrize("value", REFUSED)
@pytest.mark.parametrize("call", ["T.func_attr({{'k': {}}})", "T.attr(A.data, 'k', {})", "T.block_attr({{'k': {}}})"])
def test_what_attributes_cannot_hold(call: str, value: str) -> None:
    body = (
        f"    with T.block('b'):\n        {call.format(value)}\n        A[0] = 1.0"
        if "block" in call
        else call.format(value)
    )
    text = f"@T.prim_func\ndef f(A: T.Buffer((4,))):\n    {body.strip()}\n    A[1] = 1.0\n"
    with pytest.raises(tw.ScriptError) as caught:
        tw.script.from_source(text)
    assert caught.value.message == REFUSED[value]
    assert caught.value.line == (4 if "block" in call else 3)


def test_names_of_attributes_are_strings() -> None:
    with pytest.raises(tw.ScriptError, match="1 is the name of an attribute"):
        tw.script.from_source("@T.prim_func\ndef f(A: T.Buffer((4,))):\n    T.func_attr({1: 2})\n    A[0] = 1.0")


@pytest.mark.parametrize("argument", ["1e300", "-1e300", "2**64", "-2**63 - 1", "10**5000"])
@pytest.mark.parametrize("call", ["T.evaluate({})", 'T.call_extern("void", "f", {})', "T.call_packed('f', {})"])
def test_numbers_beyond_every_type_are_refused(call: str, argument: str) -> None:
    """They were infinite, or the error named only their Python type."""
    text = "@T.prim_func\ndef f(A: T.Buffer((4,))):\n    {}\n    A[0] = 1.0"
    with pytest.raises(tw.ScriptError) as caught:
        tw.script.from_source(text.format(call.format(argument)))
    words = ("beyond the range of float32", "64 bits", "no signed type holds it", "no type holds")
    assert any(word in caught.value.message for word in words), caught.value
    assert caught.value.line == 3
    assert 'T.float32("inf")' in tw.script.from_source(text.format(call.format("float('inf')"))).script()
