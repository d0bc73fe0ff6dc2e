"""Which instances compute_at and reverse_compute_at choose: reversed, tiled, clipped and reshaped accesses."""

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_equivalent, check_refused


def test_a_reversed_producer():
    @T.prim_func
    def before(X: T.Buffer((10, 8)), Z: T.Buffer((8, 10))):
        Y = T.alloc_buffer((10, 8))
        for i, j in T.grid(10, 8):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[9 - vi, 7 - vj] = X[vi, vj]
        for i, j in T.grid(8, 10):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vj, vi]

    @T.prim_func
    def after(X: T.Buffer((10, 8)), Z: T.Buffer((8, 10))):
        Y = T.alloc_buffer((10, 8))
        for i in range(8):
            for k in range(10):
                with T.block("Y"):
                    vi = T.axis.spatial(10, k)
                    vj = T.axis.spatial(8, 7 - i)
                    Y[9 - vi, 7 - vj] = X[vi, vj]
            for j in range(10):
                with T.block("Z"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Z[vi, vj] = Y[vj, vi]

    check(before, lambda sch: sch.compute_at("Y", sch.get_loops("Z")[0]), after)


def test_a_reshaping_consumer():
    @T.prim_func
    def before(A: T.Buffer((3, 16)), C: T.Buffer((6, 8))):
        B = T.alloc_buffer((3, 16))
        for i, j in T.grid(3, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i, j in T.grid(6, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[(vi * 8 + vj) // 16, (vi * 8 + vj) % 16]

    @T.prim_func
    def after(A: T.Buffer((3, 16)), C: T.Buffer((6, 8))):
        B = T.alloc_buffer((3, 16))
        for i in range(3):
            for j in range(16):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]
            for p, q in T.grid(2, 8):
                with T.block("C"):
                    vi = T.axis.spatial(6, i * 2 + p)
                    vj = T.axis.spatial(8, q)
                    C[vi, vj] = B[(vi * 8 + vj) // 16, (vi * 8 + vj) % 16]

    check(before, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]), after)


def test_a_consumer_of_less_than_a_tile():
    @T.prim_func
    def before(A: T.Buffer((16,)), D: T.Buffer((2,))):
        B = T.alloc_buffer((16,))
        for i_0, i_1 in T.grid(4, 4):
            with T.block("B"):
                vi = T.axis.spatial(16, i_0 * 4 + i_1)
                B[vi] = A[vi]
        for i in range(2):
            with T.block("D"):
                vi = T.axis.spatial(2, i)
                D[vi] = B[vi]

    @T.prim_func
    def after(A: T.Buffer((16,)), D: T.Buffer((2,))):
        B = T.alloc_buffer((16,))
        for i_0 in range(4):
            for i_1 in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(16, i_0 * 4 + i_1)
                    B[vi] = A[vi]
            for k in range(4):
                with T.block("D"):
                    vi = T.axis.spatial(2, i_0 * 4 + k)
                    T.where(i_0 * 4 + k < 2)
                    D[vi] = B[vi]

    check(before, lambda sch: sch.reverse_compute_at("D", sch.get_loops("B")[0]), after)


def test_a_padded_window():
    @T.prim_func
    def before(A: T.Buffer((24,)), C: T.Buffer((24,))):
        B = T.alloc_buffer((24,))
        for i in range(24):
            with T.block("B"):
                vi = T.axis.spatial(24, i)
                B[vi] = A[vi]
        for i_0, i_1, k in T.grid(3, 8, 3):
            with T.block("C"):
                vi = T.axis.spatial(24, i_0 * 8 + i_1)
                vk = T.axis.reduce(3, k)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + T.if_then_else(vi + vk >= 1 and vi + vk < 25, B[vi + vk - 1], T.float32(0))

    sch = check(before, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]))
    assert "T.where(1 <= i_0 * 8 + ax0 and i_0 * 8 + ax0 < 25)" in sch.mod.script()


def test_a_constant_beside_the_loops():
    @T.prim_func
    def before(C: T.Buffer((4, 6))):
        B = T.alloc_buffer((4,))
        offsets = T.allocate_const([1.0, 2.0, 3.0, 4.0], dtype="float32", extents=[4])
        offset = T.decl_buffer([4], data=offsets)
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = offset[vi] * T.float32(2)
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi]

    check(before, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]))
    check(before, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]))
    check(before, lambda sch: sch.compute_inline("B"))


