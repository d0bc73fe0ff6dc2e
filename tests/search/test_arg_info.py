"""Descriptions of arguments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.search.programs import Product

import tilewright as tw
from tilewright.meta_schedule import ArgInfo, MeasureCandidate, TensorInfo
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.support import limits


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


class Of:
    """Whatever has a type and a shape."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape


def test_candidates_say_what_they_are_called_with(monkeypatch):
    monkeypatch.setattr(limits, "MOST_ITEMS", 1000)
    schedule = tw.Schedule(Product)
    extent = tw.ir.const(3)
    candidate = MeasureCandidate(schedule, (Of(np.dtype("int8"), [np.int64(2), extent]), TensorInfo("float16", ())))
    assert candidate.args_info == [TensorInfo("int8", (2, 3)), TensorInfo("float16", ())]
    assert MeasureCandidate(schedule).args_info == MeasureCandidate(schedule, iter([])).args_info == []
    for said, given in {
        "args_info is 7; it is a list of TensorInfos": 7,
        "args_info is 'x'; it is a list of TensorInfos": "x",
        "a list of TensorInfos, and this has more than 1000": itertools.repeat(TensorInfo("int8", ())),
        r"args_info\[0\] is None; it is a TensorInfo": [None],
        r"args_info\[1\] is 1; it is a TensorInfo": [TensorInfo("int8", ()), 1],
        r"args_info\[0\] is \[\]; it is a TensorInfo": [[]],
        r"args_info\[0\].dtype is 'floot'; it is the name of a data type": [Of("floot", [2])],
        r"args_info\[0\].shape is 7; it is a list of extents": [Of("int8", 7)],
        r"args_info\[0\].shape\[1\] is 'x'; it is a whole number": [Of("int8", [2, "x"])],
        r"args_info\[0\].shape\[0\] is -1; it is at least 0": [Of("int8", [-1])],
        r"args_info\[0\].shape\[0\] is 18446744073709551616; it is at most": [Of("int8", [2**64])],
    }.items():
        with pytest.raises(tw.ArgumentError, match=said) as error:
            MeasureCandidate(schedule, given)
        assert error.value.code == ("arguments/number" if r"shape\[" in said else "arguments/kind")


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
