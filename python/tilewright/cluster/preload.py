"""Loaded by ``dask scheduler --preload tilewright.cluster.preload``: keeps a scheduler off the processors on which its
machine measures kernels. Measurements that another process interrupts are discarded."""

from __future__ import annotations

from typing import Any

from tilewright.cluster.processors import stay_off_kernels


def dask_setup(scheduler: Any) -> None:
    """Called by Dask when the scheduler starts, on the thread of its loop."""
    del scheduler
    stay_off_kernels()
