"""sch.blockize: what a loop runs, or neighboring blocks, as one block."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def copied(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i0, i1 in T.grid(4, 16):
        with T.block("B"):
            vi = T.axis.spatial(64, i0 * 16 + i1)
            B[vi] = A[vi]


@T.prim_func
def shifted(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i0, i1 in T.grid(3, 16):
        with T.block("B"):
            vi = T.axis.spatial(64, i0 * 16 + i1 + 5)
            B[vi] = A[vi]


@T.prim_func
def left_over(A: T.Buffer((50,)), B: T.Buffer((50,))):
    for i0, i1 in T.grid(4, 16):
        with T.block("B"):
            vi = T.axis.spatial(50, i0 * 16 + i1)
            T.where(i0 * 16 + i1 < 50)
            B[vi] = A[vi]


@T.prim_func
def chain(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
    B = T.alloc_buffer((8, 8))
    for i in range(8):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, 7 - vj]


def below(block, number, **options):
    return lambda sch: sch.blockize(sch.get_loops(sch.get_block(block))[number], **options)


def test_a_tile():
    @T.prim_func
    def after(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i0 in range(4):
            with T.block("B_o"):
                vi_o = T.axis.spatial(4, i0)
                T.reads(A[vi_o * 16 : vi_o * 16 + 16])
                T.writes(B[vi_o * 16 : vi_o * 16 + 16])
                for i1 in range(16):
                    with T.block("B"):
                        vi_i = T.axis.spatial(16, i1)
                        B[vi_o * 16 + vi_i] = A[vi_o * 16 + vi_i]

    def transform(sch):
        inner = sch.get_block("B")
        outer = sch.blockize(sch.get_loops(inner)[1])
        assert sch.get(outer).name_hint == "B_o" and sch.get(inner).name_hint == "B"

    check(copied, transform, after)


def test_the_start_of_an_axis_need_not_be_zero():
    sch = check(shifted, below("B", 1))
    assert "T.reads(A[vi_o * 16 + 5:vi_o * 16 + 5 + 16])" in sch.mod.script()


def test_the_outermost_loop_leaves_axes_of_one_value():
    sch = check(workloads.elementwise_chain(4, 6), below("B", 0))
    assert "T.axis.spatial(1, 0)" in sch.mod.script()


def test_an_init_becomes_a_block_of_the_outer_one():
    @T.prim_func
    def after(A: T.Buffer((4, 5)), B: T.Buffer((5, 6)), C: T.Buffer((4, 6))):
        for i in range(4):
            with T.block("C_o"):
                vi_o = T.axis.spatial(4, i)
                _vj_o = T.axis.spatial(1, 0)
                _vk_o = T.axis.reduce(1, 0)
                T.reads(A[vi_o, 0:5], B[0:5, 0:6])
                T.writes(C[vi_o, 0:6])
                with T.init():
                    for j_init in range(6):
                        with T.block("C_init"):
                            vj_init = T.axis.spatial(6, j_init)
                            C[vi_o, vj_init] = T.Cast("float32", 0)
                for j, k in T.grid(6, 5):
                    with T.block("C"):
                        vj_i, vk_i = T.axis.remap("SR", [j, k])
                        T.reads(C[vi_o, vj_i], A[vi_o, vk_i], B[vk_i, vj_i])
                        T.writes(C[vi_o, vj_i])
                        C[vi_o, vj_i] = C[vi_o, vj_i] + A[vi_o, vk_i] * B[vk_i, vj_i]

    check(workloads.matmul(4, 6, 5), below("C", 1), after)


def test_an_init_that_stays_inside():
    @T.prim_func
    def after(A: T.Buffer((4, 5)), B: T.Buffer((5, 6)), C: T.Buffer((4, 6))):
        for i in range(4):
            with T.block("C_o"):
                vi_o = T.axis.spatial(4, i)
                _vj_o = T.axis.spatial(1, 0)
                _vk_o = T.axis.reduce(1, 0)
                T.reads(A[vi_o, 0:5], B[0:5, 0:6])
                T.writes(C[vi_o, 0:6])
                for j, k in T.grid(6, 5):
                    with T.block("C"):
                        vj_i, vk_i = T.axis.remap("SR", [j, k])
                        T.reads(A[vi_o, vk_i], B[vk_i, vj_i])
                        T.writes(C[vi_o, vj_i])
                        with T.init():
                            C[vi_o, vj_i] = T.Cast("float32", 0)
                        C[vi_o, vj_i] = C[vi_o, vj_i] + A[vi_o, vk_i] * B[vk_i, vj_i]

    sch = check(workloads.matmul(4, 6, 5), below("C", 1, inner_init=True), after)
    assert "inner_init=True" in str(sch.trace)
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    sch.verify()


def test_records_without_an_init_that_stays_are_those_of_tvm():
    for options, attributes in (({}, [1]), ({"inner_init": True}, [1, 1])):
        sch = tw.Schedule(workloads.matmul(4, 6, 5))
        below("C", 1, **options)(sch)
        (step,) = [inst for inst in sch.trace.insts if inst.kind.name == "Blockize"]
        assert [int(each) for each in step.attrs] == attributes
        replayed = tw.Schedule(workloads.matmul(4, 6, 5))
        tw.Trace.from_json(sch.trace.as_json()).apply_to_schedule(replayed)
        tw.ir.assert_structural_equal(replayed.mod, sch.mod)


def test_an_init_that_would_run_for_each_outer_step():
    def transform(sch):
        k0, _ = sch.split(sch.get_loops("C")[2], [None, 5])
        i, j, _, k1 = sch.get_loops("C")
        sch.reorder(k0, i, j, k1)
        sch.blockize(i, inner_init=True)

    error = check_refused(workloads.matmul(4, 6, 10), transform, "blockize/P5")
    assert "reduces over the loops outside" in error.message and "omit inner_init" in error.hint


def test_a_reduction_divided_between_both():
    def transform(sch):
        i, j, k = sch.get_loops(sch.get_block("C"))
        i0, i1 = sch.split(i, [None, 2])
        k0, k1 = sch.split(k, [None, 5])
        sch.reorder(i0, k0, j, i1, k1)
        sch.blockize(i1)

    sch = check(workloads.matmul(4, 6, 10), transform)
    assert 'T.axis.remap("SSR", [i_0, j, l_0])' in sch.mod.script()


def test_what_is_left_over_becomes_a_condition_inside():
    sch = check(left_over, below("B", 1))
    assert "T.where(vi_o * 16 + i1 < 50)" in sch.mod.script()


@pytest.mark.parametrize("preserve", [True, False])
def test_unit_loops_outside(preserve):
    def transform(sch):
        i0, i1 = sch.get_loops(sch.get_block("B"))
        outer = sch.split(i0, [1, 4])[0]
        assert outer is not None
        sch.blockize(i1, preserve_unit_iters=preserve)

    check(copied, transform)


def test_blocks_next_to_each_other():
    @T.prim_func
    def after(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
        B = T.alloc_buffer((8, 8))
        for i in range(8):
            with T.block("outer_B_C_"):
                vi_o = T.axis.spatial(8, i)
                _vj_o = T.axis.spatial(1, 0)
                T.reads(A[vi_o, 0:8], B[vi_o, 0:8])
                T.writes(B[vi_o, 0:8], C[vi_o, 0:8])
                for j in range(8):
                    with T.block("B"):
                        vj_i = T.axis.spatial(8, j)
                        B[vi_o, vj_i] = A[vi_o, vj_i] * T.float32(2)
                for j in range(8):
                    with T.block("C"):
                        vj_i = T.axis.spatial(8, j)
                        C[vi_o, vj_i] = B[vi_o, 7 - vj_i]

    check(chain, lambda sch: sch.blockize(["B", "C"]), after)


def test_schedules_go_on_around_the_block():
    def transform(sch):
        i, j, k = sch.get_loops(sch.get_block("C"))
        i0, i1 = sch.split(i, [None, 2])
        k0, k1 = sch.split(k, [None, 5])
        sch.reorder(i0, j, k0, i1, k1)
        outer = sch.blockize(i1)
        i0, j, k0 = sch.get_loops(outer)
        sch.parallel(i0)
        sch.reorder(j, k0)
        sch.reorder(k0, j)
        sch.decompose_reduction(outer, k0)

    check(workloads.matmul(4, 6, 10), transform)


def test_steps_inside_that_do_not_commute_keep_their_order_outside():
    @T.prim_func
    def horner(A: T.Buffer((4, 6)), B: T.Buffer((4,))):
        for i, k0, k1 in T.grid(4, 2, 3):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vk0, vk1 = T.axis.remap("RR", [k0, k1])
                B[vi] = B[vi] * T.float32(2) + A[vi, vk0 * 3 + vk1]

    def transform(sch):
        i, k0, k1 = sch.get_loops(sch.get_block("B"))
        sch.add_unit_loop("B")
        sch.blockize(sch.get_loops(sch.get_block("B"))[3])
        sch.reorder(k1, k0)

    check_refused(horner, transform, "reorder/P5")


def test_compiled_code_agrees():
    sch = tw.Schedule(workloads.matmul(16, 16, 16))
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 4])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(i0, j, k0, i1, k1)
    sch.blockize(i1)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (2, 16, 16)).astype("float32")
    c = np.zeros((16, 16), "float32")
    tw.compile(sch.mod)(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_p1_one_block_below_the_loop():
    check_refused(chain, below("B", 0), "blockize/P1")


def test_p1_neighbors_only():
    @T.prim_func
    def three(A: T.Buffer((4,)), B: T.Buffer((4,)), C: T.Buffer((4,)), D: T.Buffer((4,))):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi]
        for i in range(4):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                D[vi] = A[vi]

    check_refused(three, lambda sch: sch.blockize(["B", "D"]), "blockize/P1")
    check_refused(three, lambda sch: sch.blockize(["B", "B"]), "blockize/P1")
    check_refused(three, lambda sch: sch.blockize([]), "blockize/P1")
    check_refused(three, lambda sch: sch.blockize([sch.get_block("root")]), "blockize/P1")
    check(three, lambda sch: sch.blockize(["C", "D"]))


def test_p2_an_axis_that_mixes_loops():
    @T.prim_func
    def mixed(A: T.Buffer((64,)), B: T.Buffer((16, 16))):
        for i0, i1 in T.grid(16, 16):
            with T.block("B"):
                vi = T.axis.spatial(16, i0)
                vj = T.axis.spatial(16, i1)
                vk = T.axis.spatial(31, i0 + i1)
                B[vi, vj] = A[vk]

    check_refused(mixed, below("B", 1), "blockize/P2")


def test_p2_a_range_that_depends_on_outer_loops():
    @T.prim_func
    def triangle(B: T.Buffer((8, 8))):
        for i in range(8):
            for j in range(i):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.float32(1)

    check_refused(triangle, below("B", 1), "blockize/P2")


def test_p3_a_condition_that_mixes_loops():
    @T.prim_func
    def some(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i + j < 5)
                B[vi, vj] = A[vi, vj]

    check_refused(some, below("B", 1), "blockize/P3")


def test_p4_a_reduction_that_runs_backwards():
    @T.prim_func
    def backwards(A: T.Buffer((4, 8)), B: T.Buffer((4,))):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(8, 7 - k)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    check_refused(backwards, below("B", 1), "blockize/P4")


def test_p4_a_loop_that_repeats_the_reduction():
    @T.prim_func
    def repeated(A: T.Buffer((4, 8)), B: T.Buffer((4,))):
        for i, r, k in T.grid(4, 2, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    check_refused(repeated, below("B", 1), "blockize/P4")
    check(repeated, below("B", 2))


def test_p4_an_init_that_never_runs():
    @T.prim_func
    def late(A: T.Buffer((4, 8)), B: T.Buffer((4,))):
        for i, u in T.grid(4, 1):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(8, u + 2)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    check_refused(late, below("B", 0), "blockize/P4")
    check_refused(late, below("B", 1), "blockize/P4")


def test_joined_blocks_keep_a_reduction_that_never_begins():
    @T.prim_func
    def never(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        for i, k in T.grid(1, 1):
            with T.block("A"):
                vi = T.axis.spatial(1, i)
                vk = T.axis.reduce(2, k + 1)
                with T.init():
                    A[vi] = 1
                A[vi] = A[vi] + vk
        for i in range(1):
            with T.block("B"):
                vi = T.axis.spatial(1, i)
                B[vi] = 1

    check_refused(never, lambda sch: sch.blockize(["A", "B"]), "blockize/P4")


def test_p5_joined_blocks_reduce_inside_only():
    @T.prim_func
    def sums(A: T.Buffer((4, 8)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        for k in range(8):
            for i in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
            for i in range(4):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]

    check_refused(sums, lambda sch: sch.blockize(["B", "C"]), "blockize/P5")


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("factors", [[8, None], [5, 2, None], [None, 3, 1]])
def test_loops_of_one_iteration_inside_leave_nothing_out(factors, unit):
    """Tiles behind the end are left out where the new block runs, not inside of it."""

    @T.prim_func
    def sums(A: T.Buffer((7, 5)), B: T.Buffer((7,)), C: T.Buffer((7,))):
        for i in range(7):
            with T.block("C"):
                vi = T.axis.spatial(7, i)
                C[vi] = A[vi, 0]
        for i, k in T.grid(7, 5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = C[vi]
                B[vi] = B[vi] + A[vi, vk]

    def transform(block, number):
        def apply(sch):
            parts = sch.split(sch.get_loops(block)[number], factors, preserve_unit_iters=unit)
            sch.blockize(parts[-1])

        return apply

    check(sums, transform("C", 0))
    check(sums, transform("B", 0))
    check(sums, transform("B", 1))


def test_an_axis_of_one_value_under_loops_of_more_starts_nothing_again():
    """The layout drops the axis from the indices, always 0; of the two iterations over it one runs."""

    @T.prim_func
    def rows(A: T.Buffer((1, 4)), B: T.Buffer((1, 4))):
        for j, i in T.grid(4, 1):
            with T.block("B"):
                vj, vi = T.axis.remap("SS", [j, i])
                with T.init():
                    B[vi, vj] = T.float32(1)
                B[vi, vj] = B[vi, vj] + A[vi, vj]

    def transform(sch, factors):
        sch.cache_write("B", 0, "global")
        sch.transform_layout("B", ("write", 0), lambda i, j: (i * 4 + j,))
        _, i = sch.get_loops("B")
        sch.blockize(sch.split(i, factors)[-1])

    check(rows, lambda sch: transform(sch, [1, 1]))
    check_refused(rows, lambda sch: transform(sch, [2, 1]), "blockize/P4")
    check_refused(rows, lambda sch: transform(sch, [None, 2, 2]), "blockize/P4")


@pytest.mark.parametrize("parts", [1, 2])
def test_loops_outside_do_not_divide_by_a_size_of_zero(parts):
    """Where a block of nothing is inside, an outer block still runs."""

    @T.prim_func
    def ones(b: T.handle):
        n = T.int32()
        m = T.int32()
        B = T.match_buffer(b, (n, m))
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(1)

    def transform(sch):
        inner = sch.get_loops("B")[1]
        for _ in range(parts):
            _unit, inner = sch.split(inner, [1, None])
        loops = sch.get_loops("B")
        sch.reorder(*loops[1:-1], loops[0], loops[-1])
        sch.blockize(inner)

    sch = check(ones, transform)
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        for shape in ((5, 0), (0, 3), (2, 3)):
            b = np.zeros(shape, "float32")
            kernel(b)
            assert (b == 1).all()


def test_p4_threads_that_share_a_reduction():
    @T.prim_func
    def sums(A: T.Buffer((4, 32)), B: T.Buffer((4,))):
        for k in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]

    error = check_refused(sums, lambda sch: sch.blockize(sch.get_loops("B")[1]), "blockize/P4")
    assert "share its reduction" in str(error)


@pytest.mark.parametrize("size, accepted", [("n", False), ("3", True)])
def test_p3_data_is_not_asked_where_nothing_runs(size, accepted):
    """The producer of the data has no step either where the size is 0."""
    func = tw.script.from_source(f"""
