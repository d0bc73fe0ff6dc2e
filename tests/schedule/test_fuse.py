import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def copy(A: T.Buffer((4, 6, 8)), B: T.Buffer((4, 6, 8))):
    for i, j, k in T.grid(4, 6, 8):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vi, vj, vk]


def loops_of(sch, block="B"):
    return sch.get_loops(sch.get_block(block))


@T.prim_func
def twice(A: T.Buffer((4, 6)), B: T.Buffer((4, 6)), C: T.Buffer((4, 6))):
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(4, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


@pytest.mark.parametrize(("step", "code"), [("fuse", "fuse/P4"), ("reorder", "reorder/P2")])
def test_loops_of_two_nests_are_told_apart_by_their_blocks(step, code):
    error = check_refused(twice, lambda sch: getattr(sch, step)(loops_of(sch, "B")[0], loops_of(sch, "C")[0]), code)
    assert "loop 'i' (extent 4) around block 'C' is not inside loop 'i' (extent 4) around block 'B'" in error.message
    assert "one nest" in error.hint


def test_three_loops():
    @T.prim_func
    def after(A: T.Buffer((4, 6, 8)), B: T.Buffer((4, 6, 8))):
        for f in range(192):
            with T.block("B"):
                vi = T.axis.spatial(4, f // 48)
                vj = T.axis.spatial(6, f % 48 // 8)
                vk = T.axis.spatial(8, f % 8)
                B[vi, vj, vk] = A[vi, vj, vk]

    sch = check(copy, lambda sch: sch.fuse(*loops_of(sch)), after)
    assert "i_j_k_fused" in sch.mod.script()
    check(copy, lambda sch: sch.fuse(loops_of(sch)), after)


def test_split_after_fuse_simplifies():
    @T.prim_func
    def after(A: T.Buffer((4, 6, 8)), B: T.Buffer((4, 6, 8))):
        for i, f_0, f_1 in T.grid(4, 6, 8):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, f_0, f_1])
                B[vi, vj, vk] = A[vi, vj, vk]

    def transform(sch):
        _, j, k = loops_of(sch)
        sch.split(sch.fuse(j, k), factors=[None, 8])

    check(copy, transform, after)


def test_one_loop_and_unit_loops():
    check(copy, lambda sch: sch.fuse(loops_of(sch)[1]))

    def unit(sch):
        i, *_ = loops_of(sch)
        i_0, i_1 = sch.split(i, factors=[1, None])
        sch.fuse(i_0, i_1)

    check(copy, unit)


@pytest.mark.parametrize("extents", [(1, 0, 3), (4, 0, 1), (0, 2, 2)])
def test_loops_that_never_run(extents):
    @T.prim_func
    def before(A: T.Buffer((4, 6, 8)), B: T.Buffer((4, 6, 8))):
        for i, j, k in T.grid(*extents):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk]

    sch = check(before, lambda sch: sch.fuse(*loops_of(sch)))
    (fused,) = loops_of(sch)
    assert sch.get(fused).extent.value == 0


def test_reduction_loops():
    check(workloads.matmul(3, 4, 5), lambda sch: sch.fuse(*loops_of(sch, "C")[1:]))


