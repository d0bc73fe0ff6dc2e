import contextlib

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def loops_of(sch, block):
    return sch.get_loops(sch.get_block(block))


def at(block, consumer, number, **options):
    return lambda sch: sch.compute_at(sch.get_block(block), loops_of(sch, consumer)[number], **options)


def test_the_innermost_loop_leaves_no_loop():
    @T.prim_func
    def after(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
        B = T.alloc_buffer((4, 6))
        C = T.alloc_buffer((4, 6))
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)
        for i, j in T.grid(4, 6):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] - A[vi, vj]

    check(workloads.elementwise_chain(4, 6), at("B", "C", 1), after)
    sch = check(workloads.elementwise_chain(4, 6), at("B", "C", 1, preserve_unit_loops=True))
    assert [repr(loop) for loop in loops_of(sch, "B")[2:]] == ["Loop(ax0, extent=1)", "Loop(ax1, extent=1)"]


def test_a_tile():
    def transform(sch):
        i, j = loops_of(sch, "C")
        i_0, i_1 = sch.split(i, [None, 2])
        j_0, j_1 = sch.split(j, [None, 3])
        sch.reorder(i_0, j_0, i_1, j_1)
        sch.compute_at(sch.get_block("B"), j_0)

    sch = check(workloads.elementwise_chain(4, 6), transform)
    assert [repr(loop) for loop in loops_of(sch, "B")] == [
        "Loop(i_0, extent=2)",
        "Loop(j_0, extent=2)",
        "Loop(ax0, extent=2)",
        "Loop(ax1, extent=3)",
    ]


def test_a_tile_that_does_not_divide():
    def transform(sch):
        i_0, _ = sch.split(loops_of(sch, "C")[0], [None, 3])
        sch.compute_at(sch.get_block("B"), i_0)

    sch = check(workloads.elementwise_chain(4, 6), transform)
    assert "T.where(i_0 * 3 + ax0 < 4)" in sch.mod.script()


def test_overlapping_tiles_are_computed_twice():
    def transform(sch):
        _, i, _ = loops_of(sch, "conv")
        i_0, _ = sch.split(i, [None, 4])
        sch.compute_at(sch.get_block("pad"), i_0)

    sch = check(workloads.conv1d(8, 3, 2), transform)
    assert repr(loops_of(sch, "pad")[-1]) == "Loop(ax0, extent=6)"


def test_pairs():
    sch = check(workloads.pool(5), at("B", "C", 0))
    assert repr(loops_of(sch, "B")[-1]) == "Loop(ax0, extent=2)"


def test_a_whole_chain():
    def transform(sch):
        sch.compute_at(sch.get_block("C"), loops_of(sch, "D")[1])
        sch.compute_at(sch.get_block("B"), loops_of(sch, "D")[1])

    check(workloads.elementwise_chain(4, 6), transform)

    def outer_first(sch):
        sch.compute_at(sch.get_block("C"), loops_of(sch, "D")[0])
        sch.compute_at(sch.get_block("B"), loops_of(sch, "C")[1])

    check(workloads.elementwise_chain(4, 6), outer_first)


def test_a_reduction_into_its_consumer():
    sch = check(workloads.matmul_relu(4, 6, 5), at("C", "D", 0))
    assert [repr(loop) for loop in loops_of(sch, "C")[1:]] == ["Loop(ax0, extent=6)", "Loop(ax1, extent=5)"]
    check(workloads.matmul_relu(4, 6, 5), at("C", "D", 1))


def test_packed_operands():
    def transform(sch):
        i, j, k = loops_of(sch, "C")
        j_0, j_1 = sch.split(j, [None, 4])
        k_0, k_1 = sch.split(k, [None, 2])
        sch.reorder(j_0, k_0, i, k_1, j_1)
        packed = sch.cache_read("C", 1, "global")
        sch.compute_at(packed, k_0)

    sch = check(workloads.matmul(4, 8, 6), transform)
    assert [repr(loop) for loop in loops_of(sch, "B_global")[2:]] == ["Loop(ax0, extent=2)", "Loop(ax1, extent=4)"]


