"""rolling_buffer."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def stencil(A: T.Buffer((18,)), C: T.Buffer((16,))):
    B = T.alloc_buffer((18,))
    for t in range(4):
        for i in range(6):
            with T.block("B"):
                v = T.axis.spatial(18, t * 4 + i)
                B[v] = A[v] * T.float32(2)
        for j in range(4):
            with T.block("C"):
                v = T.axis.spatial(16, t * 4 + j)
                C[v] = B[v] + B[v + 2]


def test_tiles_compute_what_is_new():
    @T.prim_func
    def after(A: T.Buffer((18,)), C: T.Buffer((16,))):
        B = T.alloc_buffer((6,))
        for t in range(4):
            for i in range(6):
                with T.block("B"):
                    T.where(t < 1 or 2 <= i)  # noqa: SIM300
                    v = T.axis.opaque(18, t * 4 + i)
                    B[v % 6] = A[v] * T.float32(2)
            for j in range(4):
                with T.block("C"):
                    v = T.axis.opaque(16, t * 4 + j)
                    C[v] = B[v % 6] + B[(v + 2) % 6]

    sch = check(stencil, lambda sch: sch.rolling_buffer("B", 0), after)
    A, C = np.random.default_rng(0).random(18, "float32"), np.zeros(16, "float32")
    tw.compile(sch)(A, C)
    np.testing.assert_array_equal(C, A[:16] * 2 + A[2:] * 2)


@T.prim_func
def pools(A: T.Buffer((12, 14)), C: T.Buffer((8, 10))):
    B = T.alloc_buffer((10, 12))
    for i, j, r, s in T.grid(10, 12, 3, 3):
        with T.block("B"):
            vi, vj, vr, vs = T.axis.remap("SSRR", [i, j, r, s])
            with T.init():
                B[vi, vj] = T.float32(-100)
            B[vi, vj] = T.max(B[vi, vj], A[vi + vr, vj + vs])
    for i, j, r, s in T.grid(8, 10, 3, 3):
        with T.block("C"):
            vi, vj, vr, vs = T.axis.remap("SSRR", [i, j, r, s])
            with T.init():
                C[vi, vj] = T.float32(-100)
            C[vi, vj] = T.max(C[vi, vj], B[vi + vr, vj + vs])


def tiled(rows, columns, order="rows"):
    def transform(sch):
        i, j, *_ = sch.get_loops("C")
        (i0, i1), (j0, j1) = sch.split(i, [None, rows]), sch.split(j, [None, columns])
        sch.reorder(*([i0, j0] if order == "rows" else [j0, i0]), i1, j1)
        sch.compute_at("B", j0 if order == "rows" else i0)
        sch.rolling_buffer("B", 0)

    return transform


@pytest.mark.parametrize(
    ("rows", "columns", "order", "shape"),
    [
        (4, 10, "rows", "(6, 12)"),
        (8, 5, "rows", "(10, 7)"),
        (4, 5, "rows", "(6, 12)"),
        (4, 5, "columns", "(10, 7)"),
        (1, 1, "rows", "(3, 12)"),
        (3, 5, "rows", "(5, 12)"),
        (4, 4, "columns", "(10, 6)"),
    ],
)
def test_reductions_and_tiles_in_two_dimensions(rows, columns, order, shape):
    text = check(pools, tiled(rows, columns, order)).mod.script()
    assert f"B = T.alloc_buffer({shape})" in text and "T.axis.opaque" in text


def test_compiled():
    sch = tw.Schedule(pools)
    tiled(4, 5)(sch)
    A, C = np.random.default_rng(0).random((12, 14), "float32"), np.zeros((8, 10), "float32")
    tw.compile(sch)(A, C)
    windows = np.lib.stride_tricks.sliding_window_view(A, (5, 5))
    np.testing.assert_array_equal(C, windows.max((2, 3)))


def test_steps_of_a_quotient():
    @T.prim_func
    def upscaled(A: T.Buffer((6,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((6,))
        for t in range(8):
            for i in range(2):
                with T.block("B"):
                    v = T.axis.spatial(6, t // 2 + i)
                    B[v] = A[v] * T.float32(2)
            with T.block("C"):
                v = T.axis.spatial(8, t)
                C[v] = B[v // 2] + B[v // 2 + 1]

    assert "B = T.alloc_buffer((2,))" in check(upscaled, lambda sch: sch.rolling_buffer("B", 0)).mod.script()


@T.prim_func
def diagonal(A: T.Buffer((10, 10)), C: T.Buffer((8,))):
    B = T.alloc_buffer((10, 10))
    for t in range(8):
        for i, j in T.grid(3, 3):
            with T.block("B"):
                vi = T.axis.spatial(10, t + i)
                vj = T.axis.spatial(10, t + j)
                B[vi, vj] = A[vi, vj]
        with T.block("C"):
            v = T.axis.spatial(8, t)
            C[v] = B[v, v + 2] + B[v + 2, v]


@T.prim_func
def changing(A: T.Buffer((6,)), C: T.Buffer((4,))):
    B = T.alloc_buffer((6,))
    for t in range(4):
        for i in range(3):
            with T.block("B"):
                v = T.axis.spatial(6, t + i)
                B[v] = A[v]
        with T.block("C"):
            v = T.axis.spatial(4, t)
            C[v] = B[v] + B[v + 2]
        with T.block("A"):
            v = T.axis.spatial(6, t)
            A[v] = T.float32(0)


@T.prim_func
def selective(A: T.Buffer((6,)), C: T.Buffer((4,))):
    B = T.alloc_buffer((6,))
    for t in range(4):
        for i in range(3):
            with T.block("B"):
                T.where(t * 3 + i < 12)
                v = T.axis.spatial(6, t + i)
                B[v] = A[v]
        with T.block("C"):
            v = T.axis.spatial(4, t)
            C[v] = B[v] + B[v + 2]


@T.prim_func
def bare(A: T.Buffer((6,)), C: T.Buffer((5,))):
    B = T.alloc_buffer((6,))
    for t in range(4):
        for i in range(3):
            with T.block("B"):
                v = T.axis.spatial(6, t + i)
                B[v] = A[v]
        with T.block("C"):
            v = T.axis.spatial(5, t)
            C[v] = B[v] + B[v + 2]
    C[4] = B[0]


def in_parallel(sch):
    sch.parallel(sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)


def decomposed(sch):
    i, j, *_ = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.decompose_reduction("B", sch.get_loops("B")[3])
    sch.rolling_buffer("B_update", 0)


def twice(sch):
    sch.rolling_buffer("B", 0)
    sch.rolling_buffer("B", 0)


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (stencil, lambda sch: sch.rolling_buffer("root", 0), "rolling_buffer/P1"),
        (stencil, lambda sch: sch.rolling_buffer("B", 1), "rolling_buffer/P1"),
        (pools, decomposed, "rolling_buffer/P2"),
        (changing, lambda sch: sch.rolling_buffer("B", 0), "rolling_buffer/P2"),
        (stencil, twice, "rolling_buffer/P2"),
        (stencil, lambda sch: sch.rolling_buffer("C", 0), "rolling_buffer/P3"),
        (bare, lambda sch: sch.rolling_buffer("B", 0), "rolling_buffer/P3"),
        (pools, lambda sch: sch.rolling_buffer("B", 0), "rolling_buffer/P4"),
        (stencil, in_parallel, "rolling_buffer/P5"),
        (diagonal, lambda sch: sch.rolling_buffer("B", 0), "rolling_buffer/P6"),
        (selective, lambda sch: sch.rolling_buffer("B", 0), "rolling_buffer/P7"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_tiles_that_do_not_overlap():
    def transform(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        sch.rolling_buffer("B", 0)

    check_refused(workloads.elementwise_chain(4, 6), transform, "rolling_buffer/P6")


@pytest.mark.parametrize("rows, columns", [("i", "i"), ("i + 1", "i"), ("i * 2", "i"), ("i", "i // 2")])
def test_a_loop_that_moves_two_dimensions(rows, columns):
    func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((12, 12)), C: T.Buffer((6,))):
    B = T.alloc_buffer((12, 12))
    for i, j in T.grid(12, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(4):
        with T.block("C"):
            i = T.axis.spatial(4, i)
            C[i] = B[{rows}, {columns}] + B[({rows}) + 2, {columns}]
""")

    def transform(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        sch.rolling_buffer("B", 0)

    check_refused(func, transform, "rolling_buffer/P6")


def test_a_box_that_grows_from_tile_to_tile():
    """The later tile reads columns of the rows that both have which the one before has not computed."""

    @T.prim_func
    def growing(A: T.Buffer((9, 4)), C: T.Buffer((3,))):
        B = T.alloc_buffer((9, 4))
        for i, j in T.grid(9, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i in range(3):
            with T.block("C"):
                v = T.axis.spatial(3, i)
                C[v] = B[v, 0] + B[v + 5, v + 1]

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, 2])
        sch.compute_at("B", outer)
        sch.rolling_buffer("B", 0)

    check_refused(growing, transform, "rolling_buffer/P6")


