"""Sums of all shapes by rules: along several axes, long, short, of few results or rows, in groups, in parts."""

import re

import numpy as np
import pytest
from tests.heuristics.cpu.programs import TARGETS, check_results, convolution, here, product, scheduled, softmax

import tilewright as tw
from tilewright import te
from tilewright.heuristics import cpu
from tilewright.heuristics.block_info import block_info
from tilewright.heuristics.cpu.register_tile import register_tiles
from tilewright.script import tir as T
from tilewright.testing import formulas


def jumping_sums(a, b, c):
    x, i, k = te.placeholder((a, b, c), name="X"), te.reduce_axis((0, a), name="i"), te.reduce_axis((0, c), name="k")
    return te.create_prim_func([x, te.compute((b,), lambda j: te.sum(x[i, j, k], axis=[i, k]), name="Y")])


def vector_times(n, k):
    a, x, r = te.placeholder((k, n), name="A"), te.placeholder((k,), name="x"), te.reduce_axis((0, k), name="r")
    return te.create_prim_func([a, x, te.compute((n,), lambda j: te.sum(a[r, j] * x[r], axis=[r]), name="y")])


def two_sums(rows, columns, along_rows):
    """Sums and sums of squares, made by one block."""
    n, m = (rows, columns) if along_rows else (columns, rows)

    @T.prim_func
    def sums(X: T.Buffer((rows, columns)), S: T.Buffer((n,)), Q: T.Buffer((n,))):
        for i, k in T.grid(n, m):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                    Q[vi] = T.float32(1)
                S[vi] += X[vi if along_rows else vk, vk if along_rows else vi]
                Q[vi] += X[vi if along_rows else vk, vk if along_rows else vi] ** 2

    return sums


#: what each is for: axes of a sum that do not lie together; rows added one after the other, with rests; few columns and
#: long sums; short and long products of rows, with rests along each axis
SUMS = {
    "two sums of rows": two_sums(13, 70, True),
    "two sums of columns": two_sums(41, 70, False),
    "axes apart": jumping_sums(5, 9, 70),
    "axes apart, short": jumping_sums(70, 9, 5),
    "rows after one another": vector_times(1100, 41),
    "few columns": vector_times(10, 770),
    "one column of a product": product(3, 3, 1030),
    "products of rows": product(8, 24, 64, turned=True),
    "products of rows with rests": product(19, 37, 101, turned=True),
    "short products of rows": product(4, 50, 7, turned=True),
    "column rests": product(13, 21, 40),
    "filters that fill no vectors": convolution(9, 7, 21),
    "groups of three filters": convolution(9, 12, 12, groups=4),
    "groups of ten filters": convolution(8, 9, 30, groups=3, stride=2, epilogue=True),
    "groups of twelve filters": convolution(9, 24, 24, groups=2),
    "groups of twenty filters, with rests": convolution(7, 20, 40, groups=2),
    "groups of two filters": convolution(9, 16, 16, groups=8),
    "groups of four filters": convolution(9, 24, 24, groups=6, epilogue=True),
    "groups of ten filters for one channel": convolution(9, 4, 40, groups=4),
    "groups of filters for one channel": te.create_prim_func(
        formulas.depthwise_conv2d_nhwc(1, 9, 9, 10, 3, 1, 1, factor=3)
    ),
}


@pytest.mark.parametrize("target", [*TARGETS, "llvm -mcpu=skylake-avx512 -num-cores=3"])
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_all_shapes_are_right(name, target):
    program = SUMS[name]
    schedules = [scheduled(program, here(target), best=best, seed=7) for best in (True, False)]
    kernels = [tw.compile(sch, target=here(target)) for sch in schedules]
    assert not [str(note) for kernel in kernels for note in kernel.notes if note.is_requested]
    check_results(program, kernels, seed=3, reference="interpreter", tolerance=2e-5)


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 6, 8, 12, 24])
def test_sums_in_groups_stay_in_registers(groups):
    """Where groups are no multiple of a vector, too; and no other thread may meet them."""
    for filters, size in [(24, 14), (120, 13), (240, 9)]:
        kernel = tw.compile(convolution(size, 24, filters, groups=groups), target=TARGETS[1], schedule="by rules")
        assert not {note.code for note in kernel.notes} & {"lower/not-in-registers", "lower/unproved-parallel"}
        assert tw.compile(convolution(size, 24, filters, groups=groups), target=TARGETS[1]).schedule == "by rules"


