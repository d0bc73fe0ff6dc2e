"""Conditions that end a task of a session before its trials are used up."""

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
    """Stop conditions of all tasks of a session.

    Attributes:
        patience: number of trials without a faster candidate after which a task ends; None for no limit.
        target_seconds: seconds of a call that are fast enough, for all tasks or by task name.
        at_roofline: whether a task ends when its best candidate is within 3 % of the machine's limit.
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
    """Return the lower bound on the seconds of a call by the limits of this machine; 0 if they are unknown."""
    if isinstance(runner, DaskRunner):  # the limits of cluster hosts differ
        return 0.0
    is_cold = getattr(getattr(runner, "evaluator_config", None), "enable_cpu_cache_flush", False)
    try:
        return roofline_bound(task_of(context.mod, cold=is_cold), context.target)
    except Error:  # as for symbolic sizes
        return 0.0


def stops_of(patience: Any, target_seconds: Any, at_roofline: Any, names: Sequence[str]) -> Stops:
    """Return validated stop conditions.

    Args:
        patience: see :class:`Stops`.
        target_seconds: seconds of a call at which a task ends.
        at_roofline: whether to end a task near the limits of the machine.
        names: names of the tasks.

    Raises:
        tilewright.ArgumentError: a value is invalid.
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
