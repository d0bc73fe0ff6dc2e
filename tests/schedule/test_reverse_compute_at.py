import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def loops_of(sch, block):
    return sch.get_loops(sch.get_block(block))


def at(block, producer, number, **options):
    return lambda sch: sch.reverse_compute_at(sch.get_block(block), loops_of(sch, producer)[number], **options)


@pytest.mark.parametrize("number", [0, 1])
def test_elementwise(number):
    check(workloads.elementwise_chain(4, 6), at("C", "B", number))
    check(workloads.elementwise_chain(4, 6), at("D", "C", number, preserve_unit_loops=True))


def test_the_epilogue_of_a_tile():
    def transform(sch):
        i, j, k = loops_of(sch, "C")
        i_0, i_1 = sch.split(i, [None, 2])
        j_0, j_1 = sch.split(j, [None, 3])
        sch.reorder(i_0, j_0, k, i_1, j_1)
        sch.reverse_compute_at(sch.get_block("D"), j_0)

    sch = check(workloads.matmul_relu(4, 6, 5), transform)
    assert [repr(loop) for loop in loops_of(sch, "D")[2:]] == ["Loop(ax0, extent=2)", "Loop(ax1, extent=3)"]


def test_a_register_tile_with_a_remainder():
    def transform(sch):
        write_back = sch.cache_write("C", 0, "local")
        i, j, k = loops_of(sch, "C")
        i_0, i_1 = sch.split(i, [None, 3])
        j_0, j_1 = sch.split(j, [None, 4])
        sch.reorder(i_0, j_0, k, i_1, j_1)
        sch.reverse_compute_at(write_back, j_0)

    sch = check(workloads.matmul(7, 6, 5), transform)
    assert "T.where(i_0 * 3 + ax0 < 7 and j_0 * 4 + ax1 < 6)" in sch.mod.script()


def test_fused_loops():
    def transform(sch):
        write_back = sch.cache_write("C", 0, "local")
        i, j, k = loops_of(sch, "C")
        i_0, i_1 = sch.split(i, [None, 2])
        j_0, j_1 = sch.split(j, [None, 3])
        sch.reorder(i_0, j_0, k, i_1, j_1)
        outer = sch.fuse(i_0, j_0)
        sch.parallel(outer)
        sch.reverse_compute_at(write_back, outer)

    check(workloads.matmul(4, 6, 5), transform)


def test_pairs():
    def transform(sch):
        i_0, _ = sch.split(loops_of(sch, "B")[0], [None, 4])
        sch.reverse_compute_at(sch.get_block("C"), i_0)

    sch = check(workloads.pool(6), transform)
    assert repr(loops_of(sch, "C")[-1]) == "Loop(ax0, extent=2)"

    def odd(sch):
        i_0, _ = sch.split(loops_of(sch, "B")[0], [None, 3])
        sch.reverse_compute_at(sch.get_block("C"), i_0)

    check_refused(workloads.pool(6), odd, "reverse_compute_at/P6")


def test_partial_sums_are_not_read():
    check_refused(workloads.matmul_relu(4, 6, 5), at("D", "C", 2), "reverse_compute_at/P5")