def test_inlining_into_what_reads_at_indices_from_data():
    """What data select is said in the regions as in the block, also where an axis is no variable any more."""

    @T.prim_func
    def gathered(I: T.Buffer((3,), "int32"), A: T.Buffer((4, 4)), D: T.Buffer((3,))):
        B = T.alloc_buffer((2, 2))
        C = T.alloc_buffer((4,))
        for i, j in T.grid(2, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], A[vi + 1, vj])
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = B[I[I[v // 2 * 2 % 4] % 2] % 2, 1]
        for i in range(3):
            with T.block("D"):
                v = T.axis.spatial(3, i)
                D[v] = T.max(C[v], C[v + 1])

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("D")[0], [None, 2])
        sch.compute_at("C", outer)
        sch.rolling_buffer("C", 0)
        sch.compute_inline("B")

    sch = check(gathered, transform)
    rows, table = np.arange(16, dtype="float32").reshape(4, 4), np.array([1, 0, 1], dtype="int32")
    found = np.zeros(3, dtype="float32")
    tw.compile(sch.mod)(table, rows, found)
    read = np.maximum(rows[:2], rows[1:3])[:, 1]
    values = [read[table[table[v // 2 * 2 % 4] % 2] % 2] for v in range(4)]
    np.testing.assert_array_equal(found, [max(values[v], values[v + 1]) for v in range(3)])


@T.prim_func
def clamped(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v] * 2
    for i in range(16):
        with T.block("C"):
            v = T.axis.spatial(16, i)
            C[v] = B[T.max(v - 1, 0)] + B[v] + B[T.min(v + 1, 15)]


def neighbors(values: np.ndarray, axis: int = 0) -> np.ndarray:
    padded = np.pad(values, [(1, 1) if d == axis else (0, 0) for d in range(values.ndim)], "edge")
    at = [np.take(padded, range(k, k + values.shape[axis]), axis) for k in range(3)]
    return at[0] + at[1] + at[2]


@pytest.mark.parametrize(("tile", "longest"), [(4, 6), (3, 5), (8, 9)])
def test_windows_that_are_cut_off_at_the_ends(tile: int, longest: int) -> None:
    """The windows of tiles of four are [0, 5), [3, 9), [7, 13) and [11, 16)."""

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, tile])
        sch.compute_at("B", outer)
        sch.rolling_buffer("B", 0)

    sch = check(clamped, transform)
    assert f"B = T.alloc_buffer(({longest},)" in sch.mod.script()
    given, found = np.arange(16, dtype="int32") ** 2, np.zeros(16, "int32")
    tw.compile(sch)(given, found)
    np.testing.assert_array_equal(found, neighbors(given * 2))


def test_windows_that_are_cut_off_in_both_dimensions() -> None:
    @T.prim_func
    def blurred(A: T.Buffer((9, 12), "int32"), C: T.Buffer((9, 12), "int32")):
        B = T.alloc_buffer((9, 12), "int32")
        for i, j in T.grid(9, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2
        for i, j in T.grid(9, 12):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = (
                    B[T.max(vi - 1, 0), vj]
                    + B[vi, vj] * 3
                    + B[T.min(vi + 1, 8), vj]
                    + B[vi, T.max(vj - 1, 0)]
                    + B[vi, T.min(vj + 1, 11)]
                )

    def transform(sch):
        i, j = sch.get_loops("C")
        (i0, i1), (j0, j1) = sch.split(i, [None, 3]), sch.split(j, [None, 4])
        sch.reorder(i0, j0, i1, j1)
        sch.compute_at("B", j0)
        sch.rolling_buffer("B", 0)

    sch = check(blurred, transform)
    assert "B = T.alloc_buffer((5, 12)" in sch.mod.script()
    given, found = np.arange(9 * 12, dtype="int32").reshape(9, 12) ** 2 % 97, np.zeros((9, 12), "int32")
    tw.compile(sch)(given, found)
    np.testing.assert_array_equal(found, neighbors(given * 2, 0) + neighbors(given * 2, 1) + given * 2)


def test_a_cascade_of_windows_that_are_cut_off() -> None:
    @T.prim_func
    def twice(A: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32")):
        B = T.alloc_buffer((16,), "int32")
        C = T.alloc_buffer((16,), "int32")
        for i in range(16):
            with T.block("B"):
                v = T.axis.spatial(16, i)
                B[v] = A[v] * 2
        for i in range(16):
            with T.block("C"):
                v = T.axis.spatial(16, i)
                C[v] = B[T.max(v - 1, 0)] + B[v] + B[T.min(v + 1, 15)]
        for i in range(16):
            with T.block("D"):
                v = T.axis.spatial(16, i)
                D[v] = C[T.max(v - 1, 0)] + C[v] + C[T.min(v + 1, 15)]

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("D")[0], [None, 4])
        for block in ("C", "B"):
            sch.compute_at(block, outer)
        for block in ("C", "B"):
            sch.rolling_buffer(block, 0)

    sch = check(twice, transform)
    given, found = np.arange(16, dtype="int32") ** 2, np.zeros(16, "int32")
    tw.compile(sch)(given, found)
    np.testing.assert_array_equal(found, neighbors(neighbors(given * 2)))


def test_windows_that_go_backwards_do_not_roll() -> None:
    @T.prim_func
    def backwards(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        B = T.alloc_buffer((16,), "int32")
        for i in range(16):
            with T.block("B"):
                v = T.axis.spatial(16, i)
                B[v] = A[v] * 2
        for i in range(16):
            with T.block("C"):
                v = T.axis.spatial(16, i)
                C[v] = B[T.max(14 - v, 0)] + B[15 - v]

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, 4])
        sch.compute_at("B", outer)
        sch.rolling_buffer("B", 0)

    check_refused(backwards, transform, "rolling_buffer/P6")


def test_an_open_size() -> None:
    """The condition of the last tile is about elements, whichever tile computes them."""

    @T.prim_func
    def stencil_of_any_length(a: T.handle, c: T.handle):
        n = T.int32(is_size_var=True)
        A = T.match_buffer(a, (n + 2,))
        C = T.match_buffer(c, (n,))
        B = T.alloc_buffer((n + 2,))
        for i in range(n + 2):
            with T.block("B"):
                v = T.axis.spatial(n + 2, i)
                B[v] = A[v] * T.float32(2)
        for j in range(n):
            with T.block("C"):
                v = T.axis.spatial(n, j)
                C[v] = B[v] + B[v + 2]

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, 4])
        sch.compute_at("B", outer)
        sch.rolling_buffer("B", 0)

    sch = check(stencil_of_any_length, transform)
    assert [int(extent) for extent in sch.get(sch.get_block("B")).writes[0].buffer.shape] == [6]
    kernel = tw.compile(sch)
    for size in range(1, 14):
        a = np.random.default_rng(size).random(size + 2, "float32")
        c = np.empty(size, "float32")
        kernel(a, c)
        np.testing.assert_array_equal(c, a[:-2] * 2 + a[2:] * 2)


def test_tiles_of_a_reduction() -> None:
    """The axis that rolls is one over which the reader reduces: its init still runs once, before the first tile."""

    @T.prim_func
    def products(A: T.Buffer((9,), "int32"), C: T.Buffer((1,), "int32")):
        B = T.alloc_buffer((9,), "int32")
        for k in range(9):
            with T.block("B"):
                v = T.axis.spatial(9, k)
                B[v] = A[v] * 2
        for k in range(8):
            with T.block("C"):
                v = T.axis.reduce(8, k)
                with T.init():
                    C[0] = 100
                C[0] = C[0] + B[v] * B[v + 1]

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, 3])
        sch.compute_at("B", outer)
        sch.rolling_buffer("B", 0)

    sch = check(products, transform)
    assert "B = T.alloc_buffer((4,)" in sch.mod.script()
    given, found = np.arange(9, dtype="int32"), np.zeros(1, "int32")
    tw.compile(sch)(given, found)
    np.testing.assert_array_equal(found, [100 + 4 * np.dot(given[:-1], given[1:])])


