"""Decisions of a search space: the best expected alternative, or a sampled one."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tilewright.errors import ScheduleError
from tilewright.schedule import Schedule

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Sampler:
    """Choose among alternatives that are ordered by expectation, the best one first.

    Args:
        schedule: schedule that records the decisions.
        best: whether to take the first alternative each time.
    """

    def __init__(self, schedule: Schedule, best: bool) -> None:
        self._schedule = schedule
        self._best = best

    def choose(self, count: int) -> int:
        """Return the index of an alternative; the n-th has a weight of 1 / n."""
        if count < 2:
            return 0
        weights = [1 / (1 + way) for way in range(count)]
        chances = [weight / sum(weights) for weight in weights]
        return int(self._schedule.sample_categorical(list(range(count)), chances, decision=0 if self._best else None))


def try_step(step: Callable[_Arguments, _Result], *args: _Arguments.args, **named: _Arguments.kwargs) -> _Result | None:
    """Return the result of a step, or None if the schedule refuses it; a refused step is omitted."""
    try:
        return step(*args, **named)
    except ScheduleError:
        return None


def succeeds(step: Callable[_Arguments, object], *args: _Arguments.args, **named: _Arguments.kwargs) -> bool:
    """Try a step, and return whether the schedule accepts it."""
    try:
        step(*args, **named)
    except ScheduleError:
        return False
    return True
