"""Places in programs as objects: ``tvm.runtime.ObjectPath``, and where two programs differ."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright import _core
from tilewright.compat.tvm import ir
from tilewright.compat.tvm.runtime.object_path import ArrayIndexPath, MapValuePath, ObjectPath, RootPath
from tilewright.compat.tvm.script import tir as T

ROOT = ObjectPath.root()


@T.prim_func
def first(A: T.Buffer((4,)), B: T.Buffer((4,))):
    for i in T.serial(4, annotations={"x": 1}):
        A[i] = T.float32(0)
    B[0] = T.float32(1)


@T.prim_func
def other_annotation(A: T.Buffer((4,)), B: T.Buffer((4,))):
    for i in T.serial(4, annotations={"y": 1}):
        A[i] = T.float32(0)
    B[0] = T.float32(1)


@T.prim_func
def one_more(A: T.Buffer((4,)), B: T.Buffer((4,))):
    for i in T.serial(4, annotations={"x": 1}):
        A[i] = T.float32(0)
    B[0] = T.float32(1)
    B[1] = T.float32(1)


def test_steps() -> None:
    path = ROOT.attr("body").array_index(3).map_value("k")
    assert str(path) == repr(path) == '<root>.body[3]["k"]'
    assert len(ROOT) == 1 and len(path) == 4
    assert path.get_prefix(2) == ROOT.attr("body") and path.parent == path.get_prefix(3)
    assert ROOT.parent is None and isinstance(ROOT, RootPath)
    assert isinstance(path, MapValuePath) and isinstance(path.parent, ArrayIndexPath)
    assert path.get_prefix(1).is_prefix_of(path) and not path.is_prefix_of(ROOT)
    with pytest.raises(IndexError, match="1 to 4 places, not 5"):
        path.get_prefix(5)
    with pytest.raises(ValueError, match=r"ObjectPath\.root"):
        ObjectPath()


def test_what_is_not_there() -> None:
    assert str(ROOT.missing_array_element(2)) == "<root>[<missing element #2>]"
    assert str(ROOT.missing_map_entry()) == "<root>[<missing entry>]"
    assert str(ObjectPath.root("A").attr(None)) == "A.<unknown attribute>"
    assert ROOT.attr(None) != ROOT.attr(None)


def test_equality() -> None:
    i, j = _core.Var("i", "int32"), _core.Var("i", "int32")
    assert ROOT.map_value(i) == ROOT.map_value(i) != ROOT.map_value(j)
    assert len({ROOT.attr("a"), ROOT.attr("a"), ROOT.attr("b"), ROOT.array_index(0)}) == 3
    assert ObjectPath.root("A") != ROOT and ROOT != "<root>"
    assert ROOT.map_value(_core.GlobalVar("f")) == ROOT.map_value(next(iter(ir.IRModule({"f": first}).functions)))


def test_parameters_of_one_name() -> None:
    handles = [_core.Var("a", "handle"), _core.Var("a", "handle")]
    buffers = [first.buffer_map[param] for param in first.params]
    func = _core.PrimFunc(handles, dict(zip(handles, buffers, strict=True)), first.ret_type, {}, first.body)
    assert ROOT.attr("buffer_map").map_value(handles[1]).attr("shape").to_text(func) == "<root>.buffer_map[1].shape"


BODY = ROOT.attr("body")
LOOP = BODY.attr("seq").array_index(0).attr("annotations")
LENGTH = BODY.attr("seq")
FUNCTIONS = ROOT.attr("functions")


@pytest.mark.parametrize(
    ("lhs", "rhs", "left", "right"),
    [
        (first, other_annotation, LOOP.map_value("x"), LOOP.missing_map_entry()),
        (first, one_more, LENGTH.missing_array_element(2), LENGTH.array_index(2)),
        (one_more, first, LENGTH.array_index(2), LENGTH.missing_array_element(2)),
        (first.with_attr("k", 1), first, ROOT.attr("attrs").map_value("k"), ROOT.attr("attrs").missing_map_entry()),
        (first, first.with_attr("k", 1), ROOT.attr("attrs").missing_map_entry(), ROOT.attr("attrs").map_value("k")),
    ],
)
def test_where_programs_differ(lhs: Any, rhs: Any, left: ObjectPath, right: ObjectPath) -> None:
    if "global_symbol" in lhs.attrs:
        lhs, rhs = (func.with_attr("global_symbol", "main") for func in (lhs, rhs))
    assert ir.get_first_structural_mismatch(lhs, rhs) == (left, right)
    with pytest.raises(ValueError, match="StructuralEqual check failed") as raised:
        ir.assert_structural_equal(lhs, rhs)
    assert f"lhs at {left}:" in str(raised.value)
    assert f"rhs at {right}:" in str(raised.value)


def test_modules_with_attributes() -> None:
    module = ir.IRModule({"main": first})
    attrs = ROOT.attr("attrs")
    pair = ir.get_first_structural_mismatch(module, module.with_attr("t", 1))
    assert pair == (attrs.missing_map_entry(), attrs.map_value("t"))
