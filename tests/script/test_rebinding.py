"""Names bound again in an inner scope: refused where the new value is lost, accepted where nobody reads it."""

import textwrap
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

FUNCTION = """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
"""


def parse(body: str, before: str = "", **names: object) -> Any:
    return from_source(before + FUNCTION + textwrap.indent(textwrap.dedent(body).strip("\n"), "    "), names)


LOST = {
    "a sum": ("s", "loop", "s = T.float32(0)\nfor i in range(16):\n    s = s + A[i]\nB[0] = s"),
    "a sum that nobody reads after the loop": ("s", "loop", "s = T.float32(0)\nfor i in range(16):\n    s += A[i]"),
    "the count of an endless loop": ("i", "loop", "i = T.int32(0)\nwhile i < 5:\n    B[i] = 1.0\n    i += 1"),
    "a value for the next iteration": (
        "x",
        "loop",
        "x = A[0]\nfor i in range(3):\n    B[i] = x\n    x = A[i]",
    ),
    "one of two loops": (
        "s",
        "loop",
        "s = A[0]\nfor i in range(4):\n    for j in range(4):\n        s = A[j]\n    B[i] = s",
    ),
    "a branch": ("x", "branch", "x = A[0]\nif A[1] > 0.0:\n    x = A[1]\nB[0] = x"),
    "an else": ("x", "branch", "x = A[0]\nif A[1] > 0.0:\n    B[1] = x\nelse:\n    x = A[1]\nB[0] = x"),
    "the maximum": (
        "m",
        "branch",
        "m = A[0]\nfor i in range(16):\n    if A[i] > m:\n        m = A[i]\nB[0] = m",
    ),
    "an annotated binding": ("x", "branch", "x = A[0]\nif A[1] > 0.0:\n    x: T.float32 = A[1]\nB[0] = x"),
    "a block": ("x", "block", 'x = A[0]\nwith T.block("b"):\n    x = A[1]\nB[0] = x'),
    "a loop variable": ("i", "loop", "i = T.int32(5)\nfor i in range(3):\n    B[i] = 0.0\nB[i] = 1.0"),
    "a buffer": (
        "t",
        "loop",
        "t = T.alloc_buffer((1,))\nfor i in range(3):\n    t[0] = A[i]\n    t = T.alloc_buffer((2,))\nB[0] = t[0]",
    ),
    "a value of Python": (
        "k",
        "loop",
        "k = T.meta_var(0)\nfor i in range(3):\n    B[k] = A[i]\n    k = T.meta_var(k + 1)",
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_a_value_that_would_be_lost(what: str) -> None:
    name, kind, body = LOST[what]
    with pytest.raises(tw.ScriptError) as caught:
        parse(body)
    assert caught.value.code == "script/rebound"
    assert f"'{name}' is bound again inside of a {kind}" in caught.value.message
    assert f'{name} = T.alloc_buffer((1,), "' in caught.value.hint and 'scope="local")' in caught.value.hint


def test_the_hint_has_the_name_and_the_type_of_the_value() -> None:
    with pytest.raises(tw.ScriptError) as caught:
        parse("total = T.int64(0)\nfor i in range(3):\n    total = total + T.int64(i)\nB[0] = T.Cast('float32', total)")
    assert 'total = T.alloc_buffer((1,), "int64", scope="local"), then total[0] = ...' in caught.value.hint


def test_the_place_and_the_reader() -> None:
    with pytest.raises(tw.ScriptError) as caught:
        parse("s = T.float32(0)\nfor i in range(16):\n    s = s + A[i]\nB[0] = s")
    assert (caught.value.line, caught.value.column) == (6, 9)
    assert "line 6 would read the old one" in caught.value.message


def test_names_from_around_the_function() -> None:
    with pytest.raises(tw.ScriptError, match="script/rebound"):
        parse("for i in range(16):\n    s = s + A[i]", s=0.0)


def test_macros() -> None:
    macro = "@T.macro(hygienic={})\ndef step(A, i):\n    s = s + A[i]\n"
    body = "s = A[0]\nfor i in range(3):\n    step(A, i)\nB[0] = s"
    with pytest.raises(tw.ScriptError, match="inside of a macro"):
        parse(body, macro.format("False"))
    own = "@T.macro\ndef step(A, B, i):\n    s = A[i]\n    s = s + 1.0\n    B[i] = s\n"
    parse("s = A[0]\nfor i in range(3):\n    step(A, B, i)\nB[0] = s", own)


HARMLESS = [
    "x = A[0]\nfor i in range(3):\n    x = A[i]\n    B[i] = x",
    "x = A[0]\nB[0] = x\nif A[1] > 0.0:\n    x = A[1]\n    B[0] = x\nx = A[2]\nB[1] = x",
    "for i in range(4):\n    x = A[i]\n    x = x + 1.0\n    B[i] = x\nfor i in range(4):\n    x = A[i]\n    B[i] = x",
    "i = T.int32(3)\nB[i] = 1.0\nfor i in range(3):\n    B[i] = 0.0",
    "x = A[0]\nfor i in range(3):\n    x = A[i]\n    for j in range(2):\n        B[j] = x",
    "x = A[0]\nwhile A[0] > 1.0:\n    if A[1] > 0.0:\n        x = A[1]\n        B[0] = x\n    else:\n        x = A[2]\n"
    "        B[1] = x",
    'for i in range(16):\n    with T.block("a"):\n        v = T.axis.S(16, i)\n        B[v] = A[v]\n'
    '    with T.block("b"):\n        v = T.axis.S(16, i)\n        B[v] = B[v] + A[v]',
    "x = A[0]\nfor i in range(3):\n    f = lambda x: x + 1\n    x = A[i]\n    B[i] = f(x)",
]


@pytest.mark.parametrize("body", HARMLESS)
def test_harmless_shadowing_is_accepted(body: str) -> None:
    program = parse(body)
    tw.ir.assert_structural_equal(from_source(program.script()), program)


def test_what_is_repeated_while_parsing_means_what_python_means() -> None:
    program = parse("s = T.float32(0)\nfor i in ITEMS:\n    s = s + A[i]\nB[0] = s\nif FLAG:\n    s = A[0]\nB[1] = s",
                    ITEMS=[1, 2, 5], FLAG=True)  # fmt: skip
    data = np.arange(16, dtype="float32")
    out = np.zeros(16, "float32")
    tw.compile(program)(data + 1, out)
    assert out[0] == 2 + 3 + 6
    assert out[1] == 1
