import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def loops_of(sch, block):
    return sch.get_loops(sch.get_block(block))


def decompose(block, number):
    return lambda sch: sch.decompose_reduction(sch.get_block(block), loops_of(sch, block)[number])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_before_each_loop(number):
    sch = check(workloads.matmul(4, 6, 5), decompose("C", number))
    assert [repr(loop) for loop in loops_of(sch, "C_init")] == [
        f"Loop({name}{'_init' if depth >= number else ''}, extent={extent})"
        for depth, (name, extent) in enumerate([("i", 4), ("j", 6)])
    ]


def test_a_tiled_matmul():
    def transform(sch):
        i, j, k = loops_of(sch, "C")
        i_0, i_1 = sch.split(i, [None, 3])
        k_0, k_1 = sch.split(k, [None, 2])
        sch.reorder(i_0, k_0, k_1, i_1, j)
        sch.vectorize(j)
        sch.decompose_reduction(sch.get_block("C"), k_0)

    sch = check(workloads.matmul(4, 6, 5), transform)
    assert "T.where(i_0 * 3 + i_1_init < 4)" in sch.mod.script()
    assert "for j_init in T.vectorized(6)" in sch.mod.script()


def test_the_update_can_be_scheduled_further():
    def transform(sch):
        decompose("C", 2)(sch)
        i, _j, k = loops_of(sch, "C_update")
        sch.split(k, [None, 2])
        sch.parallel(i)

    check(workloads.matmul(4, 6, 5), transform)


def test_below_a_parallel_loop():
    def transform(sch):
        sch.parallel(loops_of(sch, "C")[0])
        decompose("C", 1)(sch)

    check(workloads.matmul(4, 6, 5), transform)


def test_the_handle_of_the_block_stays():
    def transform(sch):
        block = sch.get_block("C")
        init = sch.decompose_reduction(block, sch.get_loops(block)[0])
        assert sch.get(block).name_hint == "C_update" and sch.get(init).name_hint == "C_init"

    check(workloads.matmul(4, 6, 5), transform)


@T.prim_func
def repeated(A: T.Buffer((4, 5)), C: T.Buffer((4,))):
    for _r, i, k in T.grid(3, 4, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def read_first(A: T.Buffer((4, 5)), C: T.Buffer((4,)), D: T.Buffer((4,))):
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = C[3 - vi]
        for k in range(5):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]


def outside_of_the_reduction(sch):
    i, j, k = loops_of(sch, "C")
    sch.reorder(k, i, j)
    sch.decompose_reduction(sch.get_block("C"), i)


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (workloads.transpose(4, 4), decompose("B", 0), "decompose_reduction/P1"),
        (
            workloads.matmul_relu(4, 4, 4),
            lambda sch: sch.decompose_reduction(sch.get_block("C"), loops_of(sch, "D")[0]),
            "decompose_reduction/P2",
        ),
        (workloads.matmul(4, 4, 4), outside_of_the_reduction, "decompose_reduction/P3"),
        (repeated, decompose("C", 0), "decompose_reduction/P4"),
        (read_first, decompose("C", 0), "decompose_reduction/P5"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


@T.prim_func
def of_two_lists(X: T.Buffer((4, 3)), Y: T.Buffer((4, 2)), C: T.Buffer((8,))):
    for i, k in T.grid(4, 3):
        with T.block("first"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] += X[vi, vk]
    for i, k in T.grid(4, 2):
        with T.block("second"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi + 4] = T.float32(1)
            C[vi + 4] += Y[vi, vk]


@pytest.mark.parametrize("name", ["first", "second"])
def test_another_nest_may_write_the_buffer_too(name):
    check(of_two_lists, decompose(name, 0))
    check(of_two_lists, decompose(name, 1))


@T.prim_func
def ragged(P: T.Buffer((5,), "int32"), A: T.Buffer((6,)), C: T.Buffer((4,))):
    with T.block("root"):
        T.assume_buffer_domain(P, [0, 7], order="nondecreasing")
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                T.reads(P[vi : vi + 2], A[P[vi] : P[vi + 1]])
                T.writes(C[vi])
                for k in range(P[vi + 1] - P[vi]):
                    with T.block("sum"):
                        vk = T.axis.reduce(P[vi + 1] - P[vi], k)
                        T.block_attr({"init_without_steps": T.bool(True)})
                        with T.init():
                            C[vi] = T.float32(0)
                        C[vi] += A[P[vi] + vk]


@pytest.mark.parametrize("target", ["interpreter", "native"])
@pytest.mark.parametrize("is_marked", [True, False])
def test_rows_without_elements(target, is_marked):
    """They keep what they held, unless the block says that its init may run without a step."""
    p, a = np.array([0, 2, 2, 5, 6], "int32"), np.arange(1, 7, dtype="float32")
    sch = tw.Schedule(ragged)
    if not is_marked:
        sch.unannotate("sum", "init_without_steps")
    sch.parallel(sch.get_loops("row")[0])
    sch.decompose_reduction("sum", sch.get_loops("sum")[0])
    assert "init_without_steps" not in sch.mod.script() and ("T.where" in sch.mod.script()) == (not is_marked)
    c = np.full(4, 9, "float32")
    tw.compile(sch, target)(p, a, c)
    np.testing.assert_array_equal(c, [3, 0 if is_marked else 9, 12, 6])


@pytest.mark.parametrize("is_marked", [True, False])
def test_sums_that_may_be_empty_are_copied_if_they_begin_anyway(is_marked):
    sch = tw.Schedule(ragged)
    if not is_marked:
        sch.unannotate("sum", "init_without_steps")
        with pytest.raises(tw.ScheduleError, match="have steps differs"):
            sch.cache_write("sum", 0, "local")
        return
    sch.cache_write("sum", 0, "local")
    sch.decompose_reduction("sum", sch.get_loops("sum")[0])
    c = np.full(4, np.nan, "float32")
    tw.compile(sch)(np.array([0, 0, 3, 3, 6], "int32"), np.ones(6, "float32"), c)
    np.testing.assert_array_equal(c, [0, 3, 0, 3])


def test_inside_a_repeating_loop_it_is_fine():
    check(repeated, decompose("C", 1))


@T.prim_func
def shifted(A: T.Buffer((4, 8)), C: T.Buffer((4,))):
    for i, k in T.grid(4, 6):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, k + 2)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