BETWEEN = """@T.prim_func
def main(A: T.Buffer((18,), "int32"), C: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((18,), "int32")
    for t in range(4):
        {between}
            for i in range(6):
                with T.block("B"):
                    v = T.axis.spatial(18, t * 4 + i)
                    B[v] = A[v] * 2
            for j in range(4):
                with T.block("C"):
                    v = T.axis.spatial(16, t * 4 + j)
                    C[v] = B[v] + B[v + 2]
"""
EACH = """@T.prim_func
def main(A: T.Buffer((18,), "int32"), C: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((18,), "int32")
    for t in range(4):
        for z in range({extent}):
            for i in range(6):
                with T.block("B"):
                    v = T.axis.spatial(18, t * 4 + i)
                    B[v] = A[v] * 2
        for z in range({extent}):
            for j in range(4):
                with T.block("C"):
                    v = T.axis.spatial(16, t * 4 + j)
                    C[v] = B[v] + B[v + 2]
"""
TRIANGLE = """@T.prim_func
def main(A: T.Buffer((18, 18), "int32"), C: T.Buffer((16, 16), "int32")):
    B = T.alloc_buffer((18, 18), "int32")
    for s in range(4):
        for t in range({extent}):
            for i, j in T.grid(6, 6):
                with T.block("B"):
                    v = T.axis.spatial(18, s * 4 + i)
                    u = T.axis.spatial(18, t * 4 + j)
                    B[v, u] = A[v, u] * 2
            for i, j in T.grid(4, 4):
                with T.block("C"):
                    v = T.axis.spatial(16, s * 4 + i)
                    u = T.axis.spatial(16, t * 4 + j)
                    C[v, u] = B[v, u] + B[v + 2, u + 2]
"""


