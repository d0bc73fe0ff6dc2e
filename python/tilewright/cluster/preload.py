"""Loaded by ``dask scheduler --preload tilewright.cluster.preload``: keeps a scheduler off the processors on which its
machine measures kernels, and has it look after itself less often. Measurements that another process interrupts are
discarded."""

from __future__ import annotations

from typing import Any

from tilewright.cluster.processors import stay_off_kernels

#: milliseconds between two calls of what Dask otherwise does 50 times and twice a second
_PERIODS = {"tick": 1000, "monitor": 5000}


def dask_setup(scheduler: Any) -> None:
    """Set up the scheduler. Dask calls this when the scheduler starts, on the thread of its event loop."""
    stay_off_kernels()
    for name, period in _PERIODS.items():
        if (callback := scheduler.periodic_callbacks.get(name)) is not None:
            callback.callback_time = period