@pytest.mark.parametrize("along_rows", [True, False])
def test_sums_side_by_side_have_vectors(along_rows):
    kernel = tw.compile(two_sums(60, 700, along_rows), target="native")
    assert kernel.schedule == "by rules" and kernel.notes == ()


def test_a_sum_along_axes_apart_has_vectors_along_memory():
    script = scheduled(jumping_sums(30, 50, 70)).mod.script()
    assert "T.vectorized(70)" in script and "fused" not in script


def test_a_vector_times_a_matrix_goes_through_the_matrix_once():
    """Rows in the order of memory, a few at a time, and not columns by columns."""
    sch = scheduled(vector_times(1024, 512))
    rows, columns, together, lanes = (int(sch.get(loop).extent) for loop in sch.get_loops("y_update"))
    assert (rows, columns, together, lanes) == (128, 64, 4, 16)


def test_few_results_have_several_sums_each():
    facts = block_info(sch := tw.Schedule(vector_times(10, 800)), sch.get_block("y"))
    assert register_tiles(facts, tw.Target(TARGETS[0]))[0].vectors == 1
    text = tw.compile(vector_times(10, 800), target=TARGETS[0], schedule="by rules").inspect("tir")
    assert len(set(re.findall(r"y_rf_local_\d+", text))) == 8


def test_products_of_rows_share_what_they_load():
    text = tw.compile(product(16, 64, 256, turned=True), target=TARGETS[0], schedule="by rules").inspect("tir")
    assert len(set(re.findall(r"C_lanes_\d+ =", text))) == 16
    assert "//" not in text


def test_divisions_that_no_step_reaches_do_not_limit_tiles():
    """`co // filters` is 0 in each channel of a convolution that has one group."""
    sch = tw.Schedule(convolution(9, 7, 21))
    facts = block_info(sch, sch.get_block("conv"))
    assert facts.periods == (0,) * 7
    assert [read.strides[3] for read in facts.reads] == [0, 1]


def test_groups_of_filters_are_an_axis_of_their_own():
    sch = scheduled(convolution(9, 12, 30, groups=3))
    assert "% 10" in str(sch.trace) and "T.vectorized(16)" in sch.mod.script()


def test_columns_that_fill_the_second_level_are_made_in_parts_along_one_axis_of_the_sum():
    """27 times 256 steps of 32 columns take 864 KiB, 9 times 256 a third."""
    program = te.create_prim_func(formulas.conv3d_ndhwc(1, 16, 14, 14, 256, 256, 3, 1, 1, 1, 1))
    script = scheduled(program, "llvm -mcpu=znver4 -num-cores=1").mod.script()
    assert "conv3d_ndhwc_rf = T.alloc_buffer((3, 1, 16, 14, 14, 256))" in script
    small = te.create_prim_func(formulas.conv3d_ndhwc(1, 16, 14, 14, 64, 64, 3, 1, 1, 1, 1))
    assert "_rf" not in scheduled(small, "llvm -mcpu=znver4 -num-cores=1").mod.script()


def with_a_small_second_level(target):
    runs = set(tw.Target(target).features) <= set(tw.Target("native").features)
    return tw.Target(f"{target if runs else f'native -num-cores={tw.Target(target).num_cores}'} -l2-bytes=8000")


def test_parts_along_one_axis_of_the_sum_are_right():
    """With a second level so small that a small program has parts."""
    program = te.create_prim_func(formulas.conv2d_nhwc(1, 10, 11, 32, 32, 3, 1, 1))
    kernels = []
    for target in map(with_a_small_second_level, (*TARGETS, "llvm -mcpu=skylake-avx512 -num-cores=2")):
        sch = scheduled(program, target)
        assert "_rf" in sch.mod.script()
        kernels.append(tw.compile(sch, target=target))
    check_results(program, kernels, reference="interpreter", tolerance=1e-5)


def test_rows_shorter_than_a_vector_run_step_by_step():
    sch = scheduled(softmax(1000, 10))
    tops = {sch.get(sch.get_loops(block)[0]).loop_var for block in sch.get_child_blocks(sch.get_block("root"))}
    assert len(tops) == 4


