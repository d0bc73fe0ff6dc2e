"""The masks of checks that TVM's scripts name."""

import pytest

from tilewright.compat.tvm.tir.schedule.state import ScheduleDebugMask, ScheduleState
from tilewright.testing import workloads


@pytest.mark.parametrize(
    ("mask", "number"), [(ScheduleDebugMask.VERIFY_SREF_TREE, 1), (ScheduleDebugMask.VERIFY_CACHED_FLAGS, 2)]
)
def test_masks_are_accepted_by_name(mask, number):
    assert int(mask) == number
    assert len(ScheduleState.make(workloads.matmul(2, 2, 2), debug_mask=mask).mod.functions) == 1
