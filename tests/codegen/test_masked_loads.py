"""Loads of which a mask says which lanes take part."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.support.numpy_dtype import numpy_dtype

ROWS = """
@T.prim_func
def rows(X: T.Buffer((6, {inner}), "{dtype}"), P: T.Buffer((6, {outer}), "{dtype}")):
    for i in range(6):
        for j_0 in T.unroll({count}):
            for j_1 in T.vectorized({lanes}):
                with T.block("P"):
                    T.where(j_0 * {lanes} + j_1 < {outer})
                    vi = T.axis.spatial(6, i)
                    vj = T.axis.spatial({outer}, j_0 * {lanes} + j_1)
                    P[vi, vj] = T.if_then_else(vi >= 1 and vj >= 1 and vj <= {inner}, X[vi - 1, vj - 1], T.{dtype}(0))
"""


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("outer", [19, 20, 21, 22, 25, 37, 41])
@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_padding_whose_last_vector_is_mostly_outside(dtype, outer, lanes):
    """A condition of the row, and lanes of which whole registers are never loaded."""
    text = ROWS.format(inner=outer - 2, outer=outer, lanes=lanes, count=-(-outer // lanes), dtype=dtype)
    x = np.arange(1, 6 * (outer - 2) + 1).reshape(6, outer - 2).astype(dtype)
    expected = np.zeros((6, outer), dtype)
    expected[1:, 1:-1] = x[:5]
    found = np.full((6, outer), 7, dtype)
    tw.compile(tw.script.from_source(text), schedule="as written")(x, found)
    np.testing.assert_array_equal(found, expected)


LANES = """
@T.prim_func
def lanes(X: T.Buffer(({size},), "{dtype}"), Y: T.Buffer((64,), "{dtype}"), Z: T.Buffer(({size},), "{dtype}"),
          I: T.Buffer((64,), "int32"), n: T.int32):
    for i in T.vectorized(64):
        with T.block("Y"):
            T.where(i < n)
            vi = T.axis.spatial(64, i)
            Y[vi] = X[vi * {stride}] + X[I[vi]]
    for i in T.vectorized(64):
        with T.block("Z"):
            T.where(i < n)
            vi = T.axis.spatial(64, i)
            Z[vi * {stride}] = Y[vi]
"""


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("stride", [3, 33])
def test_lanes_of_bytes_under_a_mask_have_no_branches(dtype, stride):
    """No processor gathers lanes of fewer than 32 bits: of a branch for each lane, hundreds took minutes to compile."""
    size = 63 * stride + 1
    program = LANES.format(size=size, stride=stride, dtype=dtype)
    program = program.replace("] + X", "] or X") if dtype == "bool" else program
    kernel = tw.compile(tw.script.from_source(program), schedule="as written")
    text = kernel.inspect("llvm")
    assert dtype == "float32" or ("llvm.masked.gather" not in text and "llvm.masked.scatter" not in text)
    of_type = numpy_dtype(dtype)
    random = np.random.default_rng(0)
    x = random.integers(0, 2 if dtype == "bool" else 9, size).astype("float32").astype(of_type)
    at = random.integers(0, size, 64).astype("int32")
    for n in (0, 1, 37, 64):
        y, z = np.full(64, 1).astype(of_type), np.full(size, 1).astype(of_type)
        want_y, want_z = y.copy(), z.copy()
        for i in range(n):
            want_y[i] = x[i * stride] or x[at[i]] if dtype == "bool" else x[i * stride] + x[at[i]]
            want_z[i * stride] = want_y[i]
        kernel(x, y, z, at, n)
        np.testing.assert_array_equal(y, want_y)
        np.testing.assert_array_equal(z, want_z)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_select_of_loaded_lanes_loads_all_of_them(dtype):
    """No masked load takes their place: processors fetch no lines ahead for it."""
    text = f"""
@T.prim_func
def kept(X: T.Buffer((64,), "{dtype}"), L: T.Buffer((8,), "int32"), Y: T.Buffer((64,), "{dtype}")):
    for i in range(8):
        for j in T.vectorized(8):
            Y[i * 8 + j] = T.Select(j < L[i], X[i * 8 + j], T.{dtype}(0))
"""
    program = tw.script.from_source(text)
    asm = tw.compile(program, target="llvm -mcpu=skylake-avx512", schedule="as written").inspect("asm")
    masked = [line for line in asm.splitlines() if "(" in line.split("%k")[0] and "{%k" in line]
    assert "{%k" in asm
    assert not masked
    x, lengths, y = np.arange(1, 65).astype(dtype), np.arange(8, dtype="int32"), np.zeros(64, dtype)
    tw.compile(program, schedule="as written")(x, lengths, y)
    np.testing.assert_array_equal(y.reshape(8, 8), np.where(np.arange(8) < lengths[:, None], x.reshape(8, 8), 0))