def test_the_position():
    softmax = workloads.softmax_like(4, 6)

    def first(sch, index):
        sch.compute_at(sch.get_block("diff"), loops_of(sch, "B")[0], index=index)

    check_refused(softmax, lambda sch: first(sch, 0), "compute_at/P4")

    def after_both(sch):
        i, _ = loops_of(sch, "B")
        sch.compute_at(sch.get_block("total"), i)
        sch.compute_at(sch.get_block("diff"), i, index=-2)

    check(softmax, after_both)

    def too_late(sch):
        i, _ = loops_of(sch, "B")
        sch.compute_at(sch.get_block("total"), i)
        sch.compute_at(sch.get_block("diff"), i, index=1)

    assert "possible are 0 to 0" in str(check_refused(softmax, too_late, "compute_at/P7"))


def test_into_a_parallel_loop():
    def transform(sch):
        i, _ = loops_of(sch, "C")
        sch.parallel(i)
        sch.compute_at(sch.get_block("B"), i)

    check(workloads.elementwise_chain(4, 6), transform)

    def halo(sch):
        _, i, _ = loops_of(sch, "conv")
        i_0, _ = sch.split(i, [None, 4])
        sch.vectorize(i_0)
        sch.compute_at(sch.get_block("pad"), i_0)

    check_refused(workloads.conv1d(8, 3, 2), halo, "compute_at/P9")