def test_a_reduction_that_never_begins():
    """No step has vk == 0, so nothing is ever set to zero."""

    def transform(sch):
        sch.decompose_reduction("C", sch.get_loops("C")[1])

    check_refused(shifted, transform, "decompose_reduction/P4")


def test_a_reduction_without_steps():
    @T.prim_func
    def sums(a: T.handle, C: T.Buffer((4,))):
        n = T.int32()
        A = T.match_buffer(a, (4, n))
        for i, k in T.grid(4, n):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    sch = check(sums, lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[1]))
    assert "T.where(n > 0)" in sch.mod.script()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_loop_that_runs_says_that_the_sum_begins(number):
    """Around the init, or one of its own."""

    @T.prim_func
    def product(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, n))
        B = T.match_buffer(b, (n, n))
        C = T.match_buffer(c, (n, n))
        for i, j, k in T.grid(n, n, n):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = check(product, decompose("C", number))
    assert "T.where" not in sch.mod.script()


def test_what_an_init_reads_is_complete():
    @T.prim_func
    def biased(A: T.Buffer((4, 8)), D: T.Buffer((4,)), C: T.Buffer((4,))):
        for i, k in T.grid(4, 8):
            with T.block("D"):
                vi, vk = T.axis.remap("SS", [i, k])
                D[vi] = A[vi, vk]
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = D[vi]
                C[vi] = C[vi] + A[vi, vk]

    def transform(sch):
        sch.decompose_reduction("C", sch.get_loops("C")[1])

    check_refused(biased, transform, "decompose_reduction/P6")


def test_what_is_accumulated_into_is_read_once():
    """Also where the block has said so itself."""

    @T.prim_func
    def said(A: T.Buffer((4, 5)), C: T.Buffer((4,))):
        for i, k in T.grid(4, 5):
            with T.block("C"):
                v, vk = T.axis.remap("SR", [i, k])
                T.reads(A[v, vk], C[v])
                T.writes(C[v])
                with T.init():
                    C[v] = T.float32(0)
                C[v] = C[v] + A[v, vk]

    sch = tw.Schedule(said)
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    assert [read.buffer.name for read in sch.get(sch.get_block("C_update")).reads] == ["A", "C"]


TRIANGLE = """
@T.prim_func
def main(A: T.Buffer((16, 16), "int32"), C: T.Buffer((16,), "int32")):
    for {outer}:
        for {inner}:
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                vk = T.axis.reduce({domain}, k)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]
"""


def triangle(outer, inner, domain):
    return from_source(TRIANGLE.format(outer=outer, inner=inner, domain=domain))


def test_a_range_that_the_loop_around_decides():
    program = triangle("i in range(16)", "k in range(i, 16)", "(i, 16)")
    sch = check(program, decompose("C", 1))
    sch.verify()
    a, c = np.arange(256, dtype="int32").reshape(16, 16), np.zeros(16, "int32")
    tw.compile(sch)(a, c)
    np.testing.assert_array_equal(c, np.triu(a).sum(axis=1))
    error = check_refused(program, decompose("C", 0), "decompose_reduction/P4")
    assert "or at a loop further in" in str(error)


def test_hints_of_loops_whose_ranges_depend_on_others():
    aligned = triangle("i in range(16)", "k in range(i, 16)", "16")
    error = check_refused(aligned, decompose("C", 1), "decompose_reduction/P4")
    assert "T.axis.reduce((i, n), r) in a loop over range(i, n)" in str(error)  # the program of the test above
    columns = triangle("k in range(16)", "i in range(k, 16)", "16")
    error = check_refused(columns, decompose("C", 0), "decompose_reduction/P4")
    assert "for i in range(n): for k in range(i + 1)" in str(error) and "further out" not in str(error)
    check(triangle("i in range(16)", "k in range(i + 1)", "16"), decompose("C", 1))