@pytest.mark.parametrize("copied", [False, True])
def test_a_sum_whose_axis_is_not_there_any_more(copied: bool) -> None:
    """Of extent 1, and simplified away by a step before."""

    @T.prim_func
    def main(X: T.Buffer((3, 1), "int64"), Y: T.Buffer((6, 6), "int64")):
        for i, j, k in T.grid(6, 6, 1):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.int64(1)
                Y[vi, vj] = Y[vi, vj] + X[vj // 2, vk]

    for target in ("llvm -mcpu=haswell -num-cores=4", "llvm -mcpu=znver4 -num-cores=1"):
        for best in (True, False):
            sch = tw.Schedule(main, seed=1)
            sch.transform_block_layout("Y", lambda i, j, k: (j // 2, i, j % 2, k))
            if copied:
                sch.cache_write("Y", 0, "local")
            cpu.schedule_for_cpu(sch, tw.Target(target), best=best)
            x = np.arange(3, dtype="int64").reshape(3, 1)
            y = np.zeros((6, 6), "int64")
            tw.ir.interpret(sch.mod, "main", x, y)
            np.testing.assert_array_equal(y, np.broadcast_to(1 + x[np.arange(6) // 2, 0], (6, 6)))


def test_a_sum_whose_axis_goes_with_its_layout() -> None:
    """Of one step: what the rules lay out anew has no axes of the sum any more."""

    @T.prim_func
    def main(A: T.Buffer((7, 12)), X: T.Buffer((1,)), Y: T.Buffer((4, 2))):
        for i, k in T.grid(8, 1):
            with T.block("Y"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Y[vi // 2, vi % 2] = T.float32(0)
                Y[vi // 2, vi % 2] = Y[vi // 2, vi % 2] - (X[vk] - A[vk, 0])

    for target in ("native", "llvm -mcpu=haswell -num-cores=4", "llvm -mcpu=skylake-avx512"):
        for best in (True, False):
            sch = tw.Schedule(main, seed=1)
            cpu.schedule_for_cpu(sch, tw.Target(target), best=best)
            a, x, y = np.arange(84, dtype="float32").reshape(7, 12), np.ones(1, "float32"), np.zeros((4, 2), "float32")
            tw.compile(sch)(a, x, y)
            assert (y == -1).all()


@pytest.mark.parametrize("target", ["native", "llvm -mcpu=skylake-avx512"])
def test_an_operand_that_is_read_twice_is_turned_once(target: str) -> None:
    program = tw.script.from_source("""
@T.prim_func
def main(a: T.handle, s: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (m, 3))
    S = T.match_buffer(s, (3,))
    B = T.match_buffer(b, (n, 3))
    for i, j, k in T.grid(n, 3, m):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = T.float32(-1)
            B[vi, vj] = T.max(B[vi, vj], S[vj] / T.Select(A[vk, vj] * A[vk, vj] == T.float32(0),
                T.float32(1), A[vk, vj] * A[vk, vj]))
""")
    sch = tw.Schedule(program)
    cpu.schedule_for_cpu(sch, tw.Target(target), best=True)
    sch.verify()


@pytest.mark.parametrize("shape", [(64, 768, 3072), (32, 256, 4096), (9, 1024, 2048), (3, 16, 4096), (7, 100, 2048)])
def test_long_sums_along_both_operands_share_what_they_load(shape):
    """As in the layers of a network, whose weights have a row for each result; in parts, too."""
    rows, columns, steps = shape
    a, b = (te.placeholder((size, steps), name=name) for size, name in ((rows, "A"), (columns, "B")))
    k = te.reduce_axis((0, steps))
    program = te.create_prim_func([a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[j, k], [k]))])
    for best, seed in ((True, 0), (False, 1), (False, 2), (False, 3)):
        kernel = tw.compile(scheduled(program, "native", best=best, seed=seed))
        assert len(re.findall(r"vfmadd\d+ps", kernel.inspect("asm"))) >= 4, "several sums at once"
        x, y = (np.random.default_rng(0).random((size, steps), "float32") for size in (rows, columns))
        np.testing.assert_allclose(kernel(x, y), x @ y.T, rtol=1e-4)


@pytest.mark.parametrize("cores", [2, 4])
def test_one_row_times_a_matrix_is_work_for_all_cores(cores):
    sch = scheduled(product(1, 1024, 1024), f"llvm -mcpu=x86-64-v3 -num-cores={cores}")
    outer = sch.get(sch.get_loops("C_update")[0])
    assert outer.kind == tw.ir.ForKind.PARALLEL and outer.extent.value >= cores
