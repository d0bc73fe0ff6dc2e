"""Several steps of a schedule that are taken together or not at all."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.heuristics.cpu.sampling import succeeds
from tilewright.schedule import Schedule


def all_or_nothing(schedule: Schedule, steps: Callable[[Schedule], object]) -> bool:
    """Take steps if the schedule accepts all of them, and return whether it does.

    Half of a pattern is no kernel, so the steps are tried on a copy first. Handles are those of the schedule itself.
    """
    if not succeeds(steps, schedule.copy()):
        return False
    steps(schedule)
    return True
