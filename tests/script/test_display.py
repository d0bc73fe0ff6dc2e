"""script(), show(), repr and structural reports from Python."""

import subprocess
import sys

import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script.display import reformatted


def program(extent=8):
    a = ir.decl_buffer([extent], name="A")
    i = ir.Var("i", "int32")
    store = ir.BufferStore(a, ir.const(1.0), [i], None)
    loop = ir.For(i, 0, extent, ir.ForKind.SERIAL, None, {}, store)
    handle = ir.Var("a", "handle")
    return ir.PrimFunc([handle], {handle: a}, ir.TupleType([]), {"global_symbol": "main"}, loop)


TEXT = """\
# from tilewright.script import tir as T

@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = T.float32(1.0)"""


def test_script_and_str_are_the_program_and_repr_is_short():
    func = program()
    assert func.script() == str(func) == TEXT
    assert repr(func) == "<PrimFunc main(A)>"
    assert repr(ir.Module({"main": func, "other": func})) == "<Module of main, other>"
    assert repr(ir.Module({f"f{i}": func for i in range(9)})) == "<Module of f0, f1, f2, f3, f4, f5, ...>"
    assert repr(func.body) == str(func.body)
    assert repr(ir.Var("x", "int32") * 2 + 1) == "x * 2 + 1"


def test_options_are_keywords():
    text = program().script(tir_prefix="tir", indent_spaces=2, print_line_numbers=True)
    assert "3 @tir.prim_func" in text and "\n5   for i in range(8):" in text
    func = program()
    marked = func.script(obj_to_underline=[func.body], path_to_annotate={"<root>.body.body": "here"})
    assert "    ^^^^^^^^^^^^^^^^^^\n" in marked and marked.endswith("A[i] = T.float32(1.0)  # here")
    with pytest.raises(TypeError):
        func.script("main")


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ({"ir_prefix": "2I"}, "print/prefix"),
        ({"int_dtype": "int33"}, "print/dtype"),
        ({"indent_spaces": 0}, "print/indent"),
    ],
)
def test_options_that_make_no_sense(option, code):
    with pytest.raises(tw.ArgumentError) as info:
        program().script(**option)
    assert info.value.code == code


def test_show_prints_plainly_into_a_pipe(capsys):
    program().show()
    assert capsys.readouterr().out.strip() == TEXT


@pytest.mark.parametrize("style", ["light", "dark", "ansi", "vim"])
def test_show_colors_where_a_style_is_asked_for(capsys, style):
    program().show(style=style)
    out = capsys.readouterr().out
    assert "\x1b[" in out and "prim_func" in out


def test_show_lays_out_anew(capsys):
    program().show("vim", black_format=True)
    assert "\x1b[" in capsys.readouterr().out
    program().show(None, True, name="other")
    assert 'def other(A: T.Buffer((8,), "float32")):' in capsys.readouterr().out
    assert reformatted("f( 1,2 )", "ruff") == "f(1, 2)\n"
    with pytest.raises(ValueError, match="ruff cannot format this"):
        reformatted("a +=")
    with pytest.raises(ValueError, match="unknown formatter 'tidy'"):
        reformatted("a", "tidy")


def test_a_formatter_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *arguments, **options: None)
    with pytest.raises(ValueError, match="no formatter is installed"):
        program().show(black_format=True)


def test_show_refuses_what_it_does_not_do():
    with pytest.raises(ValueError, match="unknown style"):
        program().show(style="nope")


def test_notebooks_get_html():
    assert "<span" in program()._repr_html_()


def test_structural_reports_show_the_lines_that_differ():
    assert ir.script_diff(program(8), program(8)) == ""
    diff = ir.script_diff(program(8), program(9))
    assert "-     for i in range(8):" in diff and "+     for i in range(9):" in diff
    with pytest.raises(tw.ArgumentError) as info:
        ir.assert_structural_equal(program(8), program(9))
    assert info.value.code == "ir/not-equal"
    assert "<root>.buffer_map[0].shape[0].value" in str(info.value) and "+     for i in range(9):" in str(info.value)
    ir.assert_structural_equal(program(8), program(8))


def test_import_stays_light():
    code = (
        "import sys; from tilewright import ir; print(ir.const(1), *('rich' in sys.modules, 'pygments' in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["1", "False", "False"]
