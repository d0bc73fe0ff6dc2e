"""sch.pad_einsum: domains rounded up, with padded copies of buffers."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def row_sums(A: T.Buffer((4, 13)), C: T.Buffer((4,))):
    for i, k in T.grid(4, 13):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


def pad(block, padding):
    return lambda sch: sch.pad_einsum(block, padding)


def test_the_example_of_the_contract():
    @T.prim_func
    def after(A: T.Buffer((4, 13)), C: T.Buffer((4,))):
        A_pad = T.alloc_buffer((4, 16))
        for i0, i1 in T.grid(4, 16):
            with T.block("A_pad"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                A_pad[v0, v1] = T.if_then_else(v1 < 13, A[v0, v1], T.float32(0))
        for i, k in T.grid(4, 16):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A_pad[vi, vk]

    check(row_sums, pad("C", [1, 8]), after)


def test_a_product():
    def transform(sch):
        pad("C", [4, 4, 4])(sch)
        extents = [int(sch.get(loop).extent) for loop in sch.get_loops("C")]
        assert extents == [8, 8, 4]
        shapes = [[int(n) for n in buffer.shape] for buffer in sch.get(sch.get_block("root")).alloc_buffers]
        assert shapes == [[8, 4], [4, 8], [8, 8]]
        i, _j, k = sch.get_loops("C")
        sch.split(i, [None, 4])
        sch.decompose_reduction("C", k)

    check(workloads.matmul(5, 6, 3), transform)


def test_between_a_producer_and_a_consumer():
    @T.prim_func
    def chain(A: T.Buffer((5, 6)), B: T.Buffer((6, 7)), D: T.Buffer((5, 7))):
        S = T.alloc_buffer((5, 6))
        C = T.alloc_buffer((5, 7))
        for i, k in T.grid(5, 6):
            with T.block("S"):
                vi, vk = T.axis.remap("SS", [i, k])
                S[vi, vk] = A[vi, vk] * T.float32(2)
        for i, j, k in T.grid(5, 7, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + S[vi, vk] * B[vk, vj]
        for i, j in T.grid(5, 7):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.max(C[vi, vj], T.float32(0))

    check(chain, pad("C", [4, 4, 4]))


def test_symbolic_sizes_and_constant_indices():
    @T.prim_func
    def first(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (3, n), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[0, vi] + 1

    sch = check(first, pad("B", [8]))
    assert next(str(buffer.shape[0]) for buffer in sch.get(sch.get_block("root")).alloc_buffers) == "1"


def test_nothing_to_pad():
    def transform(sch):
        before = sch.mod
        pad("C", [2, 13])(sch)
        assert sch.mod.same_as(before)

    check(row_sums, transform)


def reduction(operand, start="T.float32(0)", combine="C[vi] + {}"):
    return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 13)), S: T.Buffer((4,)), C: T.Buffer((4,))):
    for i, k in T.grid(4, 13):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = {start}
            C[vi] = {combine.format(operand)}
""")


@T.prim_func
def shifted(A: T.Buffer((14,)), B: T.Buffer((13,))):
    for i in range(13):
        with T.block("B"):
            vi = T.axis.spatial(13, i)
            B[vi] = A[vi + 1]


