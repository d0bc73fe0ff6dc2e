"""Descriptions of arguments."""

from __future__ import annotations

import pytest
from tests.search.programs import Product

import tilewright as tw
from tilewright.meta_schedule import ArgInfo, TensorInfo
from tilewright.script import ir as I
from tilewright.script import tir as T


def test_there_and_back():
    info = TensorInfo("float16", (2, 3))
    assert ArgInfo.from_json(info.as_json()) == info
    assert hash(info) == hash(TensorInfo("float16", [2, 3]))
    assert info != TensorInfo("float16", [3, 2])
    assert TensorInfo("int8", []).as_json() == ["TENSOR", "int8", []]


@pytest.mark.parametrize("json", [None, [], ["SCALAR", "int32", []], ["TENSOR", "int32"], "TENSOR"])
def test_what_describes_nothing(json):
    with pytest.raises(tw.ArgumentError) as error:
        ArgInfo.from_json(json)
    assert error.value.code == "arg-info/json"


def test_of_the_function_that_is_called():
    square = TensorInfo("float32", (32, 32))
    assert ArgInfo.from_entry_func(Product) == [square, square, square]
    assert ArgInfo.from_entry_func(tw.ir.IRModule({"other": Product["main"]})) == [square, square, square]


@I.ir_module
class Two:
    @T.prim_func
    def first(A: T.Buffer((8,), "float32")):
        A[0] = T.float32(1)

    @T.prim_func
    def second(A: T.Buffer((9,), "float32")):
        A[0] = T.float32(1)


def test_several_functions():
    with pytest.raises(tw.ArgumentError) as error:
        ArgInfo.from_entry_func(Two)
    assert error.value.code == "arg-info/entry"
    marked = tw.ir.IRModule({"first": Two["first"], "second": Two["second"].with_attr("tir.is_entry_func", True)})
    assert ArgInfo.from_entry_func(marked) == [TensorInfo("float32", (9,))]


def test_parameters_that_have_no_description():
    @T.prim_func
    def number(n: T.int32, A: T.Buffer((8,), "float32")):
        A[0] = T.cast(n, "float32")

    @T.prim_func
    def open_size(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        A[0] = T.float32(1)

    for function, code in ((number, "arg-info/scalar"), (open_size, "arg-info/symbolic")):
        with pytest.raises(tw.ArgumentError) as error:
            ArgInfo.from_prim_func(function)
        assert error.value.code == code
