"""Comprehensions, functions and conditions of Python in scripts run while parsing, with their meaning in Python."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from marked_errors import FUNCTION, check_body, error_of

import tilewright as tw
from tilewright.script import from_source


def computed(body: str) -> list[float]:
    """What the body stores to A, which holds 0, 1, 2, ..., with n = 5."""
    program = from_source(FUNCTION + textwrap.indent(body, "    "))
    a = np.arange(16, dtype="float32")
    tw.ir.interpret(tw.ir.IRModule({"f": program}), "f", a, np.zeros(1, "float32"), 5)
    return a.tolist()


def test_values() -> None:
    a = [float(i) for i in range(16)]
    assert computed("A[0] = sum([A[i] for i in range(16) if i % 3 == 1])")[0] == sum(a[1::3])
    assert computed("A[0] = sum(A[i * j] for i in (1, 2) for j in (3, 4) if i < j - 1)")[0] == a[3] + a[4] + a[8]
    assert computed("A[0] = len({i % 2 for i in range(5)})")[0] == 2
    assert computed("A[0] = {i: A[i] for i in (3, 4)}[4]")[0] == a[4]
    assert computed("A[0] = sum([n if n == i else 0 for i in range(16)])")[0] == 5
    assert computed("A[0] = any(i == 2 for i in range(3)) + all([True]) + bool(0)")[0] == 2


@pytest.mark.parametrize("kind", ["[A[j] for j in (0, 1) if {}]", "{{j for j in (0, 1) if j and {}}}"])
@pytest.mark.parametrize("condition", ["j == n", "n != j", "A[j] > 0.0", "j == n or n < 3"])
def test_conditions_of_the_program(kind: str, condition: str) -> None:
    before, after = kind.format(condition).split(" if ")
    marked = f"x = {before} if «{after[:-1]}»{after[-1]}"
    check_body("script/condition", marked, "is not known while parsing", f"value if {after[:-1]} else 0")


def test_functions_of_truth() -> None:
    check_body("ir/truth", "A[0] = «any(n == j for j in (1, 2))»", "no truth value", "use 'or' between")
    check_body("ir/truth", "A[0] = «all([True, n == 1])»", "no truth value", "use 'and' between")
    check_body("ir/truth", "A[0] = «bool(n == 1)»", "no truth value", "use a comparison")


def test_a_failing_item_is_reported_once() -> None:
    error = error_of(FUNCTION + "    x = T.meta_var([A[i] * q for i in range(4)])\n    A[0] = x[0]\n    A[1] = x[1]\n")
    assert [e.message for e in error.errors] == ["'q' is not defined"]


@pytest.mark.parametrize("function", ["f = lambda x: x + y", "def f(x):\n    return x + y"])
def test_functions_see_names_as_they_are_when_called(function: str) -> None:
    """As Python's do: names that are bound again, or later."""
    before = f"y = T.meta_var(1)\n{function}\n"
    assert computed(before + "A[0] = f(A[8])")[0] == 9
    assert computed(before + "y = T.meta_var(2)\nA[0] = f(A[8])")[0] == 10
    assert computed(f"{function}\ny = T.meta_var(3)\nA[0] = f(A[8])")[0] == 11
    assert computed(before + "y = A[3]\nA[0] = f(A[8])")[0] == 11


def test_functions_of_comprehensions() -> None:
    assert computed("i = T.meta_var(7)\nf = T.meta_var([lambda x: x + i for i in (1, 2)])\nA[0] = f[0](A[8])")[0] == 10
    assert computed("A[0] = sum([(lambda x: x + i)(A[8]) for i in (1, 2)])")[0] == 19
    assert computed("i = T.meta_var(7)\nx = [A[i] for i in (1, 2)]\nA[0] = x[1] + i")[0] == 9


def test_functions_that_call_one_another() -> None:
    calls = "def f(x):\n    return g(x) + 1\ndef g(x):\n    return x * 2\nA[0] = f(A[8])"
    assert computed(calls)[0] == 17
    macro = "@T.macro\ndef fill(k):\n    if k > 0:\n        A[k] = 100 + k\n        fill(k - 1)\nfill(3)"
    assert computed(macro)[:5] == [0, 101, 102, 103, 4]


def test_statements_in_functions_of_python() -> None:
    check_body("script/type", "def f():\n    «A[0]» = 1.0\nf()", "item assignment", "put @T.macro above it")


def test_functions_that_compare_what_varies() -> None:
    """A function that a script calls sees expressions; a comparison with a number would always be false."""

    def is_one(x):
        return 1.0 if x == 1 else 0.0

    for argument in ("A[i]", "i", "v", "v + 1"):
        text = f"""@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = is_one({argument})
"""
        with pytest.raises(tw.ScriptError, match="no truth value"):
            tw.script.from_source(text, {"is_one": is_one})