@T.prim_func
def main(a: T.handle, b: T.handle):
    m = T.int32()
    {"n = T.int32()" if size == "n" else ""}
    A = T.match_buffer(a, (m, {size}))
    B = T.match_buffer(b, (m, {size}))
    C = T.alloc_buffer((m,))
    for i, j in T.grid(m, {size}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi] = A[0, 0]
    for i, j in T.grid(m, {size}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(C[0] >= T.float32(0))
            B[vi, vj] = T.float32(1)
""")

    def transform(sch):
        sch.blockize(sch.get_loops("B")[1])

    sch = tw.Schedule(func)
    transform(sch)
    # The condition does not speak of the loop outside: it may stay with the inner block.
    text = sch.mod.script()
    outer = text.index('with T.block("B_o")')
    assert ("T.where" in text[outer : text.index("for", outer)]) == accepted
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        for m, n in ((2, 3), (2, 0), (0, 3)):
            shape = (m, 3 if accepted else n)
            a, b = np.ones(shape, "float32"), np.zeros(shape, "float32")
            kernel(a, b)
            assert (b == 1).all()


def test_p3_data_of_the_outer_loop_is_not_asked_early():
    @T.prim_func
    def chosen(a: T.handle, b: T.handle):
        m = T.int32()
        n = T.int32()
        A = T.match_buffer(a, (m,))
        B = T.match_buffer(b, (m, n))
        for i, j in T.grid(m, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(A[i] > T.float32(0))
                B[vi, vj] = T.float32(1)

    error = check_refused(chosen, lambda sch: sch.blockize(sch.get_loops("B")[1]), "blockize/P3")
    assert "A[i]" in str(error)


@pytest.mark.parametrize("steps", ["fuse", "split", "both"])
def test_conditions_that_stay_inside_keep_no_axis_outside_in_its_domain(steps):
    """Divisions are asked only where the inner loops run: a condition with one in it goes inside of the new block."""

    @T.prim_func
    def rows(a: T.handle, m: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        for i in range(n):
            for _j in range(m):
                with T.block("A"):
                    vi = T.axis.spatial(n, i)
                    A[vi] = 1

    sch = tw.Schedule(rows)
    i, j = sch.get_loops("A")
    if steps != "fuse":
        sch.split(i, [2, None])
    if steps != "split":
        sch.fuse(*sch.get_loops("A")[:-1])
    try:
        sch.blockize(sch.get_loops("A")[-1])
    except tw.ScheduleError as refused:
        assert refused.code == "blockize/P3"
    for n in range(4):
        for m in range(3):
            a = np.zeros(n, "int32")
            tw.ir.interpret(sch.mod, "main", a, m)
            assert a.tolist() == [int(m > 0)] * n


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_p2_starts_from_data(unit: bool, whole: bool):
    """They stay in the binding of one axis, where reading them is no read of the block."""

    @T.prim_func
    def shifted(A: T.Buffer((8,), "int32"), I: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
        for i, j in T.grid(2, 2):
            with T.block("B"):
                v = T.axis.spatial(8, T.max(I[0], 0) + i * 2 + j)
                B[v] = A[v] + 1

    def divide(sch):
        sch.blockize(sch.get_loops("B")[0 if whole else 1], preserve_unit_iters=unit)

    if not whole:
        check_refused(shifted, divide, "blockize/P2")
        return
    sch = tw.Schedule(shifted)
    divide(sch)
    tw.ir.verify(sch.mod)
    for start in (-1, 0, 3):
        a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
        tw.compile(sch, target="interpreter")(a, np.array([start], "int32"), b)
        assert [*np.flatnonzero(b)] == [*range(max(start, 0), max(start, 0) + 4)]


def test_p3_conditions_on_what_the_block_changes():
    @T.prim_func
    def clears(A: T.Buffer((2, 3), "int32")):
        for i, j in T.grid(2, 3):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(A[i, 1] > 0)
                A[vi, vj] = 0

    @T.prim_func
    def moves(A: T.Buffer((2, 4), "int32"), I: T.Buffer((2,), "int32")):
        for i, j in T.grid(2, 4):
            with T.block("A"):
                vi = T.axis.spatial(2, I[i] % 2)
                vj = T.axis.spatial(4, j)
                A[vi, vj] = 1
                I[vi] = vj

    for program in (clears, moves):
        check_refused(program, lambda sch: sch.blockize(sch.get_loops("A")[1]), "blockize/P3")


def test_loops_without_iterations():
    """The outer block runs all the same, and its axes are inside of their domains there, too."""

    def program(value):
        return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i, j in T.grid(1, 0):
        with T.block("B"):
            vi = T.axis.spatial(2, {value})
            vj = T.axis.spatial(4, i + j)
            B[vi] = A[vj]
""")

    def inner(sch):
        sch.blockize(sch.get_loops("B")[1])

    check(program("1 - i"), inner)
    check_refused(program("3 - i"), inner, "blockize/P3")
    check(program("i"), lambda sch: sch.blockize(sch.get_loops("B")[0]))

    @T.prim_func
    def digits(A: T.Buffer((4,)), B: T.Buffer((4, 2))):
        for i, j in T.grid(0, 2):
            with T.block("B"):
                vi = T.axis.spatial(4, i * 2 + j)
                vj = T.axis.spatial(2, j)
                B[vi, vj] = A[vj]

    check(digits, lambda sch: sch.parallel(sch.get_loops("B")[1]))