@T.prim_func
def in_place(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("B2"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + T.float32(1)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def input_overwritten(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(0)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def reused_cell(A: T.Buffer((8,)), C: T.Buffer((8,))):
    X = T.alloc_buffer((1,))
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("X"):
            vi = T.axis.spatial(8, i)
            X[0] = A[vi]
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[0] + T.float32(1)
    for x in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, x)
            C[vi] = B[vi]


@T.prim_func
def nested(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
    for i in range(8):
        with T.block("outer"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:8])
            T.writes(B[vi, 0:8])
            for j in range(8):
                with T.block("inner"):
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj]


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (in_place, at("B2", "C", 0), "compute_at/P1"),
        (nested, at("inner", "outer", 0), "compute_at/P2"),
        (workloads.elementwise_chain(4, 4), at("B", "B", 0), "compute_at/P2"),
        (workloads.elementwise_chain(4, 4), at("D", "C", 0), "compute_at/P3"),
        (in_place, at("B", "C", 0), "compute_at/P3"),
        (workloads.elementwise_chain(4, 4), at("B", "D", 0), "compute_at/P4"),
        (workloads.softmax_like(4, 4), at("top", "B", 0), "compute_at/P4"),
        (input_overwritten, at("B", "C", 0), "compute_at/P5"),
        (reused_cell, at("B", "C", 0), "compute_at/P5"),
        (workloads.elementwise_chain(4, 4), at("B", "C", 0, index=5), "compute_at/P7"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_a_producer_that_does_not_write_all_is_refused():
    @T.prim_func
    def half(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi * 2] = A[vi]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi] + A[vi]

    check_refused(half, at("B", "C", 0), "compute_at/P6")


def test_instances_that_may_not_run_are_not_added():
    @T.prim_func
    def odd(I: T.Buffer((8,), "int32"), A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.where(I[i] < 7)
                B[vi] = A[vi * vi % 11]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    error = check_refused(odd, at("B", "C", 0), "compute_at/P8")
    assert "which instances of block 'B' run where it stands now" in str(error)


@T.prim_func
def gathered(I: T.Buffer((4,), "int32"), A: T.Buffer((8,)), C: T.Buffer((4,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] + T.float32(1)
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[I[v] % 8]


def test_p5_axes_are_bound_to_data_that_are_complete():
    """The place of the block is selected by a table; it comes behind what fills that."""

    def transform(index):
        def apply(sch):
            sch.read_at(loops_of(sch, "C")[0], "C", "I", "local")
            at("B", "C", 0, index=index)(sch)

        return apply

    check(gathered, transform(-1))
    check_refused(gathered, transform(-2), "compute_at/P5")
    check_refused(gathered, transform(0), "compute_at/P5")


def test_what_axes_are_bound_to_is_read_by_their_block():
    """The block 'B' reads the table where its axis is bound: steps at the table's writer have to know."""

    def with_bound_axes(step):
        def apply(sch):
            table = sch.read_at(loops_of(sch, "C")[0], "C", "I", "local")
            at("B", "C", 0)(sch)
            step(sch, table)

        return apply

    def copy_back(sch, table):
        sch.cache_write(table, 0, "global")
        names = lambda blocks: [sch.get(block).name_hint for block in blocks]  # noqa: E731
        copy = sch.get_block("I_local_global")
        assert (names(sch.get_consumers(copy)), names(sch.get_producers("B"))) == (["B", "C"], ["I_local_global"])

    check(gathered, with_bound_axes(copy_back))
    check(gathered, with_bound_axes(lambda sch, table: sch.cache_read("C", "I_local", "global")))
    for step, code in [
        (lambda sch, table: sch.cache_write(table, 0, "global", consumer_blocks=["B"]), "cache_write/P5"),
        (lambda sch, table: sch.rolling_buffer(table, 0), "rolling_buffer/P3"),
    ]:
        check_refused(gathered, with_bound_axes(step), code)


def test_a_binding_reads_what_a_loop_writes_in_another_iteration():
    @T.prim_func
    def shifted(I: T.Buffer((5,), "int32"), C: T.Buffer((4, 8))):
        J = T.alloc_buffer((5,), "int32")
        for i in range(5):
            with T.block("J"):
                v = T.axis.spatial(5, i)
                J[v] = I[v] % 8
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                w = T.axis.spatial(8, J[i + 1])
                C[v, w] = T.float32(1)

    check(shifted, lambda sch: sch.cache_write("J", 0, "global"))
    assert "T.axis.spatial(8, I_1[i + 1] % 8)" in check(shifted, lambda sch: sch.compute_inline("J")).mod.script()
    check_refused(shifted, lambda sch: sch.reverse_compute_at("C", loops_of(sch, "J")[0]), "reverse_compute_at/P4")
    check(shifted, at("J", "C", 0))

    @T.prim_func
    def carried(I: T.Buffer((4,), "int32"), J: T.Buffer((5,), "int32"), A: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("J"):
                v = T.axis.spatial(4, i)
                J[v + 1] = I[v] % 8
            with T.block("C"):
                T.where(J[i] < 4)
                v = T.axis.spatial(4, i)
                C[v] = A[v]

    check_refused(carried, lambda sch: sch.parallel(loops_of(sch, "C")[0]), "parallel/P5")


def test_p5_what_data_select_is_computed_only_where_the_data_are():
    @T.prim_func
    def gathered(I: T.Buffer((5,), "int32"), A: T.Buffer((8,)), C: T.Buffer((5,))):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] + T.float32(1)
        for i in range(5):
            with T.block("C"):
                v = T.axis.spatial(5, i)
                C[v] = B[I[v] % 8]

    def after_split(sch):
        sch.split(loops_of(sch, "C")[0], [None, 2])
        at("B", "C", 1)(sch)

    check(gathered, at("B", "C", 0))
    check_refused(gathered, after_split, "compute_at/P5")


@pytest.mark.parametrize("loops, accepted", [("k, l", True), ("l, k", False)])
def test_steps_whose_order_matters_keep_it(loops, accepted):
    """The loops of the new place run over the axes in their order."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((2, 3)), C: T.Buffer((4,))):
    B = T.alloc_buffer((1,))
    for {loops} in T.grid({"2, 3" if accepted else "3, 2"}):
        with T.block("B"):
            v = T.axis.spatial(1, 0)
            vk, vl = T.axis.remap("RR", [k, l])
            with T.init():
                B[v] = T.float32(1)
            B[v] = A[vk, vl] - B[v]
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[0] * T.float32(2)
""")
    if accepted:
        check(program, at("B", "C", 0))
    else:
        check_refused(program, at("B", "C", 0), "compute_at/P1")


@pytest.mark.parametrize("step", ["compute_at", "reverse_compute_at", "read_at"])
def test_regions_divide_by_no_size_of_zero(step):
    """Where n is 0 the reader does not run, and nothing divides by n; what is computed for it must not either."""

    @T.prim_func
    def rows(a: T.handle, b: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n, m))
        S = T.alloc_buffer((n * 2,))
        for i in range(n * 2):
            with T.block("S"):
                v = T.axis.spatial(n * 2, i)
                S[v] = A[v % n] + T.float32(1)
        for j, i in T.grid(m, n):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, j])
                B[v, w] = S[w % (n * 2)] + A[v]

    sch = tw.Schedule(rows)
    if step == "compute_at":
        sch.compute_at("S", sch.get_loops("B")[0])
    elif step == "read_at":
        sch.read_at(sch.get_loops("B")[0], "B", 0, "local")
    else:
        copy = sch.cache_read("B", 0, "local")
        with contextlib.suppress(tw.ScheduleError):
            sch.reverse_compute_at("B", sch.get_loops(copy)[0])
    for n, m in ((0, 3), (4, 5), (3, 0)):
        a, b = np.arange(n, dtype="float32"), np.zeros((n, m), "float32")
        want = a[np.arange(m) % (2 * n) % n][None, :] + 1 + a[:, None] if n else b
        for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
            kernel(a, b)
            np.testing.assert_array_equal(b, want)


