"""What is around a script: closures, classes, postponed annotations, and the cells of a notebook."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import tilewright as tw
from tilewright.script import from_file, from_source
from tilewright.script import ir as I
from tilewright.script import tir as T


class Sizes:
    n = 8

    class Inner:
        dtype = "float16"


def test_names_of_functions_and_classes_around_in_every_position() -> None:
    def make(n: int, dtype: str) -> tw.ir.PrimFunc:
        k = 3

        @T.prim_func
        def f(A: T.Buffer((n, Sizes.n), dtype), b: T.handle) -> None:
            B = T.match_buffer(b, (n, k), Sizes.Inner.dtype)
            for i in range(n):
                with T.block(f"block_{n}"):
                    vi = T.axis.spatial(n, i)
                    A[vi, 0] = T.Cast(dtype, B[vi, k - 1])

        return f

    text = make(4, "float64").script()
    assert 'A: T.Buffer((4, 8), "float64"), B: T.Buffer((4, 3), "float16")' in text
    assert "block_4" in text and "B[vi, 2]" in text


def test_attributes_of_the_class_around() -> None:
    class Holder:
        size = 4

        @T.prim_func
        def f(A: T.Buffer((size,), "float32")):
            for i in range(size):
                A[i] = 1.0

    assert "range(4)" in Holder.f.script()


def test_modules_in_functions() -> None:
    def make(n: int) -> tw.ir.IRModule:
        @I.ir_module
        class M:
            @T.prim_func
            def main(A: T.Buffer((n,), "float32")):
                M.fill(A.data)

            @T.prim_func
            def fill(A: T.Buffer((n,), "float32")):
                for i in range(n):
                    A[i] = 1.0

        return M

    assert "range(5)" in make(5).script()


def test_buffers_like_another() -> None:
    pattern = tw.ir.decl_buffer([16, 8], "float16", name="pattern")

    @T.prim_func
    def f(A: T.Buffer(pattern), B: T.Buffer(pattern.shape, pattern.dtype)):
        for index in T.grid(*pattern.shape):
            with T.block("copy"):
                v = T.axis.remap("SS", index)
                B[*v] = A[*v]

    assert 'A: T.Buffer((16, 8), "float16"), B: T.Buffer((16, 8), "float16")' in f.script()
    assert "B[v_0, v_1] = A[v_0, v_1]" in f.script()


FUNCTION = """
@T.prim_func
def program(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = {value}
"""
MODULE = """
@I.ir_module
class program:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = {value}
"""


def run_cell(text: str, file: str, namespace: dict[str, object]) -> None:
    """As IPython does it: the text is in linecache under a name that is no file."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), namespace)


@pytest.mark.parametrize("text", [FUNCTION, MODULE], ids=["function", "module"])
@pytest.mark.parametrize("file", ["/tmp/ipykernel_77/{}.py", "<ipython-input-{}-0123abcd>"], ids=["kernel", "shell"])
def test_a_cell_run_again_parses_its_newest_source(text: str, file: str) -> None:
    namespace: dict[str, object] = {"T": T, "I": I}
    # Once with another name for each run, as notebooks do, and once with the same.
    for number, name in enumerate([file.format(1), file.format(2), file.format(2)]):
        run_cell("\n" * number + text.format(value=f"{number}.5"), name, namespace)
        assert f"T.float32({number}.5)" in str(namespace["program"])
    with pytest.raises(tw.ScriptError, match="'missing' is not defined") as caught:
        run_cell(text.format(value="missing"), file.format(3), namespace)
    assert caught.value.file == file.format(3)
    assert "A[i] = missing" in str(caught.value)


def test_cells_of_the_real_shell() -> None:
    shell = InteractiveShell()
    shell.run_cell("from tilewright.script import tir as T, ir as I")
    func = "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    A[0] = {}\n"
    module = "@I.ir_module\nclass M:\n    @T.prim_func\n    def f(A: T.Buffer((4,), 'float32')):\n        A[0] = {}\n"
    macro = "@T.macro\ndef m(A):\n    A[0] = {}\n\n@T.prim_func\ndef g(A: T.Buffer((4,), 'float32')):\n    m(A)\n"
    for value in ("1.0", "2.0"):
        for name, cell in {"f": func, "M": module, "g": macro}.items():
            shell.run_cell(cell.format(value)).raise_error()
            assert f"A[0] = T.float32({value})" in str(shell.user_ns[name])
    error = shell.run_cell("x = 1\n" + func.format("missing")).error_in_exec
    assert isinstance(error, tw.ScriptError)
    assert error.line == 4 and "A[0] = missing" in str(error)


HELPERS = '''
"""{}"""
EXTENT: int = 4
WIDTHS: tuple = (1, 2)

@T.macro
def clear(A):
    A[0] = {}

@T.prim_func
def f(A: T.Buffer((EXTENT,), "float32")):
    clear(A)
'''


@pytest.mark.parametrize("separator", ["\f", "\v", "\x1c", "\x85", "\u2028", "\r\n"])
def test_lines_are_those_of_python(separator: str) -> None:
    text = HELPERS.format(separator, "{}")
    assert "A[0] = T.float32(2.0)" in from_source(text.format("2.0"), {"T": T}).script()
    with pytest.raises(tw.ScriptError, match="'missing' is not defined") as caught:
        from_source(text.format("missing"), {"T": T})
    assert (caught.value.line, caught.value.column) == (text.count("\n", 0, text.index("A[0] =")) + 1, 12)
    assert "A[0] = missing" in str(caught.value)


def test_files_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("from tilewright.script import tir as T\n" + HELPERS.format("", "2.0"), encoding="utf-8-sig")
    assert "A[0] = T.float32(2.0)" in from_file(path).script()
