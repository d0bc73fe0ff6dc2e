"""What depends on structure alone runs once, in a function of its own; unused parameters go."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from tests.sparse_programs import CASES, SPMM, STRUCTURES, function

import tilewright as tw
from tilewright import _core, ir
from tilewright.sparse import extract_preprocess, remove_preprocess, remove_unused_arguments
from tilewright.testing import check_same


def lowered(text: str) -> ir.PrimFunc:
    sch = tw.Schedule(function(text))
    sch.lower_sparse_iter()
    made: ir.PrimFunc = sch.mod["main"]
    return made


@pytest.mark.parametrize("target", ["interpreter", "native"])
@pytest.mark.parametrize("name", ["dense reads", "masked", "masked, unsorted", "shifted"])
def test_positions_are_searched_for_once(name: str, target: str) -> None:
    func = lowered(CASES[name].text)
    first, then = extract_preprocess(func), remove_preprocess(func)
    for part in (first, then):
        _core.verify(_core.as_module(part), "scheduled")
    assert "binary_search" in first.script() and "binary_search" not in then.script()
    added = [buffer for param, buffer in then.buffer_map.items() if param not in {*func.params}]
    assert added and [param.name for param in then.params] == [param.name for param in first.params]
    for structure in STRUCTURES:
        args, output, want = CASES[name].make(np.random.default_rng(3), structure)
        sizes = {p.name: arg for p, arg in zip(func.params, args, strict=True) if isinstance(arg, int)}
        kept = [np.full([value(extent, sizes) for extent in buffer.shape], -7, buffer.dtype) for buffer in added]
        args = copy.deepcopy(args)
        tw.compile(first, target)(*args, *kept)
        for _ in range(2):
            tw.compile(then, target)(*args, *kept)
        np.testing.assert_array_equal(args[output], want)


def value(extent: Any, sizes: dict[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    named = {v: sizes[v.name] for v in _core.undefined_vars(extent)}
    return int(_core.Analyzer().simplify(_core.substitute(extent, named)).value)  # type: ignore[attr-defined]


COPIED = """
def f(a: T.handle, b: T.handle, c: T.handle, unused: T.handle, m: T.int32, k: T.int32):
    I = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(a, (I,), "float32")
    B = T.sp.match_buffer(b, (I,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I], "S", "copy") as [i]:
        T.sp.iteration_attr({"preprocess": True})
        B[i] = A[i]
    with T.sp.iteration([I], "S", "twice") as [j]:
        C[j] = B[j] * T.float32(2)
"""


def test_iterations_over_axes_are_divided_too() -> None:
    func = function(COPIED)
    first, then = extract_preprocess(func), remove_preprocess(func)
    assert '"copy"' in first.script() and '"twice"' not in first.script()
    assert '"copy"' not in then.script() and '"twice"' in then.script()
    assert len(then.params) == len(func.params)
    small = remove_unused_arguments(then)
    assert [param.name for param in small.params] == ["b", "c", "m"]
    b, c = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    tw.compile(small)(b, c, 4)
    np.testing.assert_array_equal(c, [0, 2, 4, 6])


def test_what_others_write_is_not_preprocessed() -> None:
    func = function(COPIED.replace("C[j] = B[j]", "A[j] = B[j]"))
    with pytest.raises(tw.ArgumentError, match="accesses 'A', which others write") as caught:
        extract_preprocess(func)
    assert caught.value.code == "sparse/preprocess" and caught.value.hint


def test_programs_without_preprocessing_stay() -> None:
    func = lowered(SPMM)
    check_same(remove_preprocess(func), func)
    check_same(remove_unused_arguments(func), func)


def test_a_buffer_that_defines_a_size_is_used() -> None:
    text = """
def f(x: T.handle, y: T.handle, z: T.Buffer((4,))):
    n = T.int32()
    X = T.match_buffer(x, (n,))
    Y = T.match_buffer(y, (n,))
    for i in range(n):
        with T.block("y"):
            vi = T.axis.spatial(n, i)
            Y[vi] = T.float32(1)
"""
    small = remove_unused_arguments(function(text))
    assert [param.name for param in small.params] == ["y"]
    other = text.replace("Y = T.match_buffer(y, (n,))", "Y = T.match_buffer(y, (8,))").replace("[vi] =", "[vi % 8] =")
    small = remove_unused_arguments(function(other))
    assert [param.name for param in small.params] == ["x", "y"]
