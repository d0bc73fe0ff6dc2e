"""What help() and editors show of the functions of T: their arguments, by name."""

import inspect

import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.script.core import script as core
from tilewright.script.tir.intrinsic_docs import SUMMARIES, parameters_of

LAYOUT = ["data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators"]
#: Functions of any number of arguments.
ANY = {"grid", "fuse", "reads", "writes", "print", "call_intrin", "reinterpret", "sum", "prod", "min", "max", "Tuple"}
ANY |= {"assume_disjoint"}


def names(function) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_buffers():
    assert names(T.match_buffer) == ["param", "shape", "dtype", *LAYOUT]
    assert names(T.Buffer) == ["shape", "dtype", *LAYOUT, "name"]
    for function in (T.match_buffer, type(T.Buffer).__call__):
        parameters = inspect.signature(function).parameters
        for name in LAYOUT:
            assert f"{name}: " in inspect.getdoc(function), name
        assert parameters["scope"].default == "global"
    assert names(T.prim_func) == ["func", "private", "check_well_formed", "s_tir"]
    assert names(T.fma) == ["x", "y", "z", "dtype"]


def test_each_intrinsic_is_explained():
    callable_rows = {name: arity for name, arity, place, *_ in core.intrinsics() if place != 3}
    explained = set(SUMMARIES) | {"if_then_else", "clz", "reinterpret", "address_of", "undef", "print"}
    where = "SUMMARIES of python/tilewright/script/tir/intrinsic_docs.py"
    assert not (missing := set(callable_rows) - explained), f"say in {where} what these compute: {sorted(missing)}"
    assert not (gone := set(SUMMARIES) - set(callable_rows)), f"remove from {where}: {sorted(gone)}"
    for name, arity in callable_rows.items():
        arguments = parameters_of(name, arity)
        assert arity < 0 or len(arguments) == arity or name in ("if_then_else",), name
    text = inspect.getdoc(T.tvm_load_matrix_sync)
    assert "fragment, m, n, k, index, pointer, stride, layout: expressions." in text
    assert inspect.getdoc(T.exp).splitlines() == [
        "e to the power of `x`.",
        "",
        "Args:",
        "    x: a floating-point number or vector.",
        "    dtype: the type of the result, where it differs from what follows from the arguments.",
        "",
        "Returns:",
        "    An expression of that type.",
        "",
        "The intrinsic `tir.exp`.",
    ]


def test_arguments_and_results_are_explained():
    for name in T.__all__:
        value = getattr(T, name)
        is_ours = inspect.isfunction(value) and not value.__module__.endswith(".sparse")
        if is_ours and inspect.signature(value).parameters:
            assert "Args:" in inspect.getdoc(value), name


def test_functions_written_by_hand_have_no_arguments_without_names():
    starred = set()
    for name in T.__all__:
        value = getattr(T, name)
        if inspect.isfunction(value) and not value.__doc__.endswith(f"The intrinsic `tir.{name}`."):
            kinds = {parameter.kind for parameter in inspect.signature(value).parameters.values()}
            starred |= {name} if inspect.Parameter.VAR_KEYWORD in kinds else set()
            assert inspect.Parameter.VAR_POSITIONAL not in kinds or name in ANY or "call" in name, name
    assert not starred


def test_the_stub_has_the_same_arguments():
    """The part of the stub that is written by hand, for what is a function of Python."""
    import ast
    from pathlib import Path

    stub = Path(__file__).parents[2] / "tools" / "tir_head.pyi"
    functions = {node.name: node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.FunctionDef)}
    for name in ("match_buffer", "serial", "thread_binding", "realize", "attr", "Range", "LetStmt"):
        arguments = functions[name].args
        written = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        assert written == names(getattr(T, name)), name
    (buffer,) = (node for node in ast.parse(stub.read_text()).body if getattr(node, "name", "") == "Buffer")
    init = next(node for node in buffer.body if getattr(node, "name", "") == "__init__")
    assert [item.arg for item in init.args.args][1:] == names(T.Buffer)


@pytest.mark.parametrize("wrong", [{"aling": 4}, {"shapes": (4,)}])
def test_wrong_names_are_refused_where_they_stand(wrong):
    ((name, value),) = wrong.items()
    text = f"@T.prim_func\ndef main(a: T.handle):\n    A = T.match_buffer(a, (4,), {name}={value})\n    T.evaluate(0)\n"
    with pytest.raises(tw.ScriptError, match=name) as error:
        tw.script.from_source(text)
    assert ":3:" in str(error.value)
