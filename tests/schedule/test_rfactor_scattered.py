"""sch.rfactor of blocks that add to elements which data select: each iteration adds to a copy of the result."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


def factor(block, number, axis):
    return lambda sch: sch.rfactor(sch.get_loops(sch.get_block(block))[number], axis)


SCATTERED = """@T.prim_func
def main(R: T.Buffer((8,), "int32"), A: T.Buffer((8,)), Y: T.Buffer((5,))):
    T.assume_buffer_domain(R, [0, 5])
    for p_0, p_1 in T.grid(2, 4):
        with T.block("B"):
            vp = T.axis.reduce(8, p_0 * 4 + p_1)
            Y[R[vp]] = Y[R[vp]] + A[vp]
"""


def test_data_that_select_elements():
    @T.prim_func
    def after(R: T.Buffer((8,), "int32"), A: T.Buffer((8,)), Y: T.Buffer((5,))):
        Y_rf = T.alloc_buffer((2, 5))
        T.assume_buffer_domain(R, [0, 5])
        for p_0, ax0 in T.grid(2, 5):
            with T.block("B_rf_init"):
                vp_0, v0 = T.axis.remap("SS", [p_0, ax0])
                Y_rf[vp_0, v0] = T.float32(-0.0)
        for p_0, p_1 in T.grid(2, 4):
            with T.block("B_rf"):
                vp_0, vp_1 = T.axis.remap("SR", [p_0, p_1])
                Y_rf[vp_0, R[vp_0 * 4 + vp_1]] = Y_rf[vp_0, R[vp_0 * 4 + vp_1]] + A[vp_0 * 4 + vp_1]
        for ax0, p_0 in T.grid(5, 2):
            with T.block("B"):
                v0, vp_0 = T.axis.remap("SR", [ax0, p_0])
                Y[v0] = Y[v0] + Y_rf[vp_0, v0]

    sch = check(tw.script.from_source(SCATTERED), factor("B", 0, 0), after)
    for block in ("B_rf_init", "B_rf", "B"):  # what one thread adds to is its own
        sch.parallel(sch.get_loops(block)[0])
    with pytest.raises(tw.ScheduleError, match="reduction axis"):
        sch.parallel(sch.get_loops("B")[1])


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("number", [0, 1])
def test_scattered_rows_with_columns(axis, number):
    source = """@T.prim_func
def main(R: T.Buffer((6,), "int32"), A: T.Buffer((6,)), B: T.Buffer((6, 3)), C: T.Buffer((4, 3))):
    T.assume_buffer_domain(R, [0, 4])
    for i, j in T.grid(4, 3):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
    for p_0, j, p_1 in T.grid(2, 3, 4):
        with T.block("sum"):
            vp = T.axis.reduce(6, p_0 * 4 + p_1)
            vj = T.axis.spatial(3, j)
            T.where(p_0 * 4 + p_1 < 6)
            C[R[vp], vj] = C[R[vp], vj] + A[vp] * B[vp, vj]
"""
    sch = check(tw.script.from_source(source), factor("sum", 2 * number, axis))
    shape = [int(extent) for extent in sch.get(sch.get_block("sum_rf")).writes[0].buffer.shape]
    want = [4, 3]
    want.insert(axis if axis >= 0 else axis + 3, (2, 4)[number])
    assert shape == want


#: a matrix in CSC: a column holds several elements, each of some row
COLUMNS = """@T.prim_func
def main(P: T.Buffer((5,), "int32"), I: T.Buffer((9,), "int32"), A: T.Buffer((9,)), X: T.Buffer((4,)),
         Y: T.Buffer((6,))):
    T.assume_buffer_domain(P, [0, 10], order="nondecreasing")
    T.assume_buffer_domain(I, [-1, 6])
    for i in range(6):
        with T.block("zero"):
            vi = T.axis.spatial(6, i)
            Y[vi] = T.float32(0)
    for j_0, j_1 in T.grid(2, 2):
        with T.block("column"):
            vj = T.axis.reduce(4, j_0 * 2 + j_1)
            T.reads(P[0:5], I[0:9], A[0:9], X[vj], Y[0:6])
            T.writes(Y[0:6])
            for p in range(P[vj + 1] - P[vj]):
                with T.block("element"):
                    vp = T.axis.reduce(P[vj + 1] - P[vj], p)
                    if I[P[vj] + vp] >= 0:
                        Y[I[P[vj] + vp]] = Y[I[P[vj] + vp]] BY