@T.prim_func
def quotients(A: T.Buffer((13,), "int32"), B: T.Buffer((13,), "int32"), C: T.Buffer((13,), "int32")):
    for i in range(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            C[vi] = A[vi] // T.max(B[vi], 1)


def after_split(sch):
    sch.split(sch.get_loops("C")[1], [None, 4])
    pad("C", [1, 4])(sch)


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (row_sums, pad("C", [1]), "pad_einsum/P1"),
        (row_sums, pad("C", [1, 0]), "pad_einsum/P1"),
        (shifted, pad("B", [8]), "pad_einsum/P2"),
        (row_sums, after_split, "pad_einsum/P3"),
        (reduction("A[vi, vk] * S[vi]"), pad("C", [1, 8]), "pad_einsum/P4"),
        (reduction("A[vi, vk] + T.float32(1)"), pad("C", [1, 8]), "pad_einsum/P4"),
        (reduction("A[vi, vk]", 'T.min_value("float32")', "T.max(C[vi], {})"), pad("C", [1, 8]), "pad_einsum/P4"),
        (quotients, pad("C", [8]), "pad_einsum/P4"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_a_factor_that_the_padded_axis_does_not_index_is_fine_along_others():
    check(reduction("A[vi, vk] * S[vi]"), pad("C", [8, 1]))


def test_p5_what_it_reads_is_complete_before():
    @T.prim_func
    def by_rows(A: T.Buffer((4, 13)), C: T.Buffer((4,))):
        B = T.alloc_buffer((4, 13))
        for i in range(4):
            for k in range(13):
                with T.block("B"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    B[vi, vk] = A[vi, vk] + T.float32(1)
            for k in range(13):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + B[vi, vk]

    check_refused(by_rows, pad("C", [1, 8]), "pad_einsum/P5")


def test_p6_parallel_loops_around_stay_independent():
    @T.prim_func
    def again(A: T.Buffer((13,)), B: T.Buffer((13,))):
        for _r in T.parallel(2):
            for i in range(13):
                with T.block("B"):
                    vi = T.axis.spatial(13, i)
                    B[vi] = A[vi]

    check_refused(again, pad("B", [8]), "pad_einsum/P6")


def test_p5_consumers_come_after_the_copy_back():
    """D stands in the same loop as C, so that nothing is copied back before it reads."""

    def transform(sch):
        sch.reverse_compute_at("D", sch.get_loops("C")[0])
        pad("C", [2, 4, 1])(sch)

    check_refused(workloads.matmul_relu(4, 6, 5), transform, "pad_einsum/P5")


def test_buffers_that_go_on_behind_the_domain():
    """What lies there is neither added to a sum nor written over."""

    @T.prim_func
    def corner(A: T.Buffer((6, 9)), C: T.Buffer((9,))):
        for i, k in T.grid(3, 5):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    sch = check(corner, pad("C", [4, 8]))
    a, c = np.ones((6, 9), "float32"), np.full(9, 7, "float32")
    tw.compile(sch)(a, c)
    np.testing.assert_array_equal(c, [5] * 3 + [7] * 6)


def test_only_what_the_block_touches_is_copied():
    """The rest of the buffers may have no value, or another one."""

    @T.prim_func
    def chain(A: T.Buffer((3, 4)), C: T.Buffer((3, 6))):
        B = T.alloc_buffer((3, 9, 5))
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj + 2, 3] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(3, 4):
            with T.block("C"):
                vi = T.axis.spatial(3, i)
                vj = T.axis.spatial((2, 6), j + 2)
                C[vi, vj] = B[vi, vj, 3] * T.float32(2)

    def transform(sch):
        sch.pad_einsum("C", [4, 1])

    sch = check(chain, transform)
    a, c = np.ones((3, 4), "float32"), np.full((3, 6), 7, "float32")
    tw.compile(sch)(a, c)
    np.testing.assert_array_equal(c, [[7, 7, 4, 4, 4, 4]] * 3)


def nested(declared):
    return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((3,)), C: T.Buffer((3,))):
    B = T.alloc_buffer((3,))
    for i in range(2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            B[vi] = A[vi] + T.float32(1)
    with T.block("outer"):
        T.reads(B[0:{declared}])
        T.writes(C[0:2])
        for i in range(2):
            with T.block("C"):
                vi = T.axis.spatial(2, i)
                C[vi] = B[vi]
""")


def test_p5_inside_of_a_block_what_is_copied_has_a_value():
    check(nested(2), pad("C", [4]))
    check_refused(nested(3), pad("C", [4]), "pad_einsum/P5")


@pytest.mark.parametrize("low, padding", [(0, [2, 1]), (0, [4, 4]), (0, [1, 4]), (-2, [1, 4]), (2, [1, 2])])
def test_what_a_condition_keeps_outside_of_a_buffer_is_not_copied(low, padding):
    func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((3, 5)), C: T.Buffer((7, 5))):
    for i, j in T.grid(5, 5):
        with T.block("B"):
            vi = T.axis.spatial(({low}, {low + 5}), i + {low})
            vj = T.axis.spatial(5, j)
            C[vi - {low}, vj] = T.if_then_else(0 <= vi and vi < 3, A[vi, vj], T.float32(7))
""")
    if low == 0:
        check(func, pad("B", padding))
    else:
        check_refused(func, pad("B", padding), "pad_einsum/P2")


@pytest.mark.parametrize(
    "init", ["with T.init():\n                C[vi] = T.float32(0)", "C[vi] = C[vi] + T.float32(0)"]
)
def test_p4_an_axis_of_one_step_that_selects_nothing(init):
    func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 3)), C: T.Buffer((4,))):
    for i, j, k in T.grid(4, 1, 3):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            {init}
            C[vi] = C[vi] + A[vi, vk]