def test_every_refusal_says_what_to_do():
    """Moves in the wrong direction, to where the block is already, and to where not all is there."""
    for step, hint in (
        (lambda sch: sch.compute_at("D", sch.get_loops("D")[0]), "name a loop of another block"),
        (lambda sch: sch.compute_at("D", sch.get_loops("C")[0]), "reverse_compute_at"),
        (lambda sch: sch.reverse_compute_at("C", sch.get_loops("D")[0]), "compute_at to what reads its results"),
        (lambda sch: sch.reverse_compute_at("D", sch.get_loops("C")[2]), "take a loop further out"),
    ):
        sch = tw.Schedule(workloads.matmul_relu(16, 16, 16))
        with pytest.raises(tw.ScheduleError) as refused:
            step(sch)
        assert hint in refused.value.hint, refused.value


def test_a_block_that_nobody_reads_is_told_how_it_moves():
    @T.prim_func
    def alone(A: T.Buffer((16,)), B: T.Buffer((16,))):
        C = T.alloc_buffer((16,))
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi]
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi]

    error = check_refused(alone, lambda sch: sch.compute_at("C", sch.get_loops("B")[0]), "compute_at/P4")
    assert "reverse_compute_at to what it reads" in error.hint


def sum_where(condition):
    return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i, k in T.grid(4, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where({condition})
            with T.init():
                B[vi] = 0
            B[vi] += A[vi, vk]
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
""")


@pytest.mark.parametrize("condition", ["k <= i", "i * 2 + k != 1", "k % 2 == 0"])
def test_a_sum_keeps_its_condition(condition):
    def transform(sch):
        i, _ = sch.split(sch.get_loops("C")[0], [2, 2])
        sch.compute_at("B", i)

    check(sum_where(condition), transform)
    check(sum_where(condition), lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]))
    check(sum_where(condition), lambda sch: sch.cache_write("B", 0, "local"))


@pytest.mark.parametrize("condition", ["i + k < 3", "i * k > 2"])
def test_p6_sums_that_might_have_no_step(condition):
    error = check_refused(sum_where(condition), lambda sch: sch.compute_at("B", sch.get_loops("C")[0]), "compute_at/P6")
    assert "nothing can be proved to be complete" in str(error)


def test_threads_inside_of_a_block_run_among_others_where_it_goes():
    @T.prim_func
    def apart(A: T.Buffer((4,)), B: T.Buffer((2, 2))):
        C = T.alloc_buffer((4,), scope="local")
        with T.block("outer"):
            T.axis.spatial(1, 0)
            for j in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("C"):
                    vj = T.axis.spatial(4, j)
                    C[vj] = A[vj]
        for i in T.thread_binding(2, thread="blockIdx.x"):
            for k in T.thread_binding(2, thread="threadIdx.x"):
                with T.block("B"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    B[vi, vk] = C[vi + vk]

    check_refused(apart, lambda sch: sch.compute_at("outer", sch.get_loops("B")[0]), "compute_at/P9")


def test_a_masked_sum_in_loops_without_iterations():
    program = from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    m = T.int32()
    P = T.match_buffer(a, (0, m), "int32")
    C = T.match_buffer(c, (0, m), "int32")
    t = T.alloc_buffer((0, m), "int32")
    for i, j, k in T.grid(0, m, m):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.where(k <= i + j)
            with T.init():
                t[vi, vj] = 5
            t[vi, vj] = t[vi, vj] + P[vi, vk]
    for i, j in T.grid(0, m):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = t[vi, vj] + 1
""")
    check_refused(program, lambda sch: sch.compute_at("S", sch.get_loops("R")[0]), "compute_at/P8")
