"""prefetch_indirect."""

from itertools import pairwise

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused

GATHER = """@T.prim_func
def gather(J: T.Buffer((64,), "int32"), X: T.Buffer((100,)), B: T.Buffer((4, 16))):
    T.assume_buffer_domain(J, [0, 100])
    for i, p in T.grid(4, 16):
        with T.block("B"):
            vi, vp = T.axis.remap("SS", [i, p])
            B[vi, vp] = X[J[vi * 16 + vp]]
"""

SPMM = """@T.prim_func
def spmm(ptr: T.handle, ind: T.handle, val: T.handle, b: T.handle, c: T.handle):
    m, n, z = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
    P = T.match_buffer(ptr, (m + 1,), "int32")
    J = T.match_buffer(ind, (z,), "int32")
    A = T.match_buffer(val, (z,))
    B = T.match_buffer(b, (n, 8))
    C = T.match_buffer(c, (m, 8))
    T.assume_buffer_domain(P, [0, z + 1], order="nondecreasing")
    T.assume_buffer_domain(J, [0, n])
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
                    C[vi, vj] += A[P[vi] + vp] * B[J[P[vi] + vp], vj]
"""


def gather(*changes: tuple[str, str]) -> tw.ir.PrimFunc:
    source = GATHER
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return from_source(source)


def step(sch: tw.Schedule, distance: int = 8) -> None:
    sch.prefetch_indirect(sch.get_loops("B")[1], "B", "X", distance)


def test_the_example() -> None:
    @T.prim_func
    def after(J: T.Buffer((64,), "int32"), X: T.Buffer((100,)), B: T.Buffer((4, 16))):
        T.assume_buffer_domain(J, [0, 100])
        for i, p in T.grid(4, 16):
            with T.block("X_prefetch"):
                v0 = T.axis.spatial(64, i * 16 + p + 8)
                T.where(i * 16 + p + 8 < 64)
                T.reads(X[J[v0]], J[v0])
                T.writes()
                T.prefetch(X[J[v0]])
            with T.block("B"):
                vi, vp = T.axis.remap("SS", [i, p])
                B[vi, vp] = X[J[vi * 16 + vp]]

    check(gather(), step, after)


def spmm_with_prefetch(distance: int) -> tw.Schedule:
    sch = tw.Schedule(from_source(SPMM))
    block = sch.prefetch_indirect(sch.get_loops("sum")[0], "sum", "B", distance)
    assert sch.get(block).name_hint == "B_prefetch"
    return sch


def test_buffers_that_are_large_enough() -> None:
    def transform(sch: tw.Schedule) -> None:
        sch.prefetch_indirect(sch.get_loops("sum")[0], "sum", "B", 3, min_bytes=3201)

    text = check(from_source(SPMM), transform).mod.script()
    assert 'T.where(T.int64(101) <= T.Cast("int64", n) and P[vi] + p + 3 < z)' in text, text
    for min_bytes, is_asked in ((400, True), (401, False)):  # 100 numbers of 4 bytes
        sch = tw.Schedule(gather())
        sch.prefetch_indirect(sch.get_loops("B")[1], "B", "X", 8, min_bytes=min_bytes)
        where = "T.where(i * 16 + p + 8 < 64)" if is_asked else "T.where(T.bool(False))"
        assert where in sch.mod.script(), sch.mod.script()


def test_rows_of_csr_go_on_into_the_next_row() -> None:
    def transform(sch: tw.Schedule) -> None:
        sch.prefetch_indirect(sch.get_loops("sum")[0], "sum", "B", 3)

    sch = check(from_source(SPMM), transform)
    text = sch.mod.script()
    assert "v0 = T.axis.spatial(z, P[vi] + p + 3)" in text and "T.where(P[vi] + p + 3 < z)" in text
    assert "T.prefetch(B, [T.Range(J[v0], J[v0] + 1), T.Range(0, 8)])" in text
    assert "J[0:z]" in text  # the block around reads beyond its row


@pytest.mark.parametrize("lengths", [[3, 0, 5, 1], [0, 0, 0], [40, 0, 1], [1] * 30, []])
def test_compiled_with_rows_of_any_length(lengths: list[int]) -> None:
    random = np.random.default_rng(0)
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
    z = int(pointers[-1])
    columns, values = random.integers(0, 6, z).astype("int32"), random.integers(-4, 5, z).astype("float32")
    b = random.integers(-4, 5, (6, 8)).astype("float32")
    want = np.stack([values[s:e] @ b[columns[s:e]] for s, e in pairwise(pointers)] or [b[0]])
    for distance in (1, 8, 1000):
        kernel = tw.compile(spmm_with_prefetch(distance), schedule="as written")
        assert "prefetch" in kernel.inspect("asm")
        c = np.full((len(lengths), 8), np.nan, "float32")
        kernel(pointers, columns, values, b, c)
        np.testing.assert_array_equal(c, want[: len(lengths)])