@T.prim_func
def flattened(A: T.Buffer((8, 3, 4)), C: T.Buffer((96,))):
    B = T.alloc_buffer((96,))
    for i, j, k in T.grid(8, 3, 4):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi * 12 + vj * 4 + vk] = A[vi, vj, vk] * T.float32(2)
    for i in range(96):
        with T.block("C"):
            vi = T.axis.spatial(96, i)
            C[vi] = B[vi] + T.float32(1)


@pytest.mark.parametrize(("factors", "instances"), [([96, 1], 1), ([24, 4], 4), ([48, 2], 2), ([8, 12], 12)])
def test_the_axes_of_a_flat_index_are_its_digits(factors, instances):
    """So many of the block that computes a flattened array are run for a part of its consumer."""

    def move(sch):
        sch.compute_at("B", sch.split(sch.get_loops("C")[0], factors)[0])

    sch = check(flattened, move)
    own = sch.get_loops("B")[1:]
    assert math.prod(sch.get(loop).extent.value for loop in own) == instances


@pytest.mark.parametrize("preserve", [False, True])
def test_loops_that_others_leave_without_iterations_reach_nothing_there(preserve):
    """What runs for the first row alone does so in the new place, too."""
    program = tw.script.from_source("""
@T.prim_func
def main(A: T.Buffer((1, 5)), C: T.Buffer((3, 5))):
    for i, j in T.grid(3, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.if_then_else(vi >= 0 and vi < 1, A[vi, vj], T.float32(2))
""")
    sch = tw.Schedule(program)
    i, j = sch.get_loops("C")
    sch.read_at(i, "C", 0, "local")
    copy = sch.cache_read("C", 0, "local")
    assert "T.max(1 - i, 0)" in sch.mod.script()
    try:
        sch.compute_at(copy, j, preserve_unit_loops=preserve)
    except tw.ScheduleError as refused:
        assert refused.code == "compute_at/P6"
    tw.ir.verify(sch.mod)
    check_equivalent(program, sch.mod)


def test_a_block_that_reads_nothing_of_the_tiles_is_not_left_out():
    """In the new place it would run for those elements that it reads, and it may read none: here, a[-1]."""

    @T.prim_func
    def shifted(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        a = T.alloc_buffer((1,), "int32")
        for i in range(1):
            with T.block("a"):
                v = T.axis.spatial(1, i)
                a[v] = A[v]
        with T.block("B"):
            v = T.axis.spatial(1, 0)
            for x in range(1):
                B[x] = T.if_then_else(v >= 1, a[v - 1], 5)

    check_refused(shifted, lambda sch: sch.reverse_compute_at("B", sch.get_loops("a")[0]), "reverse_compute_at/P6")


def test_data_of_its_own_do_not_say_what_a_producer_computes():
    """Which elements are read is known once others of them have been computed: it computes all of them."""

    @T.prim_func
    def condition(B: T.Buffer((1,), "int32")):
        a = T.alloc_buffer((2,), "int32")
        for i in range(2):
            with T.block("a"):
                v = T.axis.spatial(2, i)
                a[v] = 1
        for i in range(1):
            with T.block("B"):
                v = T.axis.spatial(1, i)
                T.where(a[a[i]] > 0)
                B[v] = 1

    @T.prim_func
    def bound(B: T.Buffer((4,), "int32")):
        a = T.alloc_buffer((4,), "int32")
        for i in range(4):
            with T.block("a"):
                v = T.axis.spatial(4, i)
                a[v] = 3 - v
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, a[i])
                B[v] = a[v]

    for program, extent in (condition, 2), (bound, 4):
        sch = tw.Schedule(program)
        sch.compute_at("a", sch.get_loops("B")[0])
        assert sch.get(sch.get_loops("a")[-1]).extent == extent
        sch.verify()


def test_data_that_are_there_before_say_what_a_producer_computes():
    @T.prim_func
    def gather(I: T.Buffer((4,), "int32"), X: T.Buffer((16,)), B: T.Buffer((4,))):
        a = T.alloc_buffer((16,))
        for i in range(16):
            with T.block("a"):
                v = T.axis.spatial(16, i)
                a[v] = X[v] + T.float32(1)
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = a[I[v] % 16]

    sch = tw.Schedule(gather)
    sch.compute_at("a", sch.get_loops("B")[0])
    assert len(sch.get_loops("a")) == 1
    sch.verify()


