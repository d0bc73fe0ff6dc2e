"""Conditions of data are decided by what runs: their arithmetic wraps around, and what they read may change."""

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, script

HEAD = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            T.reads(A[0:4], B[0:8])
            T.writes(A[0:4], B[0:8])
            x: T.int32 = A[v]
"""
OF_DATA = {
    "a product": """
            if x * 2 // 2 == x:
                B[v] = 1
            else:
                B[v] = 2
""",
    "what another condition says": """
            if x > 5:
                if x * 2 > 7:
                    B[v] = 1
                else:
                    B[v] = 2
""",
    "another type": """
            y: T.int64 = T.Cast("int64", x)
            if T.Cast("int32", y) + 1 > T.Cast("int32", y):
                B[v] = 1
            else:
                B[v] = 2
""",
    "an absolute value": """
            if T.abs(x) >= 0:
                B[v] = 1
            else:
                B[v] = 2
""",
    "a shift": """
            if T.shift_left(x, 1) >= x and x >= 0:
                B[v] = 1
            else:
                B[v] = 2
""",
    "a quotient": """
            if T.truncdiv(x, -1) * x <= 0:
                B[v] = 1
            else:
                B[v] = 2
""",
    "a loop": """
            for k in range(8):
                if x + k >= x:
                    B[k] = B[k] + 1
""",
    "a value": """
            for k in range(8):
                B[k] = B[k] + T.Select(x + k >= x, 1, 2)
""",
    "a value of a loop": """
            for k in range(8):
                B[k] = T.if_then_else(T.max(k * 1000000000, 1) > 5, 1, 2)
""",
    "lanes": """
            for k in T.vectorized(8):
                if x + k >= x:
                    B[v] = B[v] + 1
""",
}


def same_in_all_kernels(text, a):
    program = tw.Schedule(script.from_source(text)).mod
    want = [a.copy(), np.zeros(8, "int32")]
    _core.interpret(program, "main", *want)
    for schedule in ("as written", "default"):
        got = [a.copy(), np.zeros(8, "int32")]
        kernel = tw.compile(program, schedule="as written") if schedule == "as written" else tw.compile(program)
        kernel(*got)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", OF_DATA)
def test_conditions_of_data(name):
    same_in_all_kernels(HEAD + OF_DATA[name].strip("\n") + "\n", np.array([2**31 - 1, -(2**31), 2**30, 5], "int32"))


CHANGING = {
    "a value": """
            for j in range(8):
                y: T.int32 = A[0]
                if j < y:
                    B[j] = 1
                A[0] = A[0] - 1
""",
    "the end of a loop": """
            for j in range(8):
                for k in range(A[0]):
                    if j + k < 9:
                        B[j] = B[j] + 1
                A[0] = A[0] - 1
""",
}


@pytest.mark.parametrize("name", CHANGING)
def test_what_a_loop_reads_is_read_in_its_iterations(name):
    same_in_all_kernels(HEAD + CHANGING[name].strip("\n") + "\n", np.array([9, 1, 2, 3], "int32"))


def test_loops_over_data_are_cut_off_where_their_conditions_end():
    """Data that bounds a loop is a size: it may be counted up to."""
    rows = """
@T.prim_func
def main(P: T.Buffer((5,), "int32"), A: T.Buffer((64,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            T.reads(P[v : v + 2], A[0:64], B[v])
            T.writes(B[v])
            n: T.int32 = P[v + 1] - P[v]
            for k, j in T.grid((n + 3) // 4, 4):
                if k * 4 + j < n:
                    B[v] = B[v] + A[P[v] + k * 4 + j]
"""
    program = script.from_source(rows)
    assert tw.lower(program, after="partition_loops").script().count("A_1[") == 2
    p, a = np.array([0, 7, 7, 15, 64], "int32"), np.arange(64, dtype="float32")
    b = np.zeros(4, "float32")
    tw.compile(program, schedule="as written")(p, a, b)
    np.testing.assert_array_equal(b, [a[first:last].sum() for first, last in itertools.pairwise(p)])


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('T.Cast("int64", x) < T.int64(0)', [1, 0, 1, 0]),
        ("T.clz(x) == 0", [1, 0, 1, 0]),
        ('T.Cast("int64", x // T.uint64(1)) < T.int64(5)', [1, 1, 1, 0]),
    ],
)
def test_numbers_of_uint64_beyond_int64_are_negative_as_int64(condition, holds):
    kernel = tw.compile(
        script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "uint64"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        x: T.uint64 = A[i]
        if {condition}:
            B[i] = 1
""")
    )
    found = np.zeros(4, "int32")
    kernel(np.array([2**63 + 5, 1, 2**64 - 1, 2**63 - 1], "uint64"), found)
    assert found.tolist() == holds


def test_quotients_of_the_largest_and_the_smallest_number_are_smaller():
    kernel = tw.compile(
        script.from_source("""
@T.prim_func
def main(B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        if T.int64(9223372036854775807) // (T.Cast("int64", i) + T.int64(1)) < T.int64(5000000000000000000):
            B[i] = 1
        if T.shift_right(T.min_value("int64"), T.Cast("int64", i)) > T.int64(-5000000000000000000):
            C[i] = 1
""")
    )
    halves, shifts = np.zeros((2, 4), "int32")
    kernel(halves, shifts)
    assert halves.tolist() == shifts.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("loop", "dtype", "first"), [("int32", "int16", 2**31 - 21), ("int64", "int32", 2**63 - 21), ("int32", "int8", 126)]
)
def test_loop_variables_wrap_in_smaller_types(loop, dtype, first):
    """The numbers that a comparison sees do not rise with the loop."""
    program = script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((2,), "{loop}"), B: T.Buffer((2, 3), "int32")):
    for i in range(2):
        x: T.{loop} = A[i]
        for j in range(T.{loop}({first}), T.{loop}({first + 3})):
            if T.Cast("{dtype}", j) > T.Cast("{dtype}", x) // T.{dtype}(5):
                B[i, j - T.{loop}({first})] = 1
            else:
                B[i, j - T.{loop}({first})] = 0
""")
    found = np.zeros((2, 3), "int32")
    tw.compile(program, schedule="as written")(np.array([30, -60], loop), found)
    seen = np.arange(first, first + 3, dtype="int64").astype(dtype).astype("int64")
    wanted = [seen > int(np.array(x).astype(dtype)) // 5 for x in (30, -60)]
    np.testing.assert_array_equal(found, wanted)
