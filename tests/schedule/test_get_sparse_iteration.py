"""sch.get_sparse_iteration, and what takes such a handle: get_sp_iters, annotate and unannotate."""

from __future__ import annotations

import pytest
from tests.sparse_programs import CASES, SPMM, function

import tilewright as tw
from tilewright import ir
from tilewright.testing import check_same, workloads


def replayed(sch: tw.Schedule, text: str) -> None:
    again = tw.Schedule(function(text))
    tw.Trace.from_json(sch.trace.as_json()).apply_to_schedule(again)
    check_same(again.mod, sch.mod)


def test_the_example() -> None:
    sch = tw.Schedule(function(SPMM))
    spmm = sch.get_sparse_iteration("spmm")
    assert repr(spmm) == "Iteration(spmm)"
    i, j, k = sch.get_sp_iters(spmm)
    assert repr(k) == "Loop(k of iteration spmm)"
    sch.sparse_reorder(i, k, j)
    assert repr(spmm) == "Iteration(spmm)"  # the handle holds
    assert [repr(each) for each in sch.get_sp_iters(spmm)] == [repr(each) for each in (i, k, j)]
    replayed(sch, SPMM)
    script = sch.trace.as_python()
    assert script[0].startswith('b0 = sch.get_sparse_iteration(name="spmm"')


def test_a_name_stands_for_the_iteration() -> None:
    sch = tw.Schedule(function(SPMM))
    assert len(sch.get_sp_iters("spmm")) == 3
    assert [step.kind.name for step in sch.trace.insts] == ["GetSparseIteration", "GetSpIters"]
    with pytest.raises(tw.ScheduleError, match="its iterations are: spmm") as caught:
        sch.get_sp_iters("other")
    assert caught.value.code == "get_sparse_iteration/P2"


def test_annotations_become_those_of_the_blocks() -> None:
    sch = tw.Schedule(function(SPMM))
    spmm = sch.get_sparse_iteration("spmm")
    sch.annotate(spmm, "user.key", 3)
    sch.annotate(spmm, "gone", 1)
    sch.unannotate(spmm, "gone")
    sch.verify()
    replayed(sch, SPMM)
    want = SPMM.replace("as [i, j, k]:\n", 'as [i, j, k]:\n        T.sp.iteration_attr({"user.key": 3})\n')
    check_same(sch.mod["main"], function(want))
    with pytest.raises(tw.ScheduleError, match="the iteration 'spmm' already has") as caught:
        sch.annotate(spmm, "user.key", 4)
    assert caught.value.code == "annotate/P1"
    with pytest.raises(tw.ScheduleError, match="its annotations are: user") as caught:
        sch.unannotate(spmm, "gone")
    assert caught.value.code == "unannotate/P1"
    sch.lower_sparse_iter()
    for name in ("spmm0", "spmm1"):
        block = sch.get(sch.get_block(name))
        assert isinstance(block, ir.Block) and int(block.annotations["user.key"]) == 3


def test_handles_end_with_lowering() -> None:
    sch = tw.Schedule(function(SPMM))
    spmm = sch.get_sparse_iteration("spmm")
    sch.lower_sparse_iter()
    assert repr(spmm) == "Block(spmm, expired)"
    for step in (lambda: sch.get_sp_iters(spmm), lambda: sch.annotate(spmm, "key", 1)):
        with pytest.raises(tw.ScheduleError, match="the iteration 'spmm' is no longer in the program"):
            step()
    with pytest.raises(tw.ScheduleError) as caught:
        sch.get_sp_iters(spmm)
    assert caught.value.code == "get_sp_iters/P1"
    with pytest.raises(tw.ScheduleError, match="block 'spmm0' is not an iteration") as caught:
        sch.get_sp_iters("spmm0")
    with pytest.raises(tw.ScheduleError, match="lowered already") as caught:
        sch.get_sparse_iteration("spmm")
    assert caught.value.code == "get_sparse_iteration/P2"
    with pytest.raises(tw.ScheduleError, match="block 'spmm' is no longer in the program"):
        sch.compute_inline(spmm)


def test_other_steps_refuse_iterations() -> None:
    sch = tw.Schedule(function(SPMM))
    with pytest.raises(tw.ScheduleError) as caught:
        sch.compute_inline("spmm")
    assert caught.value.code == "schedule/sparse"


def test_iterations_are_told_apart() -> None:
    sch = tw.Schedule(function(CASES["parts"].text))
    first, other = sch.get_sparse_iteration("initial"), sch.get_sparse_iteration("csr")
    assert not first.same_as(other)
    assert [repr(sch.get_sp_iters(each)[0]) for each in (first, other)] == [
        "Loop(i of iteration initial)",
        "Loop(i of iteration csr)",
    ]


ONCE = """
def f(x: T.handle):
    I = T.sp.dense_fixed(4)
    X = T.sp.match_buffer(x, (I,), "float64")
    with T.sp.iteration([], "", "once"):
        X[1] = 2.0
    with T.sp.iteration([I], "S", "same") as [i]:
        X[i] = X[i] + 1.0
    with T.sp.iteration([I], "S", "same") as [i]:
        X[i] = X[i] + 1.0
"""


def test_refusals() -> None:
    sch = tw.Schedule(function(ONCE))
    for name, text in (("same", "has 2 iterations"), ("once", "has no variables")):
        with pytest.raises(tw.ScheduleError, match=text) as caught:
            sch.get_sparse_iteration(name)
        assert caught.value.code == "get_sparse_iteration/P2"
    two = tw.Schedule(ir.IRModule({"f": function(SPMM), "g": workloads.transpose(4, 6)}))
    with pytest.raises(tw.ScheduleError, match="does not know which function") as caught:
        two.get_sparse_iteration("spmm")
    assert caught.value.code == "get_sparse_iteration/P1"
    assert len(two.get_sp_iters(two.get_sparse_iteration("spmm", "f"))) == 3


@pytest.mark.parametrize("name", ["spmm0", "spmm1", "spmm_init"])
def test_blocks_of_an_iteration_that_is_not_lowered_yet(name: str) -> None:
    with pytest.raises(tw.ScheduleError, match="that is not lowered yet") as caught:
        tw.Schedule(function(SPMM)).get_loops(name)
    assert caught.value.code == "get_sparse_iteration/P2" and "sch.lower_sparse_iter()" in str(caught.value.hint)


def test_get_returns_the_node() -> None:
    sch = tw.Schedule(function(SPMM))
    spmm = sch.get_sparse_iteration("spmm")
    iters = sch.get_sp_iters(spmm)
    i, j, k = iters
    node = sch.get(spmm)
    assert isinstance(node, ir.SparseIteration) and node.name_hint == "spmm"
    assert [sch.get(each).var.name for each in iters] == ["i", "j", "k"]
    sch.sparse_reorder(i, k, j)
    assert [each.var.name for each in sch.get(spmm).iter_vars] == ["i", "k", "j"]
    assert all(sch.get(each).same_as(own) for each, own in zip((i, k, j), sch.get(spmm).iter_vars, strict=True))
    sch.annotate(spmm, "user.key", 3)
    assert int(sch.get(spmm).annotations["user.key"]) == 3
    sch.lower_sparse_iter()
    with pytest.raises(tw.ScheduleError, match="the iteration 'spmm' is no longer in the program") as caught:
        sch.get(spmm)
    assert caught.value.code == "schedule/expired"
    with pytest.raises(tw.ScheduleError, match="loop 'i' is no longer in the program"):
        sch.get(i)