"""


def test_a_block_in_which_another_one_scatters():
    source = COLUMNS.replace("BY", "+ A[P[vj] + vp] * X[vj]")

    def transform(sch):
        element = sch.get_block("element")
        partial = sch.rfactor(sch.get_loops("column")[0], 0)
        assert sch.get(sch.get_child_blocks(partial)[0]).same_as(sch.get(element))
        sch.parallel(sch.get_loops(partial)[0])

    sch = check(tw.script.from_source(source), transform)
    pointers, rows = np.array([0, 4, 4, 5, 9], "int32"), np.array([5, 0, -1, 5, 3, 5, 0, 2, 5], "int32")
    values, x = np.arange(1, 10, dtype="float32"), np.array([1, np.nan, -2, 3], "float32")
    want = np.zeros(6, "float32")
    for column in range(4):
        for p in range(pointers[column], pointers[column + 1]):
            want[rows[p]] += values[p] * x[column] if rows[p] >= 0 else 0
    for threads in (1, 2):
        kernel = tw.compile(sch, schedule="as written")
        kernel.threads = threads
        y = np.full(6, np.nan, "float32")
        kernel(pointers, rows, values, x, y)
        np.testing.assert_array_equal(y, want)


def test_elements_to_which_nothing_is_added_keep_their_sign():
    sch = tw.Schedule(tw.script.from_source(SCATTERED))
    sch.rfactor(sch.get_loops("B")[0], 0)
    for target in ("interpreter", "llvm"):
        y = np.array([-0.0, 0.0, np.inf, -0.0, 1], "float32")
        rows = np.array([1, 1, 2, 4, 4, 1, 2, 4], "int32")
        tw.compile(sch, target=target, schedule="as written")(rows, np.ones(8, "float32"), y)
        np.testing.assert_array_equal(y, np.array([-0.0, 3, np.inf, -0.0, 4], "float32"))
        assert np.signbit(y[[0, 3]]).all()


@pytest.mark.parametrize(
    ("program", "axis", "code"),
    [
        (COLUMNS.replace("BY", "+ A[vp] * Y[vj]"), 0, "rfactor/P5"),
        (COLUMNS.replace("BY", "/ A[vp]"), 0, "rfactor/P5"),
        (COLUMNS.replace("BY", "+ A[vp]"), 2, "rfactor/P6"),
        (COLUMNS.replace("BY", "+ A[vp]"), -3, "rfactor/P6"),
    ],
)
def test_scattered_sums_that_are_refused(program, axis, code):
    check_refused(tw.script.from_source(program), factor("column", 0, axis), code)


@pytest.mark.parametrize(("rows", "is_refused"), [(5, True), (6, False)])
def test_all_elements_have_a_value(rows, is_refused):
    """The block that adds the copies reads each element, also those that no step selects."""
    program = tw.script.from_source(f"""@T.prim_func
def main(R: T.Buffer((8,), "int32"), A: T.Buffer((8,)), B: T.Buffer((5,))):
    T.assume_buffer_domain(R, [0, 5])
    Y = T.alloc_buffer((6,))
    for i in range({rows}):
        with T.block("zero"):
            vi = T.axis.spatial({rows}, i)
            Y[vi] = T.float32(0)
    for p in range(8):
        with T.block("sum"):
            vp = T.axis.reduce(8, p)
            Y[R[vp]] = Y[R[vp]] + A[vp]
    for i in range(5):
        with T.block("copy"):
            vi = T.axis.spatial(5, i)
            B[vi] = Y[vi]
""")
    if is_refused:
        check_refused(program, factor("sum", 0, 0), "rfactor/P8")
    else:
        check(program, factor("sum", 0, 0))


def test_an_element_that_data_selects_accumulates():
    source = """@T.prim_func
def main(A: T.Buffer((4, 6), "int32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4, 3), "int32")):
    for i, p in T.grid(4, 6):
        with T.block("B"):
            vi, vp = T.axis.remap("SR", [i, p])
            B[vi, I[vi] % 3] = B[vi, I[vi] % 3] + A[vi, vp]
"""
    rng = np.random.default_rng(0)
    a, at, b = (rng.integers(0, 9, shape).astype("int32") for shape in ((4, 6), 4, (4, 3)))
    want = b.copy()
    want[np.arange(4), at % 3] += a.sum(1)
    transform = lambda sch: sch.rfactor(sch.split(sch.get_loops("B")[1], [2, 3])[0], 0)  # noqa: E731
    for target in ("interpreter", "llvm"):
        sch = tw.Schedule(tw.script.from_source(source))
        transform(sch)
        got = b.copy()
        tw.compile(sch, target=target, schedule="as written")(a, at, got)
        np.testing.assert_array_equal(got, want)
    check(tw.script.from_source(source), transform)  # the index is among the reads of each block
