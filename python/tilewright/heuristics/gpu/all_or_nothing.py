"""Steps of a schedule that are applied together or not at all."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.heuristics.sampling import succeeds
from tilewright.schedule import Schedule


def all_or_nothing(schedule: Schedule, steps: Callable[[Schedule], object]) -> bool:
    """Apply steps if the schedule accepts all of them; return whether it does.

    The steps are tried on a copy first, because a partly applied pattern is no valid kernel. Random variables (blocks
    and loops) of the schedule are valid in the copy.
    """
    if not succeeds(steps, schedule.copy()):
        return False
    steps(schedule)
    return True
