"""The masks of checks that TVM's scripts name."""

from tilewright.compat.tvm.tir.schedule.state import ScheduleDebugMask, ScheduleState
from tilewright.testing import workloads


def test_masks_are_accepted_by_name():
    for mask in (ScheduleDebugMask.VERIFY_SREF_TREE, ScheduleDebugMask.VERIFY_CACHED_FLAGS):
        assert ScheduleState.make(workloads.matmul(2, 2, 2), debug_mask=mask).mod.functions
    assert [int(mask) for mask in ScheduleDebugMask] == [1, 2]
