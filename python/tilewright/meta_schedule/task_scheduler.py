"""Task schedulers, under TVM's names: select the task for the next batch of trials.

``task_session.py`` drives the session that all tasks share.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from tilewright.meta_schedule.runner.runner import RunnerResult
from tilewright.meta_schedule.task_session import FAILED_MS, TaskRecord, TaskScheduler
from tilewright.support import limits
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler", "create"]

PyTaskScheduler = TaskScheduler


class RoundRobin(TaskScheduler):
    """Selects one task after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._last = -1

    def next_task_id(self) -> int:
        """Return the next task that has not ended."""
        for task_id in range(len(self.tasks)):
            self.touch_task(task_id)
        for _ in self.tasks:
            self._last = (self._last + 1) % len(self.tasks)
            task = self.tasks[self._last]
            if not task.is_terminated:
                if task.runner_futures is not None:
                    self.join_running_task(self._last)
                    if task.is_terminated:
                        continue
                return self._last
        return -1

    def _forget(self) -> None:
        super()._forget()
        self._last = -1


class GradientBased(TaskScheduler):
    """Selects the most promising task, by the recent decrease of its best time and the possible further decrease.

    Args:
        alpha: weight of the past, between 0 and 1.
        window_size: number of recent batches that count as the past.
        seed: seed for choosing among equally promising tasks; -1 for a random one.
    """

    @suggests_keywords
    def __init__(self, *, alpha: float = 0.2, window_size: int = 3, seed: int = -1) -> None:
        limits.kind("alpha", alpha, numbers.Real, "a number between 0 and 1")
        limits.whole("window_size", window_size, 1)
        limits.whole("seed", seed, -1)
        self.alpha, self.window_size = alpha, window_size
        self._random = np.random.default_rng(None if seed == -1 else seed)
        super().__init__()

    def _forget(self) -> None:
        super()._forget()
        self._history: dict[int, list[float]] = {}
        self._warmed = 0

    def next_task_id(self) -> int:
        """Return each task once, then the task with the largest gradient."""
        while self._warmed < len(self.tasks):
            self._warmed += 1
            if not self.tasks[self._warmed - 1].is_terminated:
                return self._warmed - 1
        if self._warmed == len(self.tasks):
            self._warmed += 1
            for task_id, task in enumerate(self.tasks):
                if task.runner_futures is not None:
                    self.join_running_task(task_id)
        for task_id in range(len(self.tasks)):
            self.touch_task(task_id)
        while alive := [task_id for task_id, task in enumerate(self.tasks) if not task.is_terminated]:
            gradients = [self._gradient(task_id) for task_id in alive]
            if max(gradients) == min(gradients):
                chosen = alive[int(self._random.integers(len(alive)))]
            else:
                chosen = alive[int(np.argmax(gradients))]
            if self.tasks[chosen].runner_futures is not None:
                self.join_running_task(chosen)
            if not self.tasks[chosen].is_terminated:
                return chosen
        return -1

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Wait for the batch of a task, and note its best time."""
        results = super().join_running_task(task_id)
        self._history.setdefault(task_id, []).append(self.tasks[task_id].best_ms)
        return results

    def _gradient(self, task_id: int) -> float:
        history, window = self._history.get(task_id, []), self.window_size
        if not history or history[-1] >= FAILED_MS:
            return -FAILED_MS
        past = (history[-1 - window] - history[-1]) / window if len(history) > window else 0.0
        promise = history[-1] / len(history)
        return self.tasks[task_id].task_weight * (self.alpha * past + (1 - self.alpha) * promise)


_KINDS: dict[str, type[TaskScheduler]] = {"gradient": GradientBased, "round-robin": RoundRobin}


def create(kind: TaskScheduler | str = "gradient", *args: Any, **kwargs: Any) -> TaskScheduler:
    """Return the scheduler of a kind, "gradient" or "round-robin"; an existing scheduler is returned unchanged.

    Raises:
        tilewright.ArgumentError: the kind does not exist.
    """
    if isinstance(kind, TaskScheduler):
        return kind
    return limits.of_kind("task scheduler", kind, _KINDS, "tune/scheduler")(*args, **kwargs)


TaskScheduler.create = create
