"""For ``dask scheduler --preload tilewright.cluster.preload``: a scheduler on a machine that also measures leaves the
processors of kernels alone. A slice of a kernel does not count when something else ran there meanwhile."""

from __future__ import annotations

from typing import Any

from tilewright.cluster.processors import stay_off_kernels


def dask_setup(scheduler: Any) -> None:
    """Called by Dask when the scheduler starts, on the thread of its loop."""
    del scheduler
    stay_off_kernels()
