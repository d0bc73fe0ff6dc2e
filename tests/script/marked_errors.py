"""Checks of errors in scripts: the place that an error must point at stands between « and »."""

from __future__ import annotations

import textwrap

import pytest

import tilewright as tw
from tilewright.script import from_source

FUNCTION = """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), a: T.handle, n: T.int32):
"""


def place_of(marked: str) -> tuple[str, tuple[int, int, int, int]]:
    """The text without marks, and where the marks were."""
    before, rest = marked.split("«", 1)
    inside, after = rest.split("»", 1)
    lines, inner = before.split("\n"), inside.split("\n")
    line, column = len(lines), len(lines[-1]) + 1
    end_line = line + len(inner) - 1
    end_column = column + len(inner[0]) if len(inner) == 1 else len(inner[-1]) + 1
    return before + inside + after, (line, column, end_line, end_column)


def error_of(text: str, **names: object) -> tw.ScriptError:
    with pytest.raises(tw.ScriptError) as caught:
        from_source(text, names)
    return caught.value


def check(code: str, marked: str, message: str = "", hint: str = "", **names: object) -> tw.ScriptError:
    text, place = place_of(marked)
    error = error_of(text, **names)
    assert [e.code for e in error.errors] == [code], str(error)
    assert error.place is not None
    assert error.place[1:] == place, str(error)
    assert message in error.message
    assert hint in error.hint
    assert (error.line, error.column) == place[:2]
    return error


def check_body(code: str, marked: str, message: str = "", hint: str = "", **names: object) -> tw.ScriptError:
    """A mistake in the body of a function with a buffer A, a handle a and an integer n."""
    return check(code, FUNCTION + textwrap.indent(textwrap.dedent(marked).strip("\n"), "    "), message, hint, **names)
