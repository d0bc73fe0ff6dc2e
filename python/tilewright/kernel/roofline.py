"""Lower bound on the time of a call, from the limits of this machine or of a device, at which searches stop."""

from __future__ import annotations

from tilewright import _core
from tilewright.kernel.device_roofs import device_roofs
from tilewright.support import machine
from tilewright.support.machine import UNKNOWN_ROOFS
from tilewright.task.task import Task

__all__ = ["roofline_bound"]


def roofline_bound(task: Task, target: _core.Target | None) -> float:
    """Return a lower bound on the seconds of a call, by the measured limits of this machine or of the device.

    Args:
        task: the program, with its operations, its compulsory traffic, and whether caches are cold.
        target: target of the kernels; None for one thread of this processor.

    Returns:
        The bound; 0 if there are no limits, because the device does not exist or does not run the probes.
    """
    if target is not None and machine.is_for_device(target):
        roofs = device_roofs(target) or UNKNOWN_ROOFS
    else:
        roofs = machine.roofs(1 if target is None else target.num_cores)
    work = task.work
    return roofs.binding(work.flops, work.bytes, work.dtype, cold=task.cold).seconds
