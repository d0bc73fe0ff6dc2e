import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_refused


@T.prim_func
def two_steps(A: T.Buffer((16,)), B: T.Buffer((16,)), C: T.Buffer((16,))):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] * T.float32(2)


@pytest.mark.parametrize("index", [0, "B"])
def test_an_intermediate_result_stays_inside(index):
    sch = tw.Schedule(two_steps)
    sch.match_to_alloc("B", index)
    assert "B_tmp = T.alloc_buffer((16,))" in sch.mod.script()
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.set_scope("B", 0, "local")
    sch.verify()
    again = tw.Schedule(two_steps)
    sch.trace.apply_to_schedule(again)
    tw.ir.assert_structural_equal(again.mod, sch.mod)
    a, b, c = np.arange(16, dtype="float32"), np.full(16, 7, "float32"), np.empty(16, "float32")
    for target in ("interpreter", "native"):
        tw.compile(sch, target)(a, b, c)
        np.testing.assert_array_equal(c, (a + 1) * 2)
        np.testing.assert_array_equal(b, 7)


def test_other_results_are_verified():
    sch = tw.Schedule(two_steps)
    sch.match_to_alloc("B", 0)
    assert sch.verify().elements == 2 * 16  # of C, for two choices of arguments
    sch.unsafe_set_dtype("B", 0, "float16")
    with pytest.raises(tw.ScheduleError, match="does not compute"):
        sch.verify()


@T.prim_func
def reads_first(A: T.Buffer((16,)), B: T.Buffer((16,)), C: T.Buffer((16,))):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi]


@T.prim_func
def bare(A: T.Buffer((16,)), B: T.Buffer((16,)), C: T.Buffer((16,))):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    for i in range(16):
        C[i] = B[i]


@T.prim_func
def allocated(A: T.Buffer((16,)), C: T.Buffer((16,))):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi]


@pytest.mark.parametrize(
    ("program", "index", "code"),
    [
        (two_steps, 1, "match_to_alloc/P1"),
        (allocated, 0, "match_to_alloc/P2"),
        (reads_first, 0, "match_to_alloc/P3"),
        (bare, 0, "match_to_alloc/P3"),
    ],
)
def test_refusals(program, index, code):
    check_refused(program, lambda sch: sch.match_to_alloc("B", index), code)
