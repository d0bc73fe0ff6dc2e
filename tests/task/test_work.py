"""Which operations of a program count as its work, and which limit of the machine they meet."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.heuristics.block_info import Sizes
from tilewright.script import tir as T
from tilewright.support import machine
from tilewright.task.mean_extents import mean_extents
from tilewright.task.task import task_of, work_of


def product(a: str, b: str, out: str) -> tw.ir.PrimFunc:
    x, y = te.placeholder((64, 32), a, name="X"), te.placeholder((32, 16), b, name="Y")
    k = te.reduce_axis((0, 32), name="k")
    total = te.compute((64, 16), lambda i, j: te.sum(x[i, k].astype(out) * y[k, j].astype(out), axis=k), name="Z")
    return te.create_prim_func([x, y, total])


def scaled(total: str) -> tw.ir.PrimFunc:
    """A product of bytes that ends in floats."""
    x, y = te.placeholder((64, 32), "uint8", name="X"), te.placeholder((32, 16), "int8", name="Y")
    k = te.reduce_axis((0, 32), name="k")
    z = te.compute((64, 16), lambda i, j: te.sum(x[i, k].astype(total) * y[k, j].astype(total), axis=k), name="Z")
    f = te.compute((64, 16), lambda i, j: z[i, j].astype("float32") * te.const(0.5, "float32"), name="F")
    return te.create_prim_func([x, y, f])


@pytest.mark.parametrize(
    "program, dtype",
    [
        (product("float32", "float32", "float32"), "float32"),
        (product("bfloat16", "bfloat16", "float32"), "bfloat16"),
        (product("uint8", "int8", "int32"), "int8"),
        (product("int32", "int32", "int32"), "int32"),
        (scaled("int32"), "int8"),
    ],
)
def test_the_kind_that_there_is_most_of(program: tw.ir.PrimFunc, dtype: str) -> None:
    work = task_of(program).work
    assert work.dtype == dtype and work.flops == 2 * 64 * 32 * 16
    assert machine.rate_unit(work.dtype) == ("GFLOP/s" if "float" in dtype else "Gop/s")


def test_dot_products_have_limits_of_their_own() -> None:
    peaks = machine.roofs(1).peaks
    features = tw.Target("native").features
    assert (peaks["int8"] > peaks["int32"]) == any(name in features for name in ("avxvnni", "avx512vnni"))
    # Some processors begin dot products of bfloat16 half as often as multiplications of float32.
    assert peaks["bfloat16"] >= peaks["float32"]
    assert peaks["bfloat16"] == peaks["float32"] or "avx512bf16" in features


@T.prim_func
def spmm(ptr: T.handle, ind: T.handle, val: T.handle, b: T.handle, c: T.handle):
    m, n, z = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
    P = T.match_buffer(ptr, (m + 1,), "int32")
    I = T.match_buffer(ind, (z,), "int32")
    A = T.match_buffer(val, (z,))
    B = T.match_buffer(b, (n, 8))
    C = T.match_buffer(c, (m, 8))
    for i in range(m):
        with T.block("row"):
            vi = T.axis.spatial(m, i)
            for j in range(8):
                with T.block("zero"):
                    vj = T.axis.spatial(8, j)
                    C[vi, vj] = T.float32(0)
            for p, j in T.grid(P[vi + 1] - P[vi], 8):
                with T.block("sum"):
                    vp = T.axis.reduce(P[vi + 1] - P[vi], p)
                    vj = T.axis.spatial(8, j)
                    C[vi, vj] += A[P[vi] + vp] * B[I[P[vi] + vp], vj]


@pytest.mark.parametrize("lengths", [[3, 0, 5, 1], [0, 0, 0, 0], [9, 0, 0, 0], [2]])
def test_loops_whose_bounds_are_data_count_what_they_do(lengths: list[int]) -> None:
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
    m, z = len(lengths), int(pointers[-1])
    args = [pointers, np.zeros(z, "int32"), np.zeros(z, "float32"), np.zeros((6, 8), "float32"), np.zeros((m, 8))]
    work = work_of(spmm, args)
    assert work.flops == 2 * 8 * z
    # Of B no more than is read: a row for each nonzero.
    assert work.bytes == 4 * ((m + 1) + z + z + 8 * min(z, 6) + 8 * m)


@pytest.mark.parametrize("n", [64, np.int16(64), np.array(64), np.array(64, "uint64")])
def test_scalars_of_any_kind_of_integer_count(n: object) -> None:
    @T.prim_func
    def first(A: T.Buffer((100,), "float32"), n: T.int32, B: T.Buffer((100,), "float32")):
        for i in range(n):
            with T.block("B"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] * T.float32(2)

    array = np.zeros(100, "float32")
    assert work_of(first, [array, n, array]).flops == 64


def test_typical_sizes_of_numpy_count() -> None:
    size = tw.ir.Var("n", "int32")
    for given in (7, np.int64(7), np.array(7)):
        assert Sizes({"n": given}).value(size * 2) == 14


def test_means_of_extents() -> None:
    @T.prim_func
    def nested(P: T.Buffer((4,), "int32"), Q: T.Buffer((3, 5), "int64"), X: T.Buffer((3,))):
        for i in range(3):
            for k in range(T.max(P[i] - 2, 0)):
                X[i] = X[i] + T.float32(k)
            for j in range(5):
                for k in range(T.Cast("int32", Q[i, 4 - j]) // 2):
                    X[i] = X[i] + T.float32(k)
            for k in range(P[i + 4]):
                X[i] = T.float32(k)

    q = np.arange(15).reshape(3, 5)
    means = mean_extents(nested, [np.array([1, 4, 9, 2], "int32"), q, np.zeros(3, "float32")])
    # Where an index leaves its buffer, nothing is known.
    assert [mean for _, mean in means] == [(0 + 2 + 7) / 3, np.mean(q // 2)]
