"""Decide which tasks were lost with a worker, why Dask has stopped a task, and which kinds of workers are missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import Any

from tilewright.cluster.connection import is_killed
from tilewright.cluster.job import Chunk

__all__ = ["lost_with", "missing_workers", "why_failed"]


def lost_with(
    worker: str, names: Collection[str], chunks: Mapping[str, Chunk], slots: tuple[int, int]
) -> tuple[list[Chunk], list[Chunk]]:
    """Return the chunks whose tasks were running on a worker that is gone, and those whose tasks may have been.

    A task that crashes its worker immediately has not reported its start, and tasks that ended just before have not
    reported their ends. Workers start tasks in the order of submission, so the first tasks without a report count, as
    many as the worker has slots: those for which a slot was free were surely running.

    Args:
        worker: the address of the worker.
        names: the tasks that were submitted to it and had not finished.
        chunks: the tasks of a search by name.
        slots: how many measuring and building tasks it runs at a time.
    """
    surely_lost = [chunk for chunk in chunks.values() if chunk.worker == worker]
    likely_lost: list[Chunk] = []
    waiting = [chunk for name in names if (chunk := chunks.get(name)) is not None and not chunk.worker]
    for count, builds in zip(slots, (False, True), strict=True):
        free = max(count - sum(chunk.builds == builds for chunk in surely_lost), 0)
        in_order = sorted((chunk for chunk in waiting if chunk.builds == builds), key=lambda chunk: chunk.since)
        surely_lost += in_order[:free]
        likely_lost += in_order[free:count]
    return surely_lost, likely_lost


def why_failed(chunk: Chunk, future: Any, seconds: float) -> str:
    """Return why Dask has stopped a task: "killed" if its worker died, "unbuilt" if the build that it needs failed, or
    the error.

    Args:
        chunk: the task.
        future: its future.
        seconds: maximum seconds to wait for the error.
    """
    try:
        error = future.exception(timeout=seconds)
    except Exception:
        return "error"
    if not is_killed(error):
        return f"error: {error}"
    return "unbuilt" if any(build.is_failed() for build in chunk.needs) else "killed"


def missing_workers(can_build: bool, measuring: Collection[object], key: str, targets: Set[str]) -> str:
    """Return what a search waits for, in words; "" if for no worker.

    Args:
        can_build: whether there is a worker that builds, or nothing to build.
        measuring: the workers that measure for the search.
        key: key of its target.
        targets: keys for which workers measure.
    """
    missing = []
    if not measuring:
        others = " or ".join(repr(target) for target in sorted(targets - {key}))
        missing.append(f"a worker that measures for {key!r}{others and f' (there are some for {others})'}")
    if not can_build:
        missing.append("a worker that builds")
    return " and ".join(missing)