def test_data_that_say_how_often_loops_run_are_there_before():
    @T.prim_func
    def program(I: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        a = T.alloc_buffer((16,), "int32")
        J = T.alloc_buffer((4,), "int32")
        for i in range(16):
            with T.block("a"):
                v = T.axis.spatial(16, i)
                a[v] = 3 - v
        for i in range(4):
            with T.block("J"):
                v = T.axis.spatial(4, i)
                J[v] = I[v] % 16
            with T.block("C"):
                v = T.axis.spatial(4, i)
                T.where(a[J[i]] > 3 or a[0] > 0)
                C[v] = 5

    check_refused(program, lambda sch: sch.compute_at("a", sch.get_loops("C")[0], index=0), "compute_at/P5")
    sch = tw.Schedule(program)
    sch.compute_at("a", sch.get_loops("C")[0])
    assert "J[i]" in str(sch.get(sch.get_loops("a")[1]).extent)
    sch.verify()


def clamped(v: str, tap: int, last: str) -> str:
    return v if tap == 0 else f"T.max({v} - {-tap}, 0)" if tap < 0 else f"T.min({v} + {tap}, {last})"


def clamped_twice(v: str, tap: int, last: str) -> str:
    return f"T.min(T.max({v} + {tap}, 0), {last})"


def chosen(v: str, tap: int, last: str) -> str:
    return f"T.if_then_else({v} + {tap} < 0, 0, T.if_then_else({v} + {tap} > {last}, {last}, {v} + {tap}))"


def selected(v: str, tap: int, last: str) -> str:
    return f"T.Select({v} + {tap} < 0, 0, T.Select({v} + {tap} > {last}, {last}, {v} + {tap}))"


FORMS = [clamped, clamped_twice, chosen, selected]


@pytest.mark.parametrize(
    ("clamp", "size", "tile", "reach"),
    [
        *((c, *each) for c in FORMS for each in [(517, 32, 2), (517, 32, 1), (40, 7, 3), (23, 5, 4)]),
        *((c, "n", *each) for c in FORMS for each in [(32, 2), (7, 1), (32, 3)]),
    ],
)
def test_stencils_whose_reads_are_clamped_to_the_array(clamp, size, tile, reach):
    taps = range(-reach, reach + 1)
    last = "n - 1" if size == "n" else str(size - 1)
    head = "    n = T.int32()\n" if size == "n" else ""
    program = tw.script.from_source(f"""
@T.prim_func
def main(a: T.handle, c: T.handle):
{head}    A = T.match_buffer(a, ({size},), "int32")
    C = T.match_buffer(c, ({size},), "int32")
    t = T.alloc_buffer(({size},), "int32")
    for i in range({size}):
        with T.block("t"):
            v = T.axis.spatial({size}, i)
            t[v] = A[v] * 3
    for i in range({size}):
        with T.block("C"):
            v = T.axis.spatial({size}, i)
            C[v] = {" + ".join(f"t[{clamp('v', tap, last)}] * {tap + 9}" for tap in taps)}
""")
    sch = tw.Schedule(program)
    outer, _ = sch.split(sch.get_loops("C")[0], [None, tile])
    sch.compute_at("t", outer)
    kernel = tw.compile(sch, "interpreter", schedule="as written")
    for length in (1, 33, 100) if size == "n" else (size,):
        a, c = np.random.default_rng(1).integers(-9, 9, length).astype("int32"), np.zeros(length, "int32")
        kernel(a, c)
        places = [np.clip(np.arange(length) + tap, 0, length - 1) for tap in taps]
        expected = sum(3 * a[place] * (tap + 9) for place, tap in zip(places, taps, strict=True))
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("clamp", [clamped, clamped_twice])
def test_clamped_stencils_of_two_dimensions(clamp):
    taps = [(-2, 0), (-1, 1), (0, 0), (1, -1), (2, 2), (0, -2)]
    value = " + ".join(f"t[{clamp('vi', i, '36')}, {clamp('vj', j, '40')}] * {i * 3 + j + 11}" for i, j in taps)
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((37, 41), "int32"), C: T.Buffer((37, 41), "int32")):
    t = T.alloc_buffer((37, 41), "int32")
    for i, j in T.grid(37, 41):
        with T.block("t"):
            vi, vj = T.axis.remap("SS", [i, j])
            t[vi, vj] = A[vi, vj] * 3
    for i, j in T.grid(37, 41):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = {value}
""")
    sch = tw.Schedule(program)
    i, j = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 8])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, i1, j1)
    sch.compute_at("t", j0)
    a, c = np.random.default_rng(1).integers(-9, 9, (37, 41)).astype("int32"), np.zeros((37, 41), "int32")
    tw.compile(sch, "interpreter", schedule="as written")(a, c)
    padded = np.pad(a * 3, 2, mode="edge")
    expected = sum(padded[2 + i : 39 + i, 2 + j : 43 + j] * (i * 3 + j + 11) for i, j in taps)
    np.testing.assert_array_equal(c, expected)
