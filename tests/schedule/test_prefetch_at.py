"""prefetch_at."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def rows(A: T.Buffer((8, 40)), B: T.Buffer((8, 40))):
    for i, j in T.grid(8, 40):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)


def test_what_later_iterations_read():
    @T.prim_func
    def after(A: T.Buffer((8, 40)), B: T.Buffer((8, 40))):
        for i in range(8):
            with T.block("A_prefetch"):
                v0 = T.axis.spatial(8, i + 2)
                T.where(i + 2 < 8)
                T.reads(A[v0, 0:40])
                T.writes()
                T.prefetch(A[v0, 0:40])
            for j in range(40):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)

    def transform(sch):
        block = sch.prefetch_at(sch.get_loops("B")[0], "B", 0, distance=2)
        assert sch.get(block).name_hint == "A_prefetch"

    check(rows, transform, after)


def test_one_instruction_for_each_cache_line():
    sch = tw.Schedule(rows)
    sch.prefetch_at(sch.get_loops("B")[0], "B", "A")
    lowered = tw.lower(sch.mod).script()
    assert "tir.prefetch" in lowered and "range(4)" in lowered  # 40 numbers that begin anywhere
    kernel = tw.compile(sch)
    assert "prefetch" in kernel.inspect("asm")
    A, B = np.random.default_rng(0).random((8, 40), "float32"), np.zeros((8, 40), "float32")
    kernel(A, B)
    np.testing.assert_array_equal(B, A + 1)


def test_later_steps_go_on():
    def transform(sch):
        i, j = sch.get_loops("B")
        sch.prefetch_at(i, "B", 0)
        sch.vectorize(sch.split(j, [None, 8])[1])
        sch.parallel(i)
        sch.cache_write("B", 0, "global")

    check(rows, transform)


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (rows, lambda sch: sch.prefetch_at(sch.get_loops("B")[0], "B", 1), "prefetch_at/P1"),
        (rows, lambda sch: sch.prefetch_at(sch.get_loops("B")[0], "B", 0, 0), "prefetch_at/P2"),
        (
            workloads.matmul(4, 4, 4),
            lambda sch: sch.prefetch_at(sch.get_loops("C")[1], "C", 0),
            "prefetch_at/P3",
        ),
        (
            workloads.elementwise_chain(4, 4),
            lambda sch: sch.prefetch_at(sch.get_loops("C")[0], "C", 0),
            "prefetch_at/P4",
        ),
        (
            workloads.elementwise_chain(4, 4),
            lambda sch: sch.prefetch_at(sch.get_loops("B")[0], "C", 0),
            "prefetch_at/P1",
        ),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_p5_nothing_is_read_where_a_size_is_zero():
    @T.prim_func
    def wrapped(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (4, m))
        for i, j in T.grid(4, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi % n]

    check_refused(wrapped, lambda sch: sch.prefetch_at(sch.get_loops("B")[0], "B", 0, 1), "prefetch_at/P5")


@pytest.mark.parametrize("guard", ["T.where(i < 5)", "pass"])
def test_p5_data_that_is_read_on_a_condition(guard):
    gather = tw.script.from_source(
        f"""@T.prim_func
def gather(A: T.Buffer((8,)), I: T.Buffer((5,), "int32"), B: T.Buffer((9,))):
    for i in range(9):
        with T.block("B"):
            vi = T.axis.spatial(9, i)
            {guard}
            B[vi] = T.if_then_else(vi < 5, A[I[vi] % 8], T.float32(0))
"""
    )
    check_refused(gather, lambda sch: sch.prefetch_at(sch.get_loops("B")[0], "B", 0, 1), "prefetch_at/P5")


def test_p5_indices_that_the_loop_computes():
    @T.prim_func
    def gather(A: T.Buffer((8,)), B: T.Buffer((8,))):
        table = T.alloc_buffer((8,), "int32")
        for i in range(8):
            with T.block("table"):
                vi = T.axis.spatial(8, i)
                table[vi] = 7 - vi
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[table[vi]]

    def transform(sch: tw.Schedule) -> None:
        reads = [read.buffer.name for read in sch.get(sch.get_block("B")).reads]
        sch.prefetch_at(sch.get_loops("B")[0], "B", reads.index("A"), 1)

    check_refused(gather, transform, "prefetch_at/P5")


def test_parallel_iterations_keep_what_they_copy_and_ask_for():
    """Each iteration of the parallel loop has a copy of its own, also while a hint names it."""
    sch = tw.Schedule(rows)
    i, j = sch.get_loops("B")
    sch.prefetch_at(j, "B", 0, 1)
    copy = sch.cache_read("B", 0, "global")
    sch.compute_at(copy, j, index=0)
    sch.parallel(i)
    sch.parallel(j)
    a, b = np.arange(320, dtype="float32").reshape(8, 40), np.zeros((8, 40), "float32")
    tw.compile(sch, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_nothing_is_asked_for_of_registers():
    sch = tw.Schedule(rows)
    hint = sch.prefetch_at(sch.get_loops("B")[1], "B", 0)
    sch.cache_read(hint, 0, "local")
    assert "T.prefetch(A_local" in sch.mod.script()
    assert "prefetch" not in tw.lower(sch.mod).script().replace("A_prefetch", "")
    a, b = np.arange(320, dtype="float32").reshape(8, 40), np.zeros((8, 40), "float32")
    tw.compile(sch)(a, b)
    np.testing.assert_array_equal(b, a + 1)
