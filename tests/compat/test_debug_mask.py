"""The masks of checks that TVM's scripts name."""

import subprocess
import sys

PROGRAM = """
from tilewright.compat.tvm.tir.schedule.state import ScheduleDebugMask, ScheduleState
from tilewright.testing import workloads

for mask in (ScheduleDebugMask.VERIFY_SREF_TREE, ScheduleDebugMask.VERIFY_CACHED_FLAGS):
    print(int(mask), len(ScheduleState.make(workloads.matmul(2, 2, 2), debug_mask=mask).mod.functions))
"""


def test_masks_are_accepted_by_name():
    """In a process of its own, which the alias layer changes."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "1", "2", "1"]
