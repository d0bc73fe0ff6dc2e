"""Decisions of a space: the model's own, or drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tilewright.errors import ScheduleError
from tilewright.schedule import Schedule

_Takes = ParamSpec("_Takes")
_Given = TypeVar("_Given")


class Sampler:
    """Chooses among ways that stand in order, the best known one first.

    Args:
        schedule: where the choices are recorded.
        best: take the first way each time.
    """

    def __init__(self, schedule: Schedule, best: bool) -> None:
        self._schedule = schedule
        self._best = best

    def choose(self, count: int) -> int:
        """The number of a way."""
        if count < 2:
            return 0
        weights = [1 / (1 + way) for way in range(count)]
        chances = [weight / sum(weights) for weight in weights]
        return int(self._schedule.sample_categorical(list(range(count)), chances, decision=0 if self._best else None))


def try_step(step: Callable[_Takes, _Given], *args: _Takes.args, **named: _Takes.kwargs) -> _Given | None:
    """What a step gives; None when the schedule refuses it, which is no reason not to go on without."""
    try:
        return step(*args, **named)
    except ScheduleError:
        return None