@pytest.mark.parametrize("condition", ["k <= i", "k < i + 3", "k * 2 <= i or k < 3"])
def test_an_init_does_not_ask_where_the_reduction_is(condition):
    """The condition compares an axis outside, of the reduction, with one inside."""
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 9), "int32"), C: T.Buffer((4,), "int32")):
    for k, i in T.grid(9, 4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(9, k)
            T.where({condition})
            with T.init():
                C[vi] = 0
            C[vi] += A[vi, vk]
""")
    sch = check(program, lambda sch: sch.blockize(sch.get_loops("C")[1]))
    assert "T.where" not in sch.mod.script().partition("T.init")[2].partition('T.block("C")')[0]


@T.prim_func
def index_of_its_own(A: T.Buffer((7,), "int64"), B: T.Buffer((5,), "int64")):
    at = T.alloc_buffer((3,), "int32")
    for i in range(3):
        with T.block("index"):
            v = T.axis.spatial(3, i)
            at[v] = v * 2 + 1
    for i in range(5):
        with T.block("B"):
            v = T.axis.spatial(5, i)
            B[v] = A[at[2] % 7]


def test_a_block_does_not_declare_regions_by_what_it_writes_itself():
    """At its start, the index is not there yet: a copy of what the block declares to read would begin anywhere."""

    def blockized(sch):
        return sch.blockize([sch.get_block("index"), sch.get_block("B")])

    def cached(sch):
        blockized(sch)
        sch.cache_read("B", 0, "global")

    check(index_of_its_own, blockized)
    check(index_of_its_own, cached)
    sch = tw.Schedule(index_of_its_own)
    around = sch.get(blockized(sch))
    assert around.reads[0].buffer.name == "A" and int(around.reads[0].region[0].extent) == 7
    given = np.arange(10, 17, dtype="int64")
    sch.cache_read("B", 0, "global")
    out = np.zeros(5, "int64")
    tw.compile(sch)(given, out)
    assert out.tolist() == [15] * 5


@T.prim_func
def declared_by_what_it_writes(A: T.Buffer((7,), "int64"), B: T.Buffer((5,), "int64")):
    at = T.alloc_buffer((3,), "int32")
    with T.block("both"):
        T.reads(A[at[2] % 7], at[2])
        T.writes(at[0:3], B[0:5])
        for i in range(3):
            with T.block("index"):
                v = T.axis.spatial(3, i)
                at[v] = v * 2 + 1
        for i in range(5):
            with T.block("B"):
                v = T.axis.spatial(5, i)
                B[v] = A[at[2] % 7]


def test_a_copy_at_the_start_of_a_block_does_not_ask_what_the_block_writes():
    sch = tw.Schedule(declared_by_what_it_writes)
    sch.cache_read("B", 0, "global")
    out = np.zeros(5, "int64")
    tw.compile(sch, "interpreter")(np.arange(10, 17, dtype="int64"), out)
    assert out.tolist() == [15] * 5


@pytest.mark.parametrize("kind", ["bind", "vectorize"])
def test_p6_a_spread_reduction_keeps_single_steps(kind):
    """Threads or lanes that share a reduction combine single updates: blockize and the binding are refused together,
    in either order."""

    @T.prim_func
    def largest(A: T.Buffer((2, 4)), B: T.Buffer((4,))):
        for k, i in T.grid(2, 4):
            with T.block("B"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    B[vi] = T.min_value("float32")
                B[vi] = T.max(B[vi], A[vk, vi])

    def spread(sch, block):
        loop = sch.get_loops(block)[0]
        if kind == "bind":
            sch.bind(loop, "threadIdx.y")
        else:
            sch.vectorize(loop)

    for inner_init in (False, True):

        def before(sch, inner_init=inner_init):
            sch.decompose_reduction("B", sch.get_loops("B")[0])
            spread(sch, "B_update")
            sch.blockize(sch.get_loops("B_update")[1], inner_init=inner_init)

        check_refused(largest, before, "blockize/P6")

    def after(sch):
        sch.decompose_reduction("B", sch.get_loops("B")[0])
        spread(sch, sch.blockize(sch.get_loops("B_update")[1]))

    check_refused(largest, after, f"{kind}/P3")
