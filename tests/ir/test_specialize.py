"""Functions with some of their parameters fixed."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.task.specialize import specialize


@T.prim_func
def scaled(a: T.handle, b: T.handle, n: T.int32, factor: T.float32):
    m = T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for i, j in T.grid(m, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * factor


A, B, N, FACTOR = scaled.params
M = scaled.buffer_map[A].shape[0]


def buffer(*shape, dtype="float32"):
    @T.prim_func
    def holder(X: T.Buffer(shape, dtype)):
        X[tuple(0 for _ in shape)] = T.Cast(dtype, 0)

    return holder.buffer_map[holder.params[0]]


def test_scalars_and_sizes():
    fixed = specialize(scaled, {N: 3, FACTOR: 2.0, M: 4})
    assert [param.name for param in fixed.params] == ["a", "b"]
    array, result = np.arange(12, dtype="float32").reshape(4, 3), np.empty((4, 3), "float32")
    tw.compile(fixed)(array, result)
    np.testing.assert_array_equal(result, 2 * array)


def test_a_buffer_says_its_sizes():
    fixed = specialize(scaled, {A: buffer(8, 5)})
    assert [n.value for n in fixed.buffer_map[B].shape] == [8, 5]
    assert [param.name for param in fixed.params] == ["a", "b", "factor"]


def test_the_others_stay_open():
    fixed = specialize(scaled, {FACTOR: 3.0})
    assert isinstance(fixed.buffer_map[A].shape[0], ir.Var)
    array, result = np.ones((2, 2), "float32"), np.empty((2, 2), "float32")
    tw.compile(fixed)(array, result, 2)
    np.testing.assert_array_equal(result, 3 * array)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({ir.Var("z", "int32"): 1}, "neither a parameter"),
        ({A: 3}, "fix it by a buffer"),
        ({A: buffer(8)}, "another type or rank"),
        ({A: buffer(8, 5, dtype="int32")}, "another type or rank"),
        ({A: buffer(8, 5), B: buffer(8, 6)}, "n is 5 by one value and 6 by another"),
        ({A: buffer(8, 5), N: 6}, "n is 5 by one value and 6 by another"),
        ({N: 6, A: buffer(8, 5)}, "n is 6 by one value and 5 by another"),
        ({N: 2.5}, "n is int32, and 2.5 is not an integer"),
        ({N: -3}, "extents are at least 0"),
    ],
)
def test_refusals(values, message):
    with pytest.raises(tw.ArgumentError, match=message):
        specialize(scaled, values)


def test_a_size_beyond_its_type_is_refused():
    with pytest.raises(tw.ScriptError, match="1099511627776 is no int32"):
        specialize(scaled, {N: 2**40})


TREE = """@T.prim_func
def f(
    a: T.handle, y: T.handle, near: T.handle, ptr: T.handle, list: T.handle,
    m: T.int32, n: T.int32, w: T.int32, z: T.int32, one: T.int32
):
    I = T.sp.dense_fixed(m * 2)
    J = T.sp.compressed_fixed(I, (n, w), near, "int64")
    K = T.sp.dense_varied(J, (3, z), ptr)
    L = T.sp.compressed_fixed(I, (n, one), list)
    F = T.sp.flatten([I, J])
    A = T.sp.match_buffer(a, (I, J), "float32", extra_storage=m)
    Y = T.sp.match_buffer(y, (I, L), "float32")
    with T.sp.iteration([I, J, K], "SSS", "zero") as [i, j, k]:
        A[i, j] = T.float32(0)
"""


@pytest.mark.parametrize("names", ["m", "w", "mw", "one", "mwone", "mnwz", "n"])
def test_sizes_over_axes_are_those_of_the_text(names):
    func = from_source(TREE)
    numbers = {"m": 7, "n": 9, "w": 3, "z": 11, "one": 1}
    fixed = specialize(func, {p: numbers[p.name] for p in func.params if p.name in numbers and p.name in names})
    ir.assert_structural_equal(from_source(fixed.script()), fixed)
    sch = tw.Schedule(fixed)
    sch.lower_sparse_iter()
    assert "T.Mul(" not in sch.mod.script() and "T.Add(" not in sch.mod.script()
