import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def add_one(A: T.Buffer((100,)), B: T.Buffer((100,))):
    for i in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i)
            B[vi] = A[vi] + T.float32(1)


def loop_of(sch, block="B", number=0):
    return sch.get_loops(sch.get_block(block))[number]


def test_a_divisor_needs_no_condition():
    @T.prim_func
    def after(A: T.Buffer((100,)), B: T.Buffer((100,))):
        for i_0, i_1, i_2 in T.grid(5, 4, 5):
            with T.block("B"):
                vi = T.axis.spatial(100, i_0 * 20 + i_1 * 5 + i_2)
                B[vi] = A[vi] + T.float32(1)

    check(add_one, lambda sch: sch.split(loop_of(sch), factors=[None, 4, 5]), after)
    check(add_one, lambda sch: sch.split(loop_of(sch), [5, 4, 5], disable_predication=True), after)


def test_a_remainder_is_masked():
    @T.prim_func
    def after(A: T.Buffer((100,)), B: T.Buffer((100,))):
        for i_0, i_1 in T.grid(7, 16):
            with T.block("B"):
                T.where(i_0 * 16 + i_1 < 100)
                vi = T.axis.spatial(100, i_0 * 16 + i_1)
                B[vi] = A[vi] + T.float32(1)

    check(add_one, lambda sch: sch.split(loop_of(sch), factors=[None, 16]), after)
    check(add_one, lambda sch: sch.split(loop_of(sch), factors=[7, 16]), after)


def test_a_split_of_a_split_keeps_both_conditions():
    def twice(sch):
        outer, _ = sch.split(loop_of(sch), factors=[None, 16])
        sch.split(outer, factors=[None, 3])

    check(add_one, twice)


def test_a_symbolic_extent():
    @T.prim_func
    def before(a: T.handle, b: T.handle):
        n = T.int32(is_size_var=True)
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + T.float32(1)

    sch = check(before, lambda sch: sch.split(loop_of(sch), factors=[None, 16]))
    assert "T.where(i_0 * 16 + i_1 < n)" in sch.mod.script()
    check_refused(before, lambda sch: sch.split(loop_of(sch), factors=[8, 16]), "split/P5")


def test_reductions():
    check(workloads.matmul(5, 6, 10), lambda sch: sch.split(loop_of(sch, "C", 2), factors=[None, 4]))


def test_sampled_factors_stay_symbolic():
    def sample(sch):
        v = sch.sample_categorical([2, 4], [0.5, 0.5])
        sch.split(loop_of(sch), factors=[None, v])
        assert not sch.decisions_read

    check(add_one, sample)


def test_handles_of_replaced_loops_expire():
    sch = tw.Schedule(add_one)
    i = loop_of(sch)
    i_0, _ = sch.split(i, factors=[None, 4])
    assert repr(i_0) == "Loop(i_0, extent=25)"
    assert repr(i) == "Loop(i, expired)"
    with pytest.raises(tw.ScheduleError, match="loop 'i' is no longer in the program") as error:
        sch.split(i, factors=[None, 4])
    assert error.value.code == "schedule/expired"


@pytest.mark.parametrize(
    ("factors", "code"),
    [
        ([None, None, 4], "split/P3"),
        ([], "split/P3"),
        ([None, 0], "split/P4"),
        ([4, -25], "split/P4"),
        ([1 << 20, 1 << 20], "split/P4"),
        ([3, 33], "split/P5"),
    ],
)
def test_refused_factors(factors, code):
    error = check_refused(add_one, lambda sch: sch.split(loop_of(sch), factors=factors), code)
    assert "loop 'i' (extent 100)" in str(error)


