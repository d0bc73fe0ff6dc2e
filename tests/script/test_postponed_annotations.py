"""`from __future__ import annotations` changes nothing: the names in an annotation mean what they mean in Python."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tilewright as tw

BODY = """\
                for i in range(8):
                    A[i] = T.float32(1)
"""

#: Each defines `f`, whose buffer has the shape (8,).
CASES = {
    "two functions out": """
def outer(n):
    def inner():
        def again():
            @T.prim_func
            def f(A: T.Buffer((n,), "float32")):
{body}
            return f
        return again()
    return inner()
f = outer(8)
""",
    "nearest function": """
n = 1
def outer(n):
    def inner():
        n = 8
        def again():
            @T.prim_func
            def f(A: T.Buffer((n,), "float32")):
{body}
            return f
        return again()
    return inner()
f = outer(2)
""",
    "callers are not around": """
n = 8
def make():
    @T.prim_func
    def f(A: T.Buffer((n,), "float32")):
{body}
    return f
def caller():
    n = 3
    return (lambda: make())()
f = caller()
""",
    "comprehension": """
def outer(n):
    def inner():
        @T.prim_func
        def f(A: T.Buffer(tuple(n for _ in range(1)), "float32")):
{body}
        return f
    return [inner() for n in (5, 6)][-1]
f = [outer(n) for n in (4, 8)][-1]
""",
    "decorator": """
def mine(func):
    n = 3
    return T.prim_func(func)
def outer(n):
    def inner():
        @mine
        def f(A: T.Buffer((n,), "float32")):
{body}
        return f
    return inner()
f = outer(8)
""",
    "decorator with arguments": """
def mine(n, **options):
    def decorate(func):
        return T.prim_func(**options)(func)
    return decorate
def outer(n, dtype):
    def inner():
        @mine(5, private=True)
        def f(A: T.Buffer((n,), dtype)):
{body}
        return f
    return inner()
f = outer(8, "float32")
""",
    "class": """
n = 1
def outer(size):
    class Holder:
        n = size
        @T.prim_func
        def f(A: T.Buffer((n,), "float32")):
{body}
    return Holder.f
f = outer(8)
""",
    "method of a class": """
n = 8
class Maker:
    n = 3
    def make(self):
        @T.prim_func
        def f(A: T.Buffer((n,), "float32")):
{body}
        return f
f = Maker().make()
""",
    "module": """
def outer(n):
    def inner():
        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((n,), "float32")):
{body}
        return Module["main"]
    return inner()
f = outer(8)
""",
    "module under a decorator": """
def mine(cls):
    n = 3
    return I.ir_module(cls)
def outer(n):
    def inner():
        @mine
        class Module:
            @T.prim_func
            def main(A: T.Buffer((n,), "float32")):
{body}
        return Module["main"]
    return inner()
f = outer(8)
""",
    "generator": """
def outer(n):
    def inner():
        @T.prim_func
        def f(A: T.Buffer((n,), "float32")):
{body}
        yield f
    yield from inner()
f = next(outer(8))
""",
    "recursion": """
def outer(n):
    if n < 8:
        return outer(n + 1)
    def inner():
        @T.prim_func
        def f(A: T.Buffer((n,), "float32")):
{body}
        return f
    return inner()
f = outer(2)
""",
    "type of a parameter": """
def outer(n):
    kind = T.int64
    def inner():
        @T.prim_func
        def f(A: T.Buffer((n,), "float32"), count: kind) -> None:
{body}
        return f
    return inner()
f = outer(8)
""",
}


def module(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = folder / "scripts_of_test.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, loaded)
    linecache.checkcache(str(path))
    spec.loader.exec_module(loaded)
    return loaded


def complete(text: str, future: bool) -> str:
    head = "from __future__ import annotations\n" if future else ""
    body = BODY.rstrip("\n")
    return head + "from tilewright.script import ir as I, tir as T\n" + text.format(body=body)


@pytest.mark.parametrize("future", [False, True], ids=["evaluated", "postponed"])
@pytest.mark.parametrize("case", CASES)
def test_names_of_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, future: bool) -> None:
    func = module(tmp_path, complete(CASES[case], future), monkeypatch).f
    assert isinstance(func, tw.ir.PrimFunc)
    (buffer,) = func.buffer_map.values()
    assert [int(extent) for extent in buffer.shape] == [8] and buffer.dtype == "float32"


def test_what_has_returned_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to do."""
    text = """
def outer(size_of_this):
    def inner():
        @T.prim_func
        def f(A: T.Buffer((size_of_this,), "float32")):
{body}
        return f
    return inner
make = outer(8)
"""
    make = module(tmp_path, complete(text, True), monkeypatch).make
    with pytest.raises(tw.ScriptError, match="'size_of_this' is not defined") as info:
        make()
    assert "T.match_buffer(a, shape)" in str(info.value) and "size_of_this,)" in str(info.value)
    func = module(tmp_path, complete(text, False), monkeypatch).make()
    assert int(next(iter(func.buffer_map.values())).shape[0]) == 8
