"""Schedules of lowered sparse programs: loops whose extents are data are split, factored, fused and parallel in any
order."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.sparse_programs import CASES, RAGGED, SPMM, function, make_spmm

import tilewright as tw


def splits(sch: tw.Schedule) -> None:
    sch.split(sch.get_loops("spmm1")[0], [None, 4])


def factors(sch: tw.Schedule) -> None:
    _, inner = sch.split(sch.get_loops("spmm1")[0], [None, 4])
    sch.rfactor(inner, 0)


def parallelizes(sch: tw.Schedule) -> None:
    sch.parallel(sch.get_loops("spmm0")[0])


def binds(sch: tw.Schedule) -> None:
    sch.bind(sch.get_loops("spmm0")[0], "blockIdx.x")


def fuses(sch: tw.Schedule) -> None:
    sch.fuse(*sch.get_loops("spmm1"))


STEPS: list[Callable[[tw.Schedule], None]] = [splits, factors, fuses]
WHO: list[Callable[[tw.Schedule], None]] = [parallelizes, binds]


@pytest.mark.parametrize("first_runs_apart", [False, True])
@pytest.mark.parametrize(("step", "who"), [*itertools.product(STEPS, WHO)])
def test_rows_run_apart_before_and_after_steps_on_their_elements(step: Any, who: Any, first_runs_apart: bool) -> None:
    sch = tw.Schedule(function(SPMM), seed=1)
    sch.lower_sparse_iter()
    for each in (who, step) if first_runs_apart else (step, who):
        each(sch)
    sch.verify()
    args, output, want = make_spmm(np.random.default_rng(2), "random")
    for target in ("interpreter", "native") if who is parallelizes else ("interpreter",):
        given = copy.deepcopy(args)
        tw.compile(sch, target)(*given)
        np.testing.assert_array_equal(given[output], want)


def test_ragged_loops_are_fused_with_a_reduction_of_constant_length() -> None:
    """The init runs in the first of the steps of an element, wherever it is in the fused loop."""
    case = CASES["sddmm of 3 columns by rows"]
    sch = tw.Schedule(function(case.text), seed=1)
    sch.lower_sparse_iter()
    fused = sch.fuse(*sch.get_loops("sddmm1")[-2:])
    tw.ir.verify(sch.mod)
    sch.verify()
    args, output, want = case.make(np.random.default_rng(2), "random")
    for target in ("interpreter", "native"):
        given = copy.deepcopy(args)
        tw.compile(sch, target)(*given)
        np.testing.assert_array_equal(given[output], want)
    sch.split(fused, [None, 3])
    tw.ir.verify(sch.mod)


def ragged_schedule(text: str) -> tw.Schedule:
    sch = tw.Schedule(function(text), seed=1)
    sch.lower_sparse_iter()
    sch.parallel(sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[0])
    return sch


@pytest.mark.parametrize("nnz", [0, 1, 5, 12])
def test_random_ragged_rows_are_no_longer_than_their_axis(nnz: int) -> None:
    """The coordinates of a row of 4 elements would be 0, 1, 2 and 3, and the axis ends before 3."""
    text = RAGGED.replace("(m)", "(4)").replace("(n, nnz)", f"(3, {nnz})")
    sch = ragged_schedule(text.replace(", m: T.int32, n: T.int32, nnz: T.int32", ""))
    assert sch.verify().instances == 2


def test_ragged_rows_that_would_be_longer_than_their_axis_are_refused() -> None:
    text = RAGGED.replace("(m)", "(4)").replace("(n, nnz)", "(3, 13)")
    sch = ragged_schedule(text.replace(", m: T.int32, n: T.int32, nnz: T.int32", ""))
    with pytest.raises(tw.ArgumentError, match="no 'indptr_data' of 5 offsets ends with 13") as caught:
        sch.verify()
    assert caught.value.code == "tune/domain" and caught.value.hint


def test_structures_without_rows_or_elements_are_verified() -> None:
    sch = ragged_schedule(RAGGED)
    for m, nnz in ((0, 0), (5, 0), (5, 15)):
        assert sch.verify(inputs={"m": m, "n": 3, "nnz": nnz}).extent == "full"
    with pytest.raises(tw.ArgumentError, match="a size is at least 0") as caught:
        sch.verify(inputs={"m": -1, "n": 3, "nnz": 0})
    assert caught.value.code == "tune/sizes"