def test_refused_loops():
    check_refused(add_one, lambda sch: sch.split(loop_of(sch), [None, 3], disable_predication=True), "split/P7")

    def parallel_first(sch):
        sch.parallel(loop_of(sch))
        sch.split(loop_of(sch), [None, 4])

    error = check_refused(add_one, parallel_first, "split/P1")
    assert "already parallel" in str(error) and "^^^" in str(error)

    def annotated(sch):
        sch.annotate(loop_of(sch), "k", 1)
        sch.split(loop_of(sch), [None, 4])

    check_refused(add_one, annotated, "split/P1")

    @T.prim_func
    def shifted(A: T.Buffer((100,)), B: T.Buffer((100,))):
        for i in range(10, 20):
            with T.block("B"):
                vi = T.axis.spatial(100, i)
                B[vi] = A[vi]

    check_refused(shifted, lambda sch: sch.split(loop_of(sch), [None, 5]), "split/P2")


def test_statements_outside_of_blocks_cannot_be_masked():
    @T.prim_func
    def before(A: T.Buffer((10,)), B: T.Buffer((10,))):
        for i in range(10):
            B[i] = T.float32(0)
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = A[vi]

    check(before, lambda sch: sch.split(loop_of(sch), [None, 5]))
    check_refused(before, lambda sch: sch.split(loop_of(sch), [None, 4]), "split/P6")


def test_factors_of_scalable_vectors():
    """They hold for every length of the vectors; the interpreter is told one."""

    @T.prim_func
    def after(A: T.Buffer((100,)), B: T.Buffer((100,))):
        for i_0, i_1 in T.grid(T.ceildiv(100, T.vscale() * 4), T.vscale() * 4):
            with T.block("B"):
                T.where(i_0 * (T.vscale() * 4) + i_1 < 100)
                vi = T.axis.spatial(100, i_0 * (T.vscale() * 4) + i_1)
                B[vi] = A[vi] + T.float32(1)

    sch = tw.Schedule(add_one)
    sch.split(loop_of(sch), [T.ceildiv(100, 4 * T.vscale()), 4 * T.vscale()])
    inferred = tw.Schedule(add_one)
    inferred.split(loop_of(inferred), [None, 4 * T.vscale()])
    array = np.arange(100, dtype="float32")
    for program in (sch.mod, inferred.mod, ir.as_module(after)):
        for vscale in (1, 2, 4, 8, 16):
            result = np.zeros(100, "float32")
            ir.interpret(program, next(iter(program.functions)), array, result, vscale=vscale)
            np.testing.assert_array_equal(result, array + 1)
    again = tw.Schedule(add_one)
    tw.Trace.from_json(sch.trace.as_json()).apply_to_schedule(again)
    assert ir.structural_equal(again.mod, sch.mod)


def test_a_multiple_of_every_scalable_vector_needs_no_condition():
    @T.prim_func
    def many(A: T.Buffer((128,)), B: T.Buffer((128,))):
        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] + T.float32(1)

    sch = tw.Schedule(many)
    sch.split(loop_of(sch), [T.ceildiv(128, 4 * T.vscale()), 4 * T.vscale()], disable_predication=True)
    assert "T.where" not in sch.mod.script()
    refused = lambda factors: check_refused(  # noqa: E731
        add_one, lambda sch: sch.split(loop_of(sch), factors, disable_predication=True), "split/P7"
    )
    refused([T.ceildiv(100, 4 * T.vscale()), 4 * T.vscale()])


def test_factors_that_are_no_numbers():
    refused = lambda factors, code: check_refused(  # noqa: E731
        add_one, lambda sch: sch.split(loop_of(sch), factors), code
    )
    refused([None, T.vscale() - 1], "split/P4")
    refused([None, T.Var("n", "int32")], "split/P4")
    refused([25, 2 * T.vscale()], "split/P5")
    check_refused(add_one, lambda sch: sch.loop_partition(loop_of(sch), [T.vscale(), None]), "loop_partition/P3")


def test_p6_a_condition_that_divides_by_zero_beyond_the_extent() -> None:
    @T.prim_func
    def divides(B: T.Buffer((8,), "int32")):
        for i in range(5):
            if 10 // (5 - i) > 3:
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = 1

    check_refused(divides, lambda sch: sch.split(sch.get_loops("B")[0], [None, 2]), "split/P6")
