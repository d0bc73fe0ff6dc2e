"""When a task of a session ends before its trials are used up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import _core
from tilewright.errors import ArgumentError, Error
from tilewright.kernel.roofline import roofline_bound
from tilewright.meta_schedule.runner.dask_runner import DaskRunner
from tilewright.support import limits
from tilewright.task.task import task_of

__all__ = ["Stops", "stops_of"]


@dataclass(frozen=True)
class Stops:
    """What a session asks of each of its tasks.

    Attributes:
        patience: trials without a faster candidate after which a task ends; None for no limit.
        target_seconds: a call that is fast enough, for all tasks or by their names.
        at_roofline: whether a task ends where its best is within 3 % of what this machine allows.
    """

    patience: int | None = None
    target_seconds: float | Mapping[str, float] | None = None
    at_roofline: bool = False

    def of(self, context: Any, runner: Any) -> _core.StopRules:
        """Return the rules of a task whose candidates are measured by a runner."""
        wanted = self.target_seconds
        target = wanted.get(context.task_name) if isinstance(wanted, Mapping) else wanted
        bound = _bound_of(context, runner) if self.at_roofline else 0.0
        return _core.StopRules(patience=self.patience or 0, target_seconds=target or 0.0, bound_seconds=bound)


def _bound_of(context: Any, runner: Any) -> float:
    """Return the seconds that the limits of this machine leave a call; 0 where they are not known."""
    if isinstance(runner, DaskRunner):  # hosts of a cluster have other limits
        return 0.0
    is_cold = getattr(getattr(runner, "evaluator_config", None), "enable_cpu_cache_flush", False)
    try:
        return roofline_bound(task_of(context.mod, cold=is_cold), context.target)
    except Error:  # such as sizes that are not constant
        return 0.0


def stops_of(patience: Any, target_seconds: Any, at_roofline: Any, names: Sequence[str]) -> Stops:
    """What was asked for, looked at.

    Args:
        patience: see :class:`Stops`.
        target_seconds: a time at which a task ends.
        at_roofline: end a task near the limits of the machine.
        names: of the tasks.

    Raises:
        tilewright.ArgumentError: it makes no sense.
    """
    if patience is not None:
        patience = limits.whole("patience", patience, 1, "it is a number above 0, or None for no limit")
    if isinstance(target_seconds, Mapping):
        if unknown := [str(name) for name in target_seconds if name not in names]:
            raise ArgumentError.of(
                "tune/target-seconds", f"target_seconds names {unknown[0]}", limits.closest(unknown[0], names)
            )
        target_seconds = {name: limits.positive("target_seconds", value) for name, value in target_seconds.items()}
    else:
        target_seconds = limits.positive("target_seconds", target_seconds)
    limits.kind("stop_at_roofline", at_roofline, bool, "True or False")
    return Stops(patience, target_seconds, at_roofline)
