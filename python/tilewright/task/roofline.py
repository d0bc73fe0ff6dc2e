"""The limits of this machine as a bound on the time of a call, at which searches stop."""

from __future__ import annotations

from tilewright import _core
from tilewright.support import machine
from tilewright.task.task import Task

__all__ = ["roofline_bound"]


def roofline_bound(task: Task, target: _core.Target | None) -> float:
    """Return the seconds that a call takes at least by the measured limits of this machine.

    Args:
        task: the program, with its operations, its compulsory traffic, and whether caches are cold.
        target: what kernels are compiled for; None for one thread of this processor.

    Returns:
        0 for a device, whose limits are not those of the processor.
    """
    if target is not None and machine.is_for_device(target):
        return 0.0
    work, roofs = task.work, machine.roofs(1 if target is None else target.num_cores)
    return roofs.binding(work.flops, work.bytes, work.dtype, cold=task.cold).seconds
