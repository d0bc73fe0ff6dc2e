"""The activities by which a session on a cluster accounts for its time."""

from __future__ import annotations

import enum
from collections.abc import Collection

from tilewright.cluster.job import Chunk

__all__ = ["Activity", "activity_of"]


class Activity(enum.IntEnum):
    """An index into the seconds of :meth:`ClusterMeasurer.activities`: ``search::Activity`` in its order, then the sum
    over all builds, which overlap."""

    NOTHING = 0
    STARTING = 1
    BUILDING = 2
    REFERENCE = 3
    CHECKING = 4
    MEASURING = 5
    FINALS = 6
    BUILDS = 7


def activity_of(chunks: Collection[Chunk]) -> Activity:
    """Return the activity of a session with these tasks in Dask."""
    running = [chunk for chunk in chunks if chunk.worker]
    measures = [chunk.jobs[0] for chunk in running if not chunk.builds]
    if any(job.kernels is not None for job in measures):
        return Activity.FINALS
    if any(job.reference for job in measures):
        return Activity.REFERENCE
    if measures:
        return Activity.MEASURING
    if running:
        return Activity.BUILDING
    return Activity.STARTING if chunks else Activity.NOTHING
