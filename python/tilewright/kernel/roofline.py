"""The limits of this machine, or of a device, as a bound on the time of a call, at which searches stop."""

from __future__ import annotations

from tilewright import _core
from tilewright.kernel.device_roofs import device_roofs
from tilewright.support import machine
from tilewright.support.machine import UNKNOWN_ROOFS
from tilewright.task.task import Task

__all__ = ["roofline_bound"]


def roofline_bound(task: Task, target: _core.Target | None) -> float:
    """Return the seconds that a call takes at least by the measured limits of this machine, or of the device.

    Args:
        task: the program, with its operations, its compulsory traffic, and whether caches are cold.
        target: what kernels are compiled for; None for one thread of this processor.

    Returns:
        0 where nothing is known: there is no such device, or it does not run the probes.
    """
    if target is not None and machine.is_for_device(target):
        roofs = device_roofs(target) or UNKNOWN_ROOFS
    else:
        roofs = machine.roofs(1 if target is None else target.num_cores)
    work = task.work
    return roofs.binding(work.flops, work.bytes, work.dtype, cold=task.cold).seconds
