"""How many candidates a task builds or measures.

What Dask does for a task takes about as long as a short build or measurement, and does not depend on how many
candidates the task has.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping

from tilewright.cluster.job import Job

#: A chunk takes about so many seconds. Longer ones would not save much, and other sessions wait for them.
CHUNK_SECONDS = 0.5
#: share of the latest candidate in the means
_SHARE = 0.2


class ChunkSizes:
    """The size of chunks, by what the candidates of a session take."""

    def __init__(self) -> None:
        self._means = {"measuring": 0.0, "building": 0.0}  # seconds of a candidate; 0 before there is one

    def note(self, activity: str, times: Mapping[str, float]) -> None:
        """Update the mean time of a candidate that was measured or built."""
        if (seconds := times.get(activity, 0.0)) > 0.0:
            before = self._means[activity] or seconds
            self._means[activity] = before + _SHARE * (seconds - before)

    def size(self, batch: int, slots: int) -> int:
        """Return how many candidates a chunk has at most: the slots share a batch.

        Args:
            batch: candidates that are sampled at a time.
            slots: kernels that are measured at a time.
        """
        if not self._means["measuring"]:
            return 1
        return max(1, min(int(CHUNK_SECONDS / max(self._means.values())), -(-batch // max(1, slots))))


def next_chunk(queue: deque[Job], size: int, idle: int) -> list[Job]:
    """Take candidates for a task from a queue: of one batch, as the session samples when all of a batch are measured.

    Args:
        queue: candidates that wait.
        size: number of candidates at most.
        idle: slots that have nothing to do. They share what waits. If there are none, only whole chunks are taken: more
            candidates may come until a slot is free.
    """
    if not queue:
        return []
    first = queue[0]
    if first.goes_alone:
        return [queue.popleft()]
    together = list(itertools.takewhile(lambda job: job.batch == first.batch and not job.goes_alone, queue))
    if idle > 0:
        size = min(size, -(-len(together) // idle))
    elif len(together) == len(queue) < size:
        return []
    chunks = -(-len(together) // size)
    return [queue.popleft() for _ in range(-(-len(together) // chunks))]
