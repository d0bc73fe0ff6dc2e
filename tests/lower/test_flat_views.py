"""Flat views of buffers with strides that the caller chooses, to either side of the first element."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T


@T.prim_func
def sums(a: T.handle, B: T.Buffer((4, 6), "int32")):
    s, t = T.int32(), T.int32()
    A = T.match_buffer(a, (4, 6), "int32", strides=(s, t))
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = B[vi, vj] + A[vi, vj]


LAYOUTS = [
    lambda a: a,
    lambda a: a[::-1, :],
    lambda a: a[:, ::-1],
    lambda a: a[::-1, ::-1],
    lambda a: np.asfortranarray(a)[::-1],
    lambda a: np.repeat(a, 2, 1)[:, ::-2][:, ::-1],
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lowered_programs_reach_elements_in_front_of_the_first_one(layout):
    given = layout(np.arange(24, dtype="int32").reshape(4, 6).copy())
    want = given + 1
    for run in (
        lambda *args: _core.interpret(tw.lower(sums, after="flatten_buffers"), "sums", *args),
        tw.compile(sums),
    ):
        out = np.ones((4, 6), "int32")
        run(given, out)
        np.testing.assert_array_equal(out, want)


def test_the_memory_ends_where_the_argument_does():
    wrong = tw.script.from_source("""
@T.prim_func
def main(a: T.handle, B: T.Buffer((1,), "int32")):
    s = T.int32()
    A = T.match_buffer(a, (6,), "int32", strides=(s,))
    F = T.decl_buffer((6,), "int32", data=A.data)
    B[0] = F[B[0]]
""")
    a = np.arange(6, dtype="int32")[::-1]
    lowered = tw.lower(wrong, after="flatten_buffers")
    for index in (1, -6):
        with pytest.raises(tw.ScriptError, match="outside of the memory"):
            _core.interpret(lowered, "main", a, np.array([index], "int32"))
    out = np.array([-5], "int32")
    _core.interpret(lowered, "main", a, out)
    assert out[0] == 0