def test_one_parallel_loop_becomes_a_serial_one():
    """As where the loop around two blocks is given to both of them in turn."""

    @T.prim_func
    def parallel(A: T.Buffer((4, 8, 2)), B: T.Buffer((4, 8, 2))):
        for i in T.parallel(4):
            for j, k in T.grid(8, 2):
                with T.block("B"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    B[vi, vj, vk] = A[vi, vj, vk]

    def steps(sch):
        i, *_ = loops_of(sch)
        fused = sch.fuse(i)
        assert sch.get(fused).kind == tw.ir.ForKind.SERIAL
        sch.parallel(fused)

    check(parallel, steps)


def test_refusals():
    check_refused(copy, lambda sch: sch.fuse(), "fuse/P1")
    check_refused(copy, lambda sch: sch.fuse(loops_of(sch)[0], loops_of(sch)[2]), "fuse/P4")
    check_refused(copy, lambda sch: sch.fuse(loops_of(sch)[1], loops_of(sch)[0]), "fuse/P4")

    def unrolled(sch):
        sch.unroll(loops_of(sch)[1])
        sch.fuse(*loops_of(sch)[:2])

    check_refused(copy, unrolled, "fuse/P2")

    @T.prim_func
    def triangle(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        for i in range(8):
            for j in range(i + 1):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    check_refused(triangle, lambda sch: sch.fuse(*loops_of(sch)), "fuse/P5")

    @T.prim_func
    def shifted(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        for i in range(8):
            for j in range(2, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    check_refused(shifted, lambda sch: sch.fuse(*loops_of(sch)), "fuse/P3")

    @T.prim_func
    def vast(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i, _j in T.grid(1 << 20, 1 << 20):
            with T.block("B"):
                vi = T.axis.spatial(8, i // (1 << 17))
                B[vi] = A[vi]

    check_refused(vast, lambda sch: sch.fuse(*loops_of(sch)), "fuse/P6")


def test_messages_name_both_loops():
    sch = tw.Schedule(copy)
    i, _, k = loops_of(sch)
    try:
        sch.fuse(i, k)
    except tw.ScheduleError as error:
        assert "loop 'k' (extent 8) is not the only statement of loop 'i' (extent 4)" in str(error)
        assert "name the loops outermost first" in error.hint


def test_digits_of_open_sizes_keep_the_types_of_their_axes():
    @T.prim_func
    def mixed(a: T.handle, c: T.handle):
        n, m = T.int64(), T.int32()
        A = T.match_buffer(a, (n, m), "int32")
        C = T.match_buffer(c, (n, m), "int32")
        for i in range(n):
            for j in range(T.max(T.min(m, 8), 0)):
                with T.block("C"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.spatial(T.max(T.min(m, 8), 0), j)
                    C[vi, vj] = A[vi, vj] + 1

    sch = tw.Schedule(mixed)
    sch.fuse(*sch.get_loops("C"))
    assert sch.verify()
    tw.ir.verify(sch.mod)


@pytest.mark.parametrize("domain", ["8", "N[0]", "N[0] + 1"])
@pytest.mark.parametrize("extent", ["N[0]", "T.min(N[0], 6)"])
def test_a_sum_whose_length_is_data(domain, extent):
    """Where the fused loop runs, its length is positive, and so is that of the sum: the first digit of each is 0."""
    program = tw.script.from_source(f"""
@T.prim_func
def main(N: T.Buffer((1,), "int32"), A: T.Buffer((4, 9), "int32"), R: T.Buffer((4,), "int32")):
    for i in range(4):
        for k in range({extent}):
            with T.block("R"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce({domain}, k)
                with T.init():
                    R[vi] = 5
                R[vi] = R[vi] + A[vi, vk]
""")
    sch = tw.Schedule(program)
    sch.fuse(*sch.get_loops("R"))
    tw.ir.verify(sch.mod)
    a = np.arange(36, dtype="int32").reshape(4, 9)
    for length in (-2, 0, 1, 6, 8):
        steps = length if extent == "N[0]" else min(length, 6)
        expected = a[:, :steps].sum(1) + 5 if steps > 0 else np.full(4, 77)
        for target in ("interpreter", "native"):
            found = np.full(4, 77, "int32")
            tw.compile(sch, target, schedule="as written")(np.array([length], "int32"), a, found)
            np.testing.assert_array_equal(found, expected)


TWO_LENGTHS = """
@T.prim_func
def main(N: T.Buffer((2,), "int32"), A: T.Buffer((4, 9), "int32"), R: T.Buffer((4,), "int32"), n: T.int32):
    for i in range({rows}):
        for k in range(N[0]):
            with T.block("R"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(8, k)
                with T.init():
                    R[vi] = 5
                R[vi] = R[vi] + A[vi, vk]
"""


def test_two_lengths_that_are_data_may_both_be_negative():
    """Their product would be positive then, so the outer one counts as 0 where it is negative."""
    sch = tw.Schedule(tw.script.from_source(TWO_LENGTHS.format(rows="N[1]")))
    sch.fuse(*sch.get_loops("R"))
    a = np.arange(36, dtype="int32").reshape(4, 9)
    for target in ("interpreter", "native"):
        kernel = tw.compile(sch, target, schedule="as written")
        for steps, rows in itertools.product((-3, -1, 0, 1, 8), (-2, 0, 1, 4)):
            expected, found = np.full(4, 77, "int32"), np.full(4, 77, "int32")
            if steps > 0 and rows > 0:
                expected[:rows] = a[:rows, :steps].sum(1) + 5
            kernel(np.array([steps, rows], "int32"), a, found, 0)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("length", [-(2**31), -(2**30) - 1, -1, 0, 5, 100])
def test_a_negative_length_times_a_number_does_not_overflow(length):
    """-2**31 and -2**30 - 1 times 2 are 0 and 2**31 - 2 in int32."""

    @T.prim_func
    def func(N: T.Buffer((1,), "int32"), B: T.Buffer((2, 12), "int32")):
        for i in range(2):
            for j in range(T.min(N[0], 12)):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = vi * 100 + vj

    sch = tw.Schedule(func)
    sch.fuse(*sch.get_loops("B"))
    expected = np.full((2, 12), -1, "int32")
    columns = np.arange(12)[: max(length, 0)]
    expected[:, columns] = np.arange(2)[:, None] * 100 + columns
    for target in ("interpreter", "native"):
        found = np.full((2, 12), -1, "int32")
        tw.compile(sch, target, schedule="as written")(np.array([length], "int32"), found)
        np.testing.assert_array_equal(found, expected)


def test_a_length_that_may_be_negative_and_a_size_that_may_be():
    """Where both are negative, their product is positive, but neither loop runs."""
    sch = tw.Schedule(tw.script.from_source(TWO_LENGTHS.format(rows="n * n * n")))
    sch.fuse(*sch.get_loops("R"))
    a = np.arange(36, dtype="int32").reshape(4, 9)
    for target in ("interpreter", "native"):
        kernel = tw.compile(sch, target, schedule="as written")
        for steps, n in itertools.product((-3, 0, 1, 8), (-2, -1, 0, 1)):
            expected, found = np.full(4, 77, "int32"), np.full(4, 77, "int32")
            if steps > 0 and n > 0:
                expected[:n] = a[:n, :steps].sum(1) + 5
            kernel(np.array([steps, 0], "int32"), a, found, n)
            np.testing.assert_array_equal(found, expected)


def test_the_first_step_of_a_reduction_over_data_stays_the_first_one():
    program = TWO_LENGTHS.format(rows="N[1]").replace("T.axis.reduce(8, k)", "T.axis.reduce(8, 7 - k)")
    sch = tw.Schedule(tw.script.from_source(program))
    with pytest.raises(tw.ScheduleError) as raised:
        sch.fuse(*sch.get_loops("R"))
    assert raised.value.code == "fuse/P8"


def test_a_parallel_loop_around_stays_independent():
    """Digits by an extent that changes with a parallel loop may hide which elements its iterations need."""

    @T.prim_func
    def ahead(A: T.Buffer((3, 3), "int32"), C: T.Buffer((3,), "int32")):
        B = T.alloc_buffer((2, 3), "int32")
        for i, j in T.grid(2, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i, u in T.grid(3, 1):
            with T.block("C"):
                vi, vu = T.axis.remap("SS", [i, u])
                C[vi] = B[vu, vi] + B[1, vu]

    def parallel_before(sch):
        i = sch.split(sch.get_loops("C")[0], [None, 2])[0]
        sch.compute_at("B", i)
        sch.parallel(sch.get_loops("B")[0])
        sch.fuse(*sch.get_loops("B")[1:])

    @T.prim_func
    def shrinking(A: T.Buffer((3, 3), "int32"), C: T.Buffer((3,), "int32")):
        B = T.alloc_buffer((3, 3), "int32")
        for i in T.parallel(3):
            for j in range(3):
                for k in range(3 - i):
                    with T.block("B"):
                        vj, vk = T.axis.remap("SS", [j, k])
                        B[vj, vk] = A[vj, vk]
            with T.block("C"):
                vi = T.axis.spatial(3, i)
                C[vi] = B[vi, 0] + B[1, 0]

    check_refused(shrinking, lambda sch: sch.fuse(*sch.get_loops("B")[1:]), "fuse/P7")
    check(ahead, parallel_before)
    check(ahead, lambda sch: (sch.compute_at("B", sch.get_loops("C")[0]), sch.fuse(*sch.get_loops("B")[1:])))
