"""sch.sparse_fuse: axes that run in one loop."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from tests.sparse_programs import CASES, CSF, SDDMM, STRUCTURES, function

import tilewright as tw
from tilewright.testing import check_same

BY_ROWS = SDDMM.replace("T.sp.fuse(I, J), K", "I, J, K")


def test_the_example() -> None:
    sch = tw.Schedule(function(BY_ROWS))
    i, j, _ = sch.get_sp_iters("sddmm")
    sch.sparse_fuse(i, j)
    check_same(sch.mod["main"], function(SDDMM))
    sch.verify()
    again = tw.Schedule(function(BY_ROWS))
    tw.Trace.from_json(sch.trace.as_json()).apply_to_schedule(again)
    check_same(again.mod, sch.mod)
    sch.lower_sparse_iter()
    sch.verify()
    assert len(sch.get_loops("sddmm0")) == 2


@pytest.mark.parametrize("fused", [(0, 2), (1, 3), (0, 3)])
def test_levels_of_a_tensor(fused: tuple[int, int]) -> None:
    sch = tw.Schedule(function(CSF))
    sch.sparse_fuse(*sch.get_sp_iters("mttkrp")[slice(*fused)])
    sch.lower_sparse_iter()
    sch.verify()
    for structure in STRUCTURES:
        args, output, want = CASES["mttkrp"].make(np.random.default_rng(4), structure)
        args = copy.deepcopy(args)
        tw.compile(sch)(*args)
        np.testing.assert_array_equal(args[output], want)


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ((0,), "sparse_fuse/P1"),
        ((0, 2), "sparse_fuse/P1"),
        ((1, 0), "sparse_fuse/P1"),
        ((1, 2), "sparse_fuse/P2"),
        ((0, 0), "sparse_fuse/P1"),
    ],
)
def test_what_does_not_follow_is_refused(chosen: tuple[int, ...], code: str) -> None:
    sch = tw.Schedule(function(BY_ROWS))
    iters = sch.get_sp_iters("sddmm")
    with pytest.raises(tw.ScheduleError) as caught:
        sch.sparse_fuse(*(iters[place] for place in chosen))
    assert caught.value.code == code
