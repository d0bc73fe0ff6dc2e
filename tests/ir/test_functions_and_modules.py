"""Copies of functions and modules with one thing changed, lookup by name, and visits of nodes."""

import pytest

import tilewright as tw
from tilewright import ir, script
from tilewright.script import tir as T


@T.prim_func
def double(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(16):
        B[i] = A[i] * T.float32(2)


def test_attributes_of_functions_and_modules():
    named = double.with_attr("global_symbol", "other").with_attr({"a": 1, "b": [2]})
    assert named.attrs == {"global_symbol": "other", "a": 1, "b": [2]}
    assert double.attrs == {"global_symbol": "double"}
    assert named.without_attr("a").without_attr("missing").attrs == {"global_symbol": "other", "b": [2]}
    module = ir.as_module(double).with_attr("x", "y")
    assert module.attrs == {"x": "y"} and module.without_attr("x").attrs == {}


@pytest.mark.parametrize("text", ["\0", "a\0b", "\0\n\U0001f600"])
def test_strings_keep_characters_that_end_those_of_c(text):
    named = double.with_attr({"k" + text: text})
    assert named.attrs == {"global_symbol": "double", "k" + text: text}
    call = named.with_body(ir.Evaluate(T.call_extern("int32", "g", text)))
    assert call.body.value.args[1].value == text
    assert ir.structural_equal(script.from_source(call.script(show_meta=True)), call)
    assert ir.structural_equal(ir.load_json(ir.save_json(call)), call)


def test_body_of_a_function():
    empty = double.with_body(ir.Evaluate(0))
    assert isinstance(empty.body, ir.Evaluate) and empty.buffer_map == double.buffer_map


def test_functions_of_a_module():
    module = ir.IRModule({"double": double, "again": double})
    assert len(module) == 2 and "double" in module and "triple" not in module
    (again, other) = module.get_global_vars()
    assert (again.name_hint, other.name_hint) == ("again", "double") and again in module
    assert module["double"].same_as(double) and module[module.get_global_var("again")].same_as(double)
    with pytest.raises(tw.ArgumentError, match="no function 'triple'") as caught:
        module["triple"]
    assert caught.value.code == "ir/no-function"


def test_visits_see_each_node_once():
    order = []
    ir.post_order_visit(double.body, order.append)
    names = [type(node).__name__ for node in order]
    assert names[-1] == "For" and names.index("Mul") < names.index("BufferStore")
    assert len({id(node) for node in order}) == len(order) and names.count("Var") == 3
    seen = []

    def enter(node):
        seen.append(type(node).__name__)
        return not isinstance(node, ir.BufferStore)

    ir.pre_order_visit(double.body, enter)
    assert seen[0] == "For" and seen[-1] == "BufferStore" and "Mul" not in seen


def test_iteration_variables_are_variables_in_expressions():
    axis = ir.IterVar(ir.Range(0, 8), ir.Var("k", "int32"), ir.IterType.COMM_REDUCE, "")
    assert [str(e) for e in (axis + 1, 2 * axis, axis // 4 % 2, -axis, axis < 3, ir.max(axis, 0))] == [
        "k + 1",
        "2 * k",
        "k // 4 % 2",
        "k * -1",
        "k < 3",
        "T.max(k, 0)",
    ]
    assert axis == axis and axis != ir.IterVar(axis.dom, axis.var, axis.iter_type, "")


def test_functions_are_told_apart_by_name():
    f, again = ir.GlobalVar("f"), ir.GlobalVar("f")
    assert f == again and {f: 1}[again] == 1
    assert (f != again) is False
    assert f != ir.GlobalVar("g") and f != "f" and f != None  # noqa: E711


def test_name_of_a_variable():
    x = ir.Var("x", "int32")
    assert x.name == x.name_hint == "x"
