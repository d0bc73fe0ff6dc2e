"""sch.sparse_reorder, and the handles that it takes: sch.get_sp_iters."""

from __future__ import annotations

import pytest
from tests.sparse_programs import CASES, SDDMM, SPMM, function

import tilewright as tw
from tilewright.testing import check_same


def refused(text: str, name: str, order: str, code: str) -> str:
    """The message of a refused order, which names variables by their letters."""
    sch = tw.Schedule(function(text))
    iters = sch.get_sp_iters(name)
    before = sch.mod
    with pytest.raises(tw.ScheduleError) as caught:
        sch.sparse_reorder(*(iters[int(digit)] for digit in order))
    assert caught.value.code == code, str(caught.value)
    assert sch.mod.same_as(before)
    return str(caught.value)


def test_the_example() -> None:
    sch = tw.Schedule(function(SPMM))
    i, j, k = sch.get_sp_iters("spmm")
    sch.sparse_reorder(i, k, j)
    after = SPMM.replace('[I, J, K], "SRS", "spmm") as [i, j, k]', '[I, K, J], "SSR", "spmm") as [i, k, j]')
    check_same(sch.mod["main"], function(after))
    again = tw.Schedule(function(SPMM))
    tw.Trace.from_json(sch.trace.as_json()).apply_to_schedule(again)
    check_same(again.mod, sch.mod)
    sch.sparse_reorder(k, i, j)  # the handles hold
    sch.verify()
    sch.lower_sparse_iter()
    sch.verify()


def test_parents_stay_in_front() -> None:
    assert "stands below 'I'" in refused(SPMM, "spmm", "102", "sparse_reorder/P2")


def test_all_variables_are_named_once() -> None:
    refused(SPMM, "spmm", "01", "sparse_reorder/P1")
    refused(SPMM, "spmm", "011", "sparse_reorder/P1")
    refused(SPMM, "spmm", "", "sparse_reorder/P1")


def test_variables_of_two_iterations_are_refused() -> None:
    sch = tw.Schedule(function(CASES["parts"].text))
    (i, k), (i1, *_) = sch.get_sp_iters("initial"), sch.get_sp_iters("csr")
    with pytest.raises(tw.ScheduleError, match="belongs to another iteration"):
        sch.sparse_reorder(i1, k)
    sch.sparse_reorder(k, i)
    sch.verify()


def test_fused_axes_stay_together() -> None:
    refused(SDDMM, "sddmm", "021", "sparse_reorder/P3")
    sch = tw.Schedule(function(SDDMM))
    i, j, s = sch.get_sp_iters("sddmm")
    sch.sparse_reorder(s, i, j)
    sch.verify()


RECURRENCE = """
def f(x: T.handle, m: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(4)
    X = T.sp.match_buffer(x, (I, J), "float64")
    with T.sp.iteration([I, J], "SS", "walk") as [i, j]:
        X[i, j] = BODY
"""


@pytest.mark.parametrize("body", ["X[i, T.max(j - 1, 0)] + 1.0", "X[j % m, i % 4]"])
def test_a_body_whose_steps_follow_one_another_stays_in_order(body: str) -> None:
    assert "'X' depend on the order" in refused(RECURRENCE.replace("BODY", body), "walk", "10", "sparse_reorder/P4")


def test_handles_end_with_lowering() -> None:
    sch = tw.Schedule(function(SPMM))
    iters = sch.get_sp_iters("spmm")
    with pytest.raises(tw.ScheduleError) as caught:
        sch.split(iters[2], [None, 4])
    assert caught.value.code == "schedule/sparse"
    sch.lower_sparse_iter()
    with pytest.raises(tw.ScheduleError, match="not a variable of an iteration") as caught:
        sch.sparse_reorder(*iters)
    assert caught.value.code == "sparse_reorder/P1"


def test_iterations_are_found_in_functions_by_name() -> None:
    sch = tw.Schedule(tw.ir.Module({"one": function(SPMM), "two": function(SDDMM)}))
    with pytest.raises(tw.ScheduleError, match="does not know which function"):
        sch.get_sp_iters("sddmm")
    assert len(sch.get_sp_iters(sch.get_sparse_iteration("sddmm", "two"))) == 3
    sch.work_on("one")
    with pytest.raises(tw.ScheduleError, match="its iterations are: spmm"):
        sch.get_sp_iters("sddmm")
