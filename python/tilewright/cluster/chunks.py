"""Choose how many candidates a Dask task builds or measures.

The overhead of a task in Dask is about as long as a short build or measurement, whatever the number of candidates in
the task.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterable, Mapping

from tilewright.cluster.job import Chunk, Job

#: target duration of a chunk in seconds. A whole batch of short kernels fits into one chunk. Longer chunks would hardly
#: reduce the overhead per task, and would delay other sessions.
CHUNK_SECONDS = 1.0
#: weight of the latest candidate in the moving averages
_SHARE = 0.2


class ChunkSizes:
    """Computes the size of chunks from the durations of a session's candidates."""

    def __init__(self) -> None:
        self._means = {"measuring": 0.0, "building": 0.0}  # seconds of a candidate; 0 before there is one

    def note(self, activity: str, times: Mapping[str, float]) -> None:
        """Update the mean time of a candidate that was measured or built."""
        if (seconds := times.get(activity, 0.0)) > 0.0:
            before = self._means[activity] or seconds
            self._means[activity] = before + _SHARE * (seconds - before)

    def size(self, batch: int, slots: int) -> int:
        """Return the maximum number of candidates of a chunk, such that all slots get a share of a batch.

        Args:
            batch: candidates that are sampled at a time.
            slots: kernels that are measured at a time.
        """
        if not self._means["measuring"]:
            return 1
        return max(1, min(int(CHUNK_SECONDS / max(self._means.values())), -(-batch // max(1, slots))))


def unbuilt_batches(waiting: Iterable[Job], chunks: Iterable[Chunk]) -> set[int]:
    """Return the batches that still have candidates to be built, by number."""
    building = (job for chunk in chunks if chunk.builds for job in chunk.jobs)
    return {job.batch for job in itertools.chain(waiting, building)}


def next_chunk(queue: deque[Job], size: int, idle: int, growing: Collection[int]) -> list[Job]:
    """Remove the candidates of the next task from a queue. They belong to the same batch, because the session samples
    the next batch as soon as all candidates of a batch are measured.

    Args:
        queue: candidates that wait.
        size: number of candidates at most.
        idle: idle slots, which share the waiting candidates. If there are none, only full chunks of growing batches are
            taken, because more candidates may arrive before a slot is free.
        growing: numbers of the batches of which more candidates will be in the queue.
    """
    if not queue:
        return []
    first = queue[0]
    if first.goes_alone:
        return [queue.popleft()]
    together = list(itertools.takewhile(lambda job: job.batch == first.batch and not job.goes_alone, queue))
    if idle > 0:
        size = min(size, -(-len(together) // idle))
    elif len(together) == len(queue) < size and first.batch in growing:
        return []
    chunks = -(-len(together) // size)
    return [queue.popleft() for _ in range(-(-len(together) // chunks))]