""")
    check_refused(func, pad("C", [1, 4, 1]), "pad_einsum/P4" if "init" in init else "pad_einsum/P2")


@pytest.mark.parametrize("reduces", [False, True])
def test_p5_sums_over_nothing_are_not_copied(reduces):
    """Where a size is 0 no step has written what the block would write: the output keeps what it held."""
    init = "with T.init():\n                C[vi] = T.float32(0)\n            " if reduces else ""
    func = tw.script.from_source(f"""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m))
    C = T.match_buffer(c, (n,))
    for i, k in T.grid(n, m):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            {"vk = T.axis.reduce(m, k)" if reduces else ""}
            {init}C[vi] = {"C[vi] + A[vi, vk]" if reduces else "T.float32(2)"}
""")
    sch = tw.Schedule(func)
    pad("C", [4, 1] if reduces else [4])(sch)
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        for n, m in ((5, 3), (5, 0), (0, 3)):
            a, c = np.ones((n, m), "float32"), np.full(n, 7, "float32")
            kernel(a, c)
            np.testing.assert_array_equal(c, [7.0 if m == 0 else m if reduces else 2.0] * n)


def test_p5_a_sum_over_nothing_is_no_input():
    @T.prim_func
    def chain(a: T.handle, C: T.Buffer((5,))):
        m = T.int32()
        A = T.match_buffer(a, (5, m))
        B = T.alloc_buffer((5,))
        for i, k in T.grid(5, m):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
        for i, k in T.grid(5, m):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi] * A[vi, vk]

    check_refused(chain, pad("C", [4, 1]), "pad_einsum/P5")


def test_p5_an_init_that_does_not_come_first():
    """What the step before the init reads, and forgets, is there in the buffer, and not in a copy."""

    @T.prim_func
    def mirrored(C: T.Buffer((3,), "int32")):
        for k, i in T.grid(2, 3):
            with T.block("C"):
                vk = T.axis.reduce(2, 1 - k)
                vi = T.axis.spatial(3, i)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + vk

    check_refused(mirrored, lambda sch: sch.pad_einsum("C", [1, 4]), "pad_einsum/P5")


def test_threads_are_as_many_as_those_of_other_loops():
    @T.prim_func
    def kernel(A: T.Buffer((2, 3)), B: T.Buffer((2, 3))):
        for i in T.thread_binding(2, thread="blockIdx.x"):
            for j in T.thread_binding(3, thread="threadIdx.x"):
                with T.block("A"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    A[vi, vj] = 0.0
            for k in T.thread_binding(3, thread="threadIdx.x"):
                with T.block("B"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    B[vi, vk] = 1.0

    check_refused(kernel, lambda sch: sch.pad_einsum("B", [1, 2]), "pad_einsum/P6")


CONVOLUTION = tw.script.from_source("""
@T.prim_func
def main(A: T.Buffer((9, 3)), W: T.Buffer((3, 3, 5)), C: T.Buffer((4, 5))):
    for i, j, r, c in T.grid(4, 5, 3, 3):
        with T.block("C"):
            vi, vj, vr, vc = T.axis.remap("SSRR", [i, j, r, c])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi * 2 + vr, vc] * W[vr, vc, vj]
""")


@pytest.mark.parametrize("padding", [[1, 1, 1, 4], [1, 8, 1, 1], [1, 8, 1, 2]])
def test_axes_that_stay_may_be_in_any_index(padding):
    """Channels of a convolution are rounded up, its rows are not."""
    check(CONVOLUTION, pad("C", padding))


@pytest.mark.parametrize("padding", [[8, 1, 1, 1], [1, 1, 4, 1]])
def test_p2_axes_that_become_longer_may_not(padding):
    check_refused(CONVOLUTION, pad("C", padding), "pad_einsum/P2")


def test_rows_that_a_block_around_selects_are_copied_alone():
    """The block around reads one row, and nothing has written the other."""
    program = tw.script.from_source("""
@T.prim_func
def main(A: T.Buffer((2, 3)), C: T.Buffer((2, 3))):
    B = T.alloc_buffer((2, 3))
    for i, j in T.grid(1, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i in range(1):
        with T.block("outer"):
            vi = T.axis.spatial(2, i)
            T.reads(B[vi, 0:3])
            T.writes(C[vi, 0:3])
            for j in range(3):
                with T.block("C"):
                    vj = T.axis.spatial(3, j)
                    C[vi, vj] = B[vi, vj]
""")
    sch = check(program, lambda sch: (sch.cache_write("C", 0, "global"), sch.pad_einsum("C", [4])))
    a, c = np.arange(6, dtype="float32").reshape(2, 3), np.zeros((2, 3), "float32")
    tw.compile(sch, "interpreter")(a, c)
    np.testing.assert_array_equal(c, [[1, 2, 3], [0, 0, 0]])
