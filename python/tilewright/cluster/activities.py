"""The activities by which a session on a cluster accounts for its time."""

from __future__ import annotations

import enum

__all__ = ["Activity"]


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