@pytest.mark.parametrize(
    ("source", "part", "rolls"),
    [
        (BETWEEN, {"between": "for r in range(2):"}, True),
        (BETWEEN, {"between": "for r in range(T.min(t, 1)):"}, False),
        (BETWEEN, {"between": "if t > 0:\n          for r in range(1):"}, False),
        (EACH, {"extent": "2"}, True),
        (EACH, {"extent": "T.min(t, 1)"}, False),
        (TRIANGLE, {"extent": "4"}, True),
        (TRIANGLE, {"extent": "s + 1"}, False),
    ],
)
def test_tiles_that_run_on_a_condition(source, part, rolls):
    """A tile that computes nothing, or less than the next one, leaves nothing for it, or too little."""
    program = tw.script.from_source(source.format(**part))
    if rolls:
        check(program, lambda sch: sch.rolling_buffer("B", 0))
    else:
        check_refused(program, lambda sch: sch.rolling_buffer("B", 0), "rolling_buffer/P5")


def test_windows_with_gaps():
    """What the tile before did not compute of the window is not there."""

    @T.prim_func
    def every_second(A: T.Buffer((18,), "int32"), C: T.Buffer((4, 3), "int32")):
        B = T.alloc_buffer((18,), "int32")
        for t in range(4):
            for i in range(3):
                with T.block("B"):
                    v = T.axis.spatial(18, t * 3 + i * 2)
                    B[v] = A[v] * 2
            for i in range(3):
                with T.block("C"):
                    vt, v = T.axis.remap("SS", [t, i])
                    C[vt, v] = B[vt * 3 + v * 2]

    @T.prim_func
    def slanted(A: T.Buffer((18, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        B = T.alloc_buffer((18, 6), "int32")
        for t in range(4):
            for i in range(6):
                with T.block("B"):
                    v = T.axis.spatial(18, t * 4 + i)
                    u = T.axis.spatial(6, i)
                    B[v, u] = A[v, u] * 2
            for i in range(6):
                with T.block("C"):
                    vt, v = T.axis.remap("SS", [t, i])
                    C[vt, v] = B[vt * 4 + v, v]

    for program in (every_second, slanted):
        check_refused(program, lambda sch: sch.rolling_buffer("B", 0), "rolling_buffer/P6")
