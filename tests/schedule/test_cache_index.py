"""cache_index."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def resized(A: T.Buffer((2, 8, 8)), B: T.Buffer((2, 16, 16))):
    for n, i, j in T.grid(2, 16, 16):
        with T.block("B"):
            vn, vi, vj = T.axis.remap("SSS", [n, i, j])
            B[vn, vi, vj] = A[vn, vi // 4 + vj // 4, vj // 2]


def test_indices_become_tables():
    @T.prim_func
    def after(A: T.Buffer((2, 8, 8)), B: T.Buffer((2, 16, 16))):
        index_var_0 = T.alloc_buffer((16, 16), "int32")
        index_var_1 = T.alloc_buffer((16,), "int32")
        for ax0, ax1 in T.grid(16, 16):
            with T.block("index_0"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                index_var_0[v0, v1] = v0 // 4 + v1 // 4
        for ax0 in range(16):
            with T.block("index_1"):
                v0 = T.axis.spatial(16, ax0)
                index_var_1[v0] = v0 // 2
        for n, i, j in T.grid(2, 16, 16):
            with T.block("B"):
                vn, vi, vj = T.axis.remap("SSS", [n, i, j])
                B[vn, vi, vj] = A[vn, index_var_0[vi, vj], index_var_1[vj]]

    def transform(sch):
        blocks = sch.cache_index("B", "global")
        assert [sch.get(block).name_hint for block in blocks] == ["index_0", "index_1"]

    check(resized, transform, after)


@T.prim_func
def blended(A: T.Buffer((8,)), B: T.Buffer((16,))):
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[T.Cast("int32", T.floor(T.Cast("float32", v) * T.float32(0.25)))] * (
                T.float32(1) - T.Cast("float32", v) * T.float32(0.25)
            ) + A[T.Cast("int32", T.floor(T.Cast("float32", v) * T.float32(0.25))) + 1] * (
                T.Cast("float32", v) * T.float32(0.25)
            )


@pytest.mark.parametrize(
    ("threshold", "tables"),
    [
        (2, 2),  # the index, w
        (3, 1),  # w: twice itself and in 1 - w
        (4, 1),
    ],
)
def test_what_is_rare_is_taken_apart(threshold, tables):
    sch = check(blended, lambda sch: sch.cache_index("B", "global", threshold))
    assert len(sch.get_child_blocks("root")) == tables + 1


def test_the_largest_come_first():
    text = check(blended, lambda sch: sch.cache_index("B", "global", 2)).mod.script()
    assert 'index_var_0 = T.alloc_buffer((16,), "int32")' in text
    assert "A[index_var_0[v]] * (T.float32(1.0) - index_var_1[v]) + A[index_var_0[v] + 1] * index_var_1[v]" in text


def test_bindings_of_several_loops():
    def transform(sch):
        sch.split(sch.get_loops("B")[1], [None, 5])
        sch.cache_index("B", "global")

    sch = check(resized, transform)
    A, B = np.random.default_rng(0).random((2, 8, 8), "float32"), np.zeros((2, 16, 16), "float32")
    tw.compile(sch)(A, B)
    i, j = np.mgrid[:16, :16]
    np.testing.assert_array_equal(B, A[:, i // 4 + j // 4, j // 2])


@T.prim_func
def divided(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.if_then_else(v > 0, A[v] + 8 // v, 0)


def test_what_may_have_no_value_stays():
    text = check(divided, lambda sch: sch.cache_index("B", "global")).mod.script()
    assert "A[v] + 8 // v" in text and "index_var_0[v0] = v0 > 0" in text


@T.prim_func
def triangle(A: T.Buffer((8,)), B: T.Buffer((8, 8))):
    for i in range(8):
        for j in range(i):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj // 2]


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (resized, lambda sch: sch.cache_index("root", "global"), "cache_index/P1"),
        (resized, lambda sch: sch.cache_index("B", "global", -1), "cache_index/P1"),
        (resized, lambda sch: sch.cache_index("B", "nowhere"), "cache_index/P2"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_index("C", "global"), "cache_index/P3"),
        (resized, lambda sch: sch.cache_index("B", "global", 2), "cache_index/P3"),
        (triangle, lambda sch: sch.cache_index("B", "global"), "cache_index/P4"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_two_tables_into_one_buffer():
    """Tables select elements, so that the whole buffer is declared: that holds whatever they select."""

    @T.prim_func
    def pairs(A: T.Buffer((8,)), B: T.Buffer((16,))):
        for i in range(16):
            with T.block("B"):
                v = T.axis.spatial(16, i)
                B[v] = A[v // 2] + A[v // 4 + 3]

    def transform(sch):
        sch.cache_index("B", "global")
        sch.compute_inline("index_0")
        sch.parallel(sch.get_loops("B")[0])

    check(pairs, transform)


@pytest.mark.parametrize("factor", [3, 5])
def test_tables_end_where_domains_do(factor):
    """Also where the loops go further, and a condition keeps the block inside."""

    @T.prim_func
    def symbolic(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                v = T.axis.spatial(n, i)
                B[v] = A[n - 1 - v] + v // 2

    def transform(sch):
        sch.split(sch.get_loops("B")[0], [None, factor])
        sch.cache_index("B", "global")

    check(symbolic, transform)

    @T.prim_func
    def moved(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((2,))):
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v]
        for i in range(2):
            with T.block("C"):
                v = T.axis.spatial(2, i)
                C[v] = B[v + 4]

    def after(sch):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])
        sch.cache_index("C", "global")

    check(moved, after)


@pytest.mark.parametrize("at, value", [("v * 2", "A[v * 2]"), ("v", "A[T.max(v, 0)]"), ("3 - v", "A[3 - v]")])
def test_it_is_known_what_the_block_writes(at, value):
    func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[{at}] = {value}
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[{at}]
""")
    check(func, lambda sch: sch.cache_index("B", "local"))


def test_one_element_that_a_table_finds():
    @T.prim_func
    def one(A: T.Buffer((1, 1)), B: T.Buffer((1, 1))):
        for i, j, k in T.grid(1, 1, 1):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                B[vi, vj] = A[T.max(vi, 0), vk]

    check(one, lambda sch: sch.cache_index("B", "local"))


def test_numbers_stay():
    """Of an axis with one value, `v + 2` is 2; so is the number of lanes."""

    @T.prim_func
    def lanes(A: T.Buffer((3, 1), "int8"), B: T.Buffer((2,), "int8")):
        for i in range(1):
            with T.block("B"):
                v = T.axis.spatial(1, i)
                B[T.Ramp(v, 1, 2)] = T.Broadcast(A[v + 2, v], 2)

    sch = check(lanes, lambda sch: sch.cache_index("B", "global", 0))
    assert "index_var_0" in sch.mod.script()


def test_a_domain_below_zero():
    """The table begins where the domain does."""

    @T.prim_func
    def centered(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial((-4, 4), i - 4)
                B[vi + 4] = A[vi + 4] * (vi // 3)

    sch = check(centered, lambda sch: sch.cache_index("B", "global", 1))
    a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    tw.compile(sch, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, a * ((np.arange(8) - 4) // 3))
