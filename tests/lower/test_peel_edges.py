"""The pass peel_edges: what is stored between the edges has no condition, and what is stored at all stays."""

import random as rng
import re

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_equivalent


@T.prim_func(private=True)
def clamped(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for j in range(64):
        B[j] = A[T.max(j - 1, 0)] + A[j]


def test_the_example_of_the_contract():
    @T.prim_func(private=True)
    def expected(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        B[0] = A[0] + A[0]
        for j in range(63):
            B[j + 1] = A[j] + A[j + 1]

    lowered = tw.lower(clamped, after="simplify_indices").functions["main"]
    text = lowered.script()
    assert "T.max" not in text and len(re.findall(r"for j in", text)) == 1, text
    check_equivalent(clamped, tw.lower(clamped, after="peel_edges"))
    check_equivalent(clamped, expected)


def source(random):
    """A stencil of two dimensions with edges of all kinds, some of which cross or are nowhere."""
    n, m = random.choice([1, 3, 9, 20]), random.choice([1, 7, 8, 33, 70])
    terms = []
    for _ in range(random.randint(1, 4)):
        di, dj = random.randint(-3, 3), random.choice([-40, -2, -1, 0, 1, 2, 40])
        i, j = f"(i + {di})", f"(j + {dj})"
        row, column = f"T.min(T.max({i}, 0), {n - 1})", f"T.max(T.min({j}, {m - 1}), 0)"
        kind = random.choice(["clamp", "zero", "nested", "select", "rows"])
        if kind == "clamp":
            terms.append(f"A[{row}, {column}]")
        elif kind == "zero":
            inside = f"{i} >= 0 and {i} < {n} and 0 <= {j} and {j} <= {m - 1}"
            terms.append(f"T.if_then_else({inside}, A[{i}, {j}], T.float32({random.randint(0, 3)}))")
        elif kind == "nested":
            inner = f"T.if_then_else({j} > 0, A[{row}, {column}], T.float32(2))"
            terms.append(f"T.if_then_else(i != {random.randint(0, 9)}, {inner}, T.float32(3))")
        elif kind == "select":
            terms.append(f"T.Select(j * {random.choice([-3, 2])} + i >= {dj}, A[{row}, {column}], T.float32(1))")
        else:
            terms.append(f"T.if_then_else({i} >= 1, A[{row}, j], T.float32(0))")
    loops = random.choice(["for i in range({n}):", "for i in T.parallel({n}):"]).format(n=n)
    inner = random.choice(["for j in range({m}):", "for j in T.vectorized({m}):"]).format(m=m)
    body = " + ".join(terms)
    return f"""
@T.prim_func
def main(A: T.Buffer(({n}, {m}), "float32"), B: T.Buffer(({n}, {m}), "float32")):
    {loops}
        {inner}
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = {body.replace("i ", "vi ").replace("j ", "vj ").replace("j]", "vj]")}
"""


@pytest.mark.parametrize("seed", range(60))
def test_edges_of_all_kinds(seed):
    program = tw.script.from_source(source(rng.Random(seed)))
    check_equivalent(program, tw.lower(program, after="peel_edges"))
    n, m = (int(extent.value) for extent in next(iter(program.buffer_map.values())).shape)
    a = np.random.default_rng(seed).random((n, m), "float32")
    written, expected = np.zeros_like(a), np.zeros_like(a)
    tw.compile(program, schedule="as written")(a, written)
    tw.compile(program, "interpreter")(a, expected)
    np.testing.assert_allclose(written, expected, rtol=1e-6)


def test_loops_that_are_told_to_stay_whole_do():
    for annotation in ('T.serial(64, annotations={"pragma_loop_partition_hint": 0})', "T.unroll(64)", "T.serial(6)"):
        program = tw.script.from_source(
            f"""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for j in {annotation}:
        B[j] = A[T.max(j - 1, 0)]
"""
        )
        assert tw.lower(program, after="peel_edges").script().count("for j in") == 1


def test_registers_of_an_iteration_do_not_keep_its_loop_whole():
    @T.prim_func(private=True)
    def program(A: T.Buffer((20, 8), "float32"), B: T.Buffer((20, 8), "float32")):
        tile = T.alloc_buffer((8,), "float32", scope="local")
        for j in range(20):
            for k in T.vectorized(8):
                tile[k] = A[T.max(j - 1, 0), k]
            for k in T.vectorized(8):
                B[j, k] = tile[k] + A[j, k]

    lowered = tw.lower(program, after="simplify_indices", target="llvm -mcpu=haswell")
    assert "T.max" not in lowered.script(), lowered.script()
    check_equivalent(program, lowered)


def test_loops_that_count_through_registers_stay_whole():
    """Vectors of 15 and of 16 registers of one tile would take each other apart."""

    @T.prim_func(private=True)
    def program(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        tile = T.alloc_buffer((16,), "float32", scope="local")
        for j in range(16):
            tile[j] = A[T.max(j - 1, 0)]
        for j in range(16):
            B[15 - j] = tile[j]

    lowered = tw.lower(program, after="simplify_indices", target="llvm -mcpu=haswell")
    assert "T.max" in lowered.script(), lowered.script()
    check_equivalent(program, lowered)


def test_a_parallel_loop_stays_one_loop():
    program = tw.script.from_source(
        """
@T.prim_func
def main(A: T.Buffer((64, 16), "float32"), B: T.Buffer((64, 16), "float32")):
    for i in T.parallel(64):
        for j in range(16):
            B[i, j] = A[T.min(i + 2, 63), j]
"""
    )
    text = tw.lower(program, after="peel_edges").script()
    assert text.count("T.parallel") == 1 and re.search(r"if i <= 61|if i < 62", text), text


def test_what_is_asked_first_makes_the_next_question_safe():
    """A condition that reads memory is not asked where the one before it does not hold."""

    @T.prim_func
    def program(A: T.Buffer((40,), "float32"), I: T.Buffer((40,), "int32"), B: T.Buffer((41,), "float32")):
        for j in range(41):
            B[j] = T.if_then_else(j < 40 and I[T.min(j, 39)] > 0, A[T.min(j, 39)], T.float32(0))

    check_equivalent(program, tw.lower(program, after="peel_edges"))


def turned_around(n, shift, kind="serial"):
    """Neighbors on the other side: B[j] = A[(j + shift) % n] + A[j]."""
    loop = {"serial": T.serial, "parallel": T.parallel, "vectorized": T.vectorized}[kind]

    @T.prim_func(private=True)
    def program(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        for j in loop(n):
            B[j] = A[(j + shift) % n] + A[j]

    return program


@pytest.mark.parametrize("shift", [1, 7, -3, 63, 64, 57, 32, 129, 0])
@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorized"])
def test_indices_that_wrap_around_are_plain_between_the_edges(shift, kind):
    program = turned_around(64, shift, kind)
    lowered = tw.lower(program, after="simplify_indices", target="llvm -mcpu=haswell")
    text = lowered.script()
    # Half of the iterations are no edge.
    assert ("%" in text) == (shift == 32), text
    check_equivalent(program, tw.lower(program, after="peel_edges"))
    check_equivalent(program, lowered)


def test_an_index_that_goes_backward_wraps_around():
    @T.prim_func(private=True)
    def backward(A: T.Buffer((50,), "float32"), B: T.Buffer((50,), "float32")):
        for j in range(50):
            B[j] = A[(52 - j) % 50]

    lowered = tw.lower(backward, after="simplify_indices", target="llvm -mcpu=haswell")
    assert "%" not in lowered.script()
    check_equivalent(backward, lowered)


def test_remainders_of_data_stay():
    """Data wraps: nothing is known of its sums."""

    @T.prim_func(private=True)
    def data(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        for j in range(64):
            B[j] = (A[j] + 7) % 64

    @T.prim_func(private=True)
    def wrapped(B: T.Buffer((64,), "int8")):
        for j in range(64):
            B[j] = T.floormod(T.Cast("int8", j) * T.int8(4) + T.int8(7), T.int8(100))

    for program in (data, wrapped):
        check_equivalent(program, tw.lower(program, after="simplify_indices", target="llvm -mcpu=haswell"))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("period", [1, 3, 7, 100])
@pytest.mark.parametrize("beyond", [0, 1, 2])
def test_the_first_period_may_begin_before_the_type(dtype, period, beyond):
    least = np.iinfo(dtype).min + beyond
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "{dtype}"), B: T.Buffer((8,), "{dtype}")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[T.min(vi, 1)] - T.floormod(T.Cast("{dtype}", {least}), T.{dtype}({period}))
""")
    a, b = np.arange(100, 108).astype(dtype), np.zeros(8, dtype)
    tw.compile(program, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, (a[[0, 1, 1, 1, 1, 1, 1, 1]].astype(object) - least % period).astype(dtype))


DEEP = {
    "mod": lambda e, k, _: (e + 1) % (7 + k % 5),
    "div": lambda e, k, _: e * 3 // 4 + k % 5,
    "max": lambda e, k, largest: largest(e - 1, k - 4),
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("levels", [10, 60, 300])
def test_deep_indices(kind, levels):
    """Passes leave expressions beyond a depth as they are: each query takes time in proportion to the expression."""

    def nested(index, largest):
        for k in range(levels):
            index = DEEP[kind](index, k, largest)
        return index % 16

    @T.prim_func
    def picked(A: T.Buffer((16,), "int32"), B: T.Buffer((64,), "int32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[nested(vi, T.max)]

    a, b = np.arange(16, dtype="int32") * 3, np.zeros(64, "int32")
    expected = [a[nested(i, max)] for i in range(64)]
    for options in ({}, {"schedule": "as written"}):
        tw.compile(picked, **options)(a, b)
        np.testing.assert_array_equal(b, expected)
