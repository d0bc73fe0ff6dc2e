"""A plugin of Dask's scheduler: a task whose worker is lost fails at once, and its session decides where it goes.

Without this, Dask gives such a task to the next worker before a search hears of the loss, until four are lost with it.
Dask has one limit for all tasks of a scheduler, ``distributed.scheduler.allowed-failures``. So only tasks with an
annotation of ours begin with as many losses as that limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from distributed import SchedulerPlugin

__all__ = ["ANNOTATION", "FailsWithItsWorker"]

#: annotation of tasks that fail when their worker is lost
ANNOTATION = "tilewright_fails_with_its_worker"


class FailsWithItsWorker(SchedulerPlugin):  # type: ignore[misc]  # Dask has no types
    """Makes annotated tasks fail when their worker is lost. One is enough for all searches."""

    name = "tilewright-fails-with-its-worker"
    idempotent = True

    def update_graph(self, scheduler: Any, *, annotations: Mapping[str, Mapping[Any, Any]], **about: Any) -> None:
        """Use up the allowed failures of annotated tasks. Dask calls this before workers get submitted tasks."""
        del about
        for name in annotations.get(ANNOTATION, ()):
            scheduler.tasks[name].suspicious = scheduler.allowed_failures
