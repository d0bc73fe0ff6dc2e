"""Times of what a search for a device found, beside what there was before, in the memory of that device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import timing
from tilewright.heuristics.unscheduled import is_unscheduled
from tilewright.kernel.device import device
from tilewright.kernel.device_roofs import device_roofs
from tilewright.kernel.kernel import Kernel, compile_quietly, kernels_of
from tilewright.support.machine import UNKNOWN_ROOFS, TargetLike
from tilewright.task.arguments import aligned
from tilewright.task.task import Task
from tilewright.timing import KernelCalls, Timing

if TYPE_CHECKING:
    from tilewright.search.result import TuneResult

#: why the program as it was written is not timed on a device: a search runs it on the host, where no loop is bound
NOT_AS_WRITTEN = "the unscheduled program is omitted: it binds no loops to threads, so the device cannot run it"


def heuristic_kernel(task: Task, target: TargetLike) -> Kernel | None:
    """Return the program of a task with its heuristic schedule; None if it has a schedule of its own."""
    if not is_unscheduled(task.program):
        return None
    (kernel,) = kernels_of(compile_quietly(task.program, target, schedule="by rules"))
    return kernel


def times_on_device(
    result: TuneResult, arrays: Mapping[str, Any], others: Mapping[str, Callable[[], object]], *, rounds: int = 15
) -> dict[str, Timing]:
    """Time the best kernel ("best") and the heuristic one, if there is one ("rules"), on the device of a search,
    alternately.

    Arrays stay on the device. A kernel is called several times in a row, and the last call is waited for, so launches
    overlap with kernels. The limits are those of the device; unknown ones have no name.

    Args:
        result: result of the search.
        arrays: its arguments, by name, in main memory.
        others: functions to time alternately with the kernels, by name.
        rounds: how often each is timed.

    Raises:
        tilewright.ResourceError: the device failed.
    """
    task, target = result.task, result.best_record().target
    where = device(target)
    arguments = task.call({name: aligned(array) for name, array in arrays.items()}).values()
    values = [where.array(v) if isinstance(v, np.ndarray) else v for v in arguments]
    kernels = {"best": Kernel(result.kernel), "rules": heuristic_kernel(task, target)}
    calls = {name: KernelCalls(kernel, values) for name, kernel in kernels.items() if kernel is not None}
    for each in calls.values():
        each.seconds_of(1)  # drivers compile at the first launch
    limits = device_roofs(target) or UNKNOWN_ROOFS
    return timing.compare({**calls, **others}, task.work, cold=task.cold, rounds=rounds, limits=limits)
