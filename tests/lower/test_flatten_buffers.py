"""Flat views of buffers with strides that the caller chooses, to either side of the first element."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lower.passes import agrees, check, script_after

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


def test_strides_and_offsets_are_in_the_index() -> None:
    @T.prim_func
    def before(a: T.handle):
        s = T.int32()
        o = T.int32()
        A = T.match_buffer(a, (8, 8), "float32", strides=[s, 1], elem_offset=o)
        for i, j in T.grid(8, 8):
            A[i, j] = T.float32(0)

    assert "A_1[i * A.strides[0] + j + A.elem_offset]" in tw.lower(before, after="flatten_buffers").script()


@pytest.mark.parametrize("dtype", ["int32", "uint16", "uint32", "uint64"])
def test_rows_that_are_chosen_without_a_sign_are_vectors(dtype: str) -> None:
    @T.prim_func
    def rows(A: T.Buffer((500, 16), "float32"), at: T.Buffer((8,), dtype), B: T.Buffer((8, 16), "float32")):
        for i in range(8):
            for j in T.vectorized(16):
                B[i, j] = A[at[i], j]

    text = tw.lower(rows, target="llvm -mcpu=x86-64-v4").script()
    assert "uint32x16" not in text and "uint64x16" not in text
    assert "T.Broadcast(at" not in text


def test_an_index_for_all_dimensions() -> None:
    @T.prim_func
    def before(A: T.Buffer((2, 3, 5), "int32"), B: T.Buffer((5, 6), "int32")):
        for i, j, k in T.grid(2, 3, 5):
            B[k, i * 3 + j] = A[i, j, k]

    @T.prim_func
    def expected(A: T.Buffer((2, 3, 5), "int32"), B: T.Buffer((5, 6), "int32")):
        A_1 = T.decl_buffer((30,), "int32", data=A.data)
        B_1 = T.decl_buffer((30,), "int32", data=B.data)
        for i, j, k in T.grid(2, 3, 5):
            B_1[k * 6 + (i * 3 + j)] = A_1[(i * 3 + j) * 5 + k]

    check(before, "flatten_buffers", expected)
    a = np.arange(30, dtype="int32").reshape(2, 3, 5)
    agrees(before, "flatten_buffers", [a, np.zeros((5, 6), "int32")], [a, a.reshape(6, 5).T])


def test_a_buffer_without_dimensions_has_one_element() -> None:
    @T.prim_func
    def counted(n: T.Buffer((), "int32")):
        n[()] = n[()] + 1

    assert "n_1[0] = n_1[0] + 1" in script_after(counted, "flatten_buffers")
    agrees(counted, "flatten_buffers", [np.array(4, "int32")], [np.array(5, "int32")])


def test_flat_buffers_keep_their_indices() -> None:
    @T.prim_func
    def flat(A: T.Buffer((8,), "int32")):
        for i in range(8):
            A[i] = A[7 - i]

    assert "A_1[i] = A_1[7 - i]" in script_after(flat, "flatten_buffers")