def test_later_steps_go_on() -> None:
    def transform(sch: tw.Schedule) -> None:
        step(sch)
        sch.parallel(sch.get_loops("B")[0])
        sch.cache_write("B", 0, "global")

    check(gather(), transform)


def test_an_offset_before_the_buffer_is_guarded() -> None:
    shifted = gather(
        ("X[J[vi * 16 + vp]]", "T.if_then_else(vi * 16 + vp >= 20, X[J[vi * 16 + vp - 20]], T.float32(0))")
    )
    sch = check(shifted, lambda sch: step(sch, 4))
    assert "T.where(i * 16 + p - 16 >= 0 and i * 16 + p - 16 < 64)" in sch.mod.script()


@pytest.mark.parametrize(
    ("changes", "transform", "code"),
    [
        ([], lambda sch: sch.prefetch_indirect(sch.get_loops("B")[1], "B", "Y"), "prefetch_indirect/P1"),
        ([], lambda sch: step(sch, 0), "prefetch_indirect/P2"),
        # The loop moves through 16 elements at a time, or the index is no load, or there is another one.
        ([], lambda sch: sch.prefetch_indirect(sch.get_loops("B")[0], "B", "X"), "prefetch_indirect/P3"),
        ([], lambda sch: sch.prefetch_indirect(sch.get_loops("B")[1], "B", "J"), "prefetch_indirect/P3"),
        ([("X[J[vi * 16 + vp]]", "X[J[vi * 16 + vp] - vp]")], step, "prefetch_indirect/P3"),
        ([("X[J[vi * 16 + vp]]", "X[J[vi * 16 + vp] + J[vp]]")], step, "prefetch_indirect/P3"),
        ([("X[J[vi * 16 + vp]]", "X[J[63 - vi * 16 - vp]]")], step, "prefetch_indirect/P3"),
        ([("T.assume_buffer_domain(J, [0, 100])", "pass")], step, "prefetch_indirect/P5"),
    ],
)
def test_refusals(changes: list[tuple[str, str]], transform: object, code: str) -> None:
    check_refused(gather(*changes), transform, code)


def test_p4_what_the_scope_writes() -> None:
    @T.prim_func
    def computed(J: T.Buffer((64,), "int32"), A: T.Buffer((100,)), B: T.Buffer((64,))):
        T.assume_buffer_domain(J, [0, 100])
        X = T.alloc_buffer((100,))
        for i in range(100):
            with T.block("X"):
                vi = T.axis.spatial(100, i)
                X[vi] = A[vi]
        for p in range(64):
            with T.block("B"):
                vp = T.axis.spatial(64, p)
                B[vp] = X[J[vp]]

    transform = lambda sch: sch.prefetch_indirect(sch.get_loops("B")[0], "B", "X")  # noqa: E731
    check_refused(computed, transform, "prefetch_indirect/P4")


def test_p6_indices_that_other_threads_write() -> None:
    @T.prim_func
    def rows(J: T.Buffer((4, 16), "int32"), K: T.Buffer((64,), "int32"), X: T.Buffer((100,)), B: T.Buffer((64,))):
        for i in T.parallel(4):
            for p in range(16):
                with T.block("K"):
                    vp = T.axis.spatial(64, i * 16 + p)
                    K[vp] = J[vp // 16, vp % 16]
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                T.assume_buffer_domain(K, [0, 100])
                for p in range(16):
                    with T.block("B"):
                        vp = T.axis.spatial(16, p)
                        B[vi * 16 + vp] = X[K[vi * 16 + vp]]

    transform = lambda sch: sch.prefetch_indirect(sch.get_loops("B")[0], "B", "X")  # noqa: E731
    check_refused(rows, transform, "prefetch_indirect/P6")


def test_p5_indices_of_which_too_little_is_declared() -> None:
    @T.prim_func
    def twice(K: T.Buffer((64,), "int32"), J: T.Buffer((50,), "int32"), X: T.Buffer((100,)), B: T.Buffer((64,))):
        T.assume_buffer_domain(J, [0, 100])
        for p in range(64):
            with T.block("B"):
                vp = T.axis.spatial(64, p)
                B[vp] = X[J[K[vp]]]

    transform = lambda sch: sch.prefetch_indirect(sch.get_loops("B")[0], "B", "X")  # noqa: E731
    error = check_refused(twice, transform, "prefetch_indirect/P5")
    assert "T.assume_buffer_domain(K, [0, ...])" in str(error)
    declared = twice.script().replace(
        "T.assume_buffer_domain(J, [0, 100])",
        "T.assume_buffer_domain(J, [0, 100])\n    T.assume_buffer_domain(K, [0, 50])",
    )
    check(from_source(declared), transform)
