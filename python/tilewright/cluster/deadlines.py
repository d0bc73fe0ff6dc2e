"""Deadlines for the tasks of a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.cluster import tasks
from tilewright.cluster.job import Chunk

__all__ = ["GRACE", "Deadlines"]

#: seconds beyond the time limit of a task after which its worker is considered lost
GRACE = 10.0


class Deadlines:
    """The time limits of one search.

    Args:
        options: options of :class:`_core.PipelineOptions`.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.build: float = options.get("build_timeout", 10.0)  #: seconds of a build
        self._run: float = options.get("run_timeout", 10.0)
        self._reference: float = options.get("reference_timeout", 300.0)
        self._first = 0.0  # seconds of the unscheduled program; 0 before they are known

    def judged(self, first: float) -> None:
        """Take over the seconds of the unscheduled program, as pipelines do (pipeline_events.cc)."""
        self._first = first
        self._run = min(max(self._run, 2 * first), max(1.0, 10 * first))

    def seconds(self, chunk: Chunk, *, is_ready: bool) -> float:
        """Return the seconds after which a task is late that has just begun or gone on with another candidate.

        Args:
            chunk: the task.
            is_ready: whether its worker has run the reference.
        """
        grace = GRACE + (tasks.REPORT_SECONDS if len(chunk.jobs) > 1 else 0.0)
        if chunk.builds:
            return self.build + grace
        first = self._first or self._reference
        prepare = 0.0 if is_ready else 30.0 + min(10 * first + 10.0, self._reference)
        kernels = chunk.jobs[0].kernels
        if kernels is not None:
            budget: float = kernels[1]["budget_seconds"]
            return prepare + 2 * budget + self._run + grace
        return prepare + 2 * self._run + grace