def test_a_halo_is_not_there_yet():
    @T.prim_func
    def stencil(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((10,))
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = A[T.max(T.min(vi - 1, 7), 0)]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + B[vi + 1] + B[vi + 2]

    check_refused(stencil, at("C", "B", 0), "reverse_compute_at/P6")


@T.prim_func
def read_before(A: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (workloads.elementwise_chain(4, 4), at("C", "C", 0), "reverse_compute_at/P2"),
        (read_before, at("C", "B", 0), "reverse_compute_at/P3"),
        (workloads.softmax_like(4, 4), at("B", "total", 0), "reverse_compute_at/P4"),
        (workloads.elementwise_chain(4, 4), at("B", "C", 0), "reverse_compute_at/P4"),
        (workloads.elementwise_chain(4, 4), at("C", "B", 0, index=0), "reverse_compute_at/P7"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_block_roles():
    @T.prim_func
    def update(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = C[vi] + B[vi]

    error = check_refused(update, at("C", "B", 0), "reverse_compute_at/P1")
    assert "updates 'C' in place" in error.message and "buffer of its own" in error.hint

    def decomposed(sch):
        product = sch.get_block("C")
        sch.decompose_reduction(product, sch.get_loops(product)[0])
        sch.compute_at(product, sch.get_loops("D")[0])

    error = check_refused(workloads.matmul_relu(4, 6, 5), decomposed, "compute_at/P1")
    assert "before its reduction is decomposed" in error.hint


def test_into_a_parallel_loop():
    def transform(sch):
        i, _ = loops_of(sch, "B")
        sch.parallel(i)
        sch.reverse_compute_at(sch.get_block("C"), i)

    check(workloads.elementwise_chain(4, 6), transform)


def test_instances_that_nobody_knows():
    @T.prim_func
    def strided(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(8, i * 2)
                C[vi] = B[vi]

    check_refused(strided, at("C", "B", 0), "reverse_compute_at/P8")


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_loops_of_one_iteration_stand_in_no_condition(rows):
    func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((16, 16)), D: T.Buffer(({rows}, 2, 1))):
    B = T.alloc_buffer((16, 16))
    for i_0, j_0, i_1, j_1 in T.grid(4, 4, 4, 4):
        with T.block("B"):
            vi = T.axis.spatial(16, i_0 * 4 + i_1)
            vj = T.axis.spatial(16, j_0 * 4 + j_1)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j, k in T.grid({rows}, 2, 1):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            D[vi, vj, vk] = B[vi, vj] + T.float32(1)
""")

    def at(depth):
        return lambda sch: sch.reverse_compute_at("D", sch.get_loops("B")[depth], preserve_unit_loops=True, index=1)

    for depth in range(3):
        check(func, at(depth))


def test_steps_whose_order_matters_keep_it():
    """x * 2 + a is no sum: the loop of the copy would take the columns before the rows."""

    @T.prim_func
    def digits(A: T.Buffer((2, 3), "int32"), B: T.Buffer((4,), "int32")):
        C = T.alloc_buffer((2, 3), "int32")
        for j, i in T.grid(3, 2):
            with T.block("C"):
                vj, vi = T.axis.remap("SS", [j, i])
                C[vi, vj] = A[vi, vj]
        for k, l, i in T.grid(2, 3, 4):
            with T.block("B"):
                vk, vl, vi = T.axis.remap("RRS", [k, l, i])
                with T.init():
                    B[vi] = 1
                B[vi] = B[vi] * 2 + C[vk, vl]

    error = check_refused(
        digits, lambda sch: sch.reverse_compute_at("B", sch.get_loops("C")[0]), "reverse_compute_at/P1"
    )
    assert "order" in str(error)


def test_a_sum_whose_condition_lets_it_begin_in_a_later_iteration():
    """It would begin at the smallest number that its loops make, and they make the others in another order."""

    @T.prim_func
    def late(A: T.Buffer((4,), "int32"), C: T.Buffer((1,), "int32")):
        B = T.alloc_buffer((4,), "int32")
        for i, j in T.grid(2, 3):
            with T.block("B"):
                v = T.axis.spatial(4, i * 3 + j)
                T.where(i * 3 + j < 4)
                B[v] = A[v]
        for u, k in T.grid(1, 2):
            with T.block("C"):
                vu, vk = T.axis.remap("SR", [u, k])
                with T.init():
                    C[vu] = 0
                C[vu] += B[vk + 2]

    def turned(sch):
        i, j = sch.get_loops("B")
        sch.reorder(j, i)
        sch.reverse_compute_at("C", i)

    check_refused(late, turned, "reverse_compute_at/P6")
    check(late, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[1]))


@pytest.mark.parametrize("period", [10, 12, 16])
@pytest.mark.parametrize("other", [1, 5, 7])
def test_tiles_that_stick_out_of_a_group(period, other):
    """Where results are moved to a place that is a group and a step in it, conditions keep tiles within both axes."""

    @T.prim_func
    def groups(A: T.Buffer((2, 14, period), "int32"), C: T.Buffer((14, 2 * period), "int32")):
        B = T.alloc_buffer((2, 14, period), "int32")
        for g, i, j, k in T.grid(2, 14, period, 3):
            with T.block("B"):
                vg, vi, vj, vk = T.axis.remap("SSSR", [g, i, j, k])
                with T.init():
                    B[vg, vi, vj] = 0
                B[vg, vi, vj] += A[vg, vi, vj] * vk
        for g, i, j in T.grid(2, 14, period):
            with T.block("C"):
                vg, vi, vj = T.axis.remap("SSS", [g, i, j])
                C[vi, vg * period + vj] = B[vg, vi, vj] + 1

    def moved(sch):
        g, i, j, k = sch.get_loops("B")
        i0, i1 = sch.split(i, [None, other])
        j0, j1 = sch.split(j, [None, 8])
        sch.reorder(g, j0, i0, k, i1, j1)
        sch.reverse_compute_at("C", i0)
        assert len(sch.get_loops("C")) > 3

    check(groups, moved)


def test_a_region_whose_length_the_axes_say_bounds_none_of_them():
    """A hint asks for what is left of a row: its loop would be as long as an axis of its own says."""

    @T.prim_func
    def main(A: T.Buffer((2, 2, 1), "int16")):
        B = T.alloc_buffer((1,), "int16")
        for i in range(1):
            with T.block("outer"):
                v = T.axis.spatial(1, i)
                for j, k in T.grid(1, 2):
                    with T.block("B"):
                        vk = T.axis.reduce(2, k)
                        B[v] = T.if_then_else(vk < 1, A[vk + 1, vk, v], T.int16(1))

    sch = tw.Schedule(main)
    hint = sch.prefetch_at(sch.get_loops("B")[1], "B", 0, 1)
    copy = sch.cache_read("B", 0, "shared")
    sch.compute_at(copy, sch.get_loops("B")[1])
    sch.fuse(sch.get_loops(copy)[2])
    sch.split(sch.get_loops(hint)[0], [1, 1, None])
    sch.reverse_compute_at(hint, sch.get_loops(copy)[-1])
    _core.verify(sch.mod)


@pytest.mark.parametrize(
    ("index", "rows"), [("v1 + v0 + 1", "n * 2 + 1"), ("v0 + v1", "n + 1"), ("v1 * 2 + v0", "n + 2")]
)
def test_sums_of_axes_of_open_size_run_along_diagonals(index, rows):
    """Of the elements that read t[v1 + v0], an iteration of t completes those of a diagonal. A loop of the longer axis
    would run 2 - n times."""
    program = tw.script.from_source(f"""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n * 3 + 1,), "int32")
    C = T.match_buffer(c, (n, 2), "int32")
    t = T.alloc_buffer((n * 3 + 1,), "int32")
    for i in range({rows}):
        with T.block("t"):
            v = T.axis.spatial(n * 3 + 1, i)
            t[v] = A[v] * 2
    for i, j in T.grid(n, 2):
        with T.block("C"):
            v0, v1 = T.axis.remap("SS", [i, j])
            C[v0, v1] = T.if_then_else({index} < {rows}, t[{index}], 7)
""")
    sch = check(program, at("C", "t", 0))
    assert len(loops_of(sch, "C")) == 2
    kernel = tw.compile(sch, "interpreter", schedule="as written")
    for n in (1, 2, 5):
        a, c = np.arange(n * 3 + 1, dtype="int32"), np.zeros((n, 2), "int32")
        kernel(a, c)
        expected = [[2 * eval(index, {"v0": v0, "v1": v1}) for v1 in range(2)] for v0 in range(n)]
        np.testing.assert_array_equal(c, np.array(expected, "int32").reshape(n, 2))


@pytest.mark.parametrize(
    ("extents", "index", "rows", "tile"),
    [
        *(((5, 7), "v0 + v1", 11, tile) for tile in (1, 4, 11)),
        *(((5, 7), "v0 * 2 + v1", 15, tile) for tile in (1, 2, 4)),
        *(((6, 4), "v0 + v1 * 3 + 2", 17, tile) for tile in (1, 3, 5)),
        *(((4, 3), "v0 - v1 + 2", 6, tile) for tile in (1, 4)),
        *(((3, 4), "v1 + v0 * -1 + 2", 6, tile) for tile in (1, 4)),
        ((5, 3), "6 - v0 - v1", 7, 1),
    ],
)
def test_a_tile_takes_a_band_of_diagonals(extents, index, rows, tile):
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows},), "int32"), C: T.Buffer({extents}, "int32")):
    t = T.alloc_buffer(({rows},), "int32")
    for i in range({rows}):
        with T.block("t"):
            v = T.axis.spatial({rows}, i)
            t[v] = A[v] * 2
    for i, j in T.grid{extents}:
        with T.block("C"):
            v0, v1 = T.axis.remap("SS", [i, j])
            C[v0, v1] = t[{index}]
""")

    def transform(sch):
        outer, _ = sch.split(loops_of(sch, "t")[0], [None, tile])
        sch.reverse_compute_at("C", outer)

    check(program, transform)


def test_a_sum_over_a_window_does_not_move_to_the_first_of_its_elements():
    """Each step of an element of C would run in another iteration."""

    @T.prim_func
    def main(A: T.Buffer((11,)), C: T.Buffer((5,))):
        t = T.alloc_buffer((11,))
        for i in range(11):
            with T.block("t"):
                v = T.axis.spatial(11, i)
                t[v] = A[v] * 2.0
        for i, j in T.grid(5, 7):
            with T.block("C"):
                v0, v1 = T.axis.remap("SR", [i, j])
                with T.init():
                    C[v0] = 0.0
                C[v0] += t[v0 + v1]

    check_refused(main, at("C", "t", 0), "reverse_compute_at/P6")


@pytest.mark.parametrize("inner", [3, 5])
def test_a_chain_whose_loops_are_split_again(inner):
    """The tile of C is 8 long, though its loops of 3 x 3 or 2 x 5 reach further: D takes 8, not 9 or 10."""

    @T.prim_func
    def chain(A: T.Buffer((37,)), D: T.Buffer((37,))):
        B = T.alloc_buffer((37,))
        C = T.alloc_buffer((37,))
        for i in range(37):
            with T.block("B"):
                v = T.axis.spatial(37, i)
                B[v] = A[v] + 1.0
        for i in range(37):
            with T.block("C"):
                v = T.axis.spatial(37, i)
                C[v] = B[v] * 2.0
        for i in range(37):
            with T.block("D"):
                v = T.axis.spatial(37, i)
                D[v] = C[v] - 3.0

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("B")[0], [None, 8])
        sch.reverse_compute_at("C", outer)
        sch.split(sch.get_loops("C")[1], [None, inner])
        sch.reverse_compute_at("D", outer)

    sch = check(chain, transform)
    assert repr(sch.get_loops("D")[1]) == "Loop(ax0, extent=8)"


@pytest.mark.parametrize("preserve", [False, True])
def test_regions_of_64_bits_in_loops_of_32(preserve):
    """The predicate of the tiles is asked of axes whose values are int64, and the loops are int32: refused, where that
    is not found to be the same predicate, and no internal error."""

    @T.prim_func
    def program(A: T.Buffer((5,)), B: T.Buffer((T.int64(5),))):
        C = T.alloc_buffer((5,))
        for i in range(5):
            with T.block("C"):
                v = T.axis.spatial(5, i)
                D = T.match_buffer(C[v : v + 1], (1,), offset_factor=1)
                for j in range(T.int64(1)):
                    D[j] = A[v] * 2.0
        for i in range(5):
            with T.block("B"):
                v = T.axis.spatial(5, i)
                B[v] = C[v] + 1.0

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [4, 4], preserve_unit_iters=True)
        sch.reverse_compute_at("B", outer, preserve_unit_loops=preserve)

    try:
        check(program, transform)
    except tw.ScheduleError as error:
        assert error.code == "reverse_compute_at/P6"
