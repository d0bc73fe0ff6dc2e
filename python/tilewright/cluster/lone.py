"""Single tasks outside of a search, for ``DaskBuilder`` and ``DaskRunner``, with retries when a worker is lost."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from tilewright.cluster.connection import Cluster, fails_with_its_worker, is_killed
from tilewright.cluster.deadlines import GRACE
from tilewright.cluster.fetcher import FETCH_SECONDS
from tilewright.cluster.job import MOST_LOST
from tilewright.errors import ResourceError

__all__ = ["LoneTask"]

#: seconds between two checks
_LOOK = 0.5


class LoneTask:
    """A task that is retried on another worker when its worker is lost, until two workers were lost.

    Args:
        cluster: the cluster that runs the task.
        what: a word for the name of the task, see :meth:`Cluster.new_name`.
        submit: function that submits the task and returns its future. Its arguments are the task's name, which the task
            reports when it begins, and whether workers were lost with it before.
        needs: the resource that the worker must offer.
        seconds: time limit of the task, and of waiting for a worker; a grace is added.
    """

    def __init__(
        self, cluster: Cluster, what: str, submit: Callable[[str, bool], Any], needs: str, seconds: float
    ) -> None:
        self._cluster, self._what, self._submit = cluster, what, submit
        self._needs, self._seconds = needs, seconds + GRACE
        self._lost: list[str] = []  # names of workers
        self._likely_lost: list[str] = []  # names of workers that may have run it
        self._canceled = 0  # number of cancellations, by schedulers that were restarted
        self._error: ResourceError | None = None
        self._give()

    def _give(self) -> None:
        """Submit the task to Dask."""
        self._worker = ""  # the worker that runs it
        self._since = time.monotonic()  # when it began; before that, when a suitable worker was last seen
        name = self._cluster.new_name(self._what)
        self._cluster.listen(name, self)
        with fails_with_its_worker():
            self._future = self._submit(name, bool(self._lost or self._likely_lost))

    def begins(self, worker: str) -> None:
        """Start the time limit of the task; called on a thread of Dask's client."""
        self._worker, self._since = worker, time.monotonic()

    def done(self) -> bool:
        """Return whether :meth:`result` returns without waiting."""
        self._look()
        return self._error is not None or bool(self._future.status == "finished")

    def result(self) -> bytes:
        """Wait for the result.

        Raises:
            tilewright.ResourceError: the task exceeds its time limit, workers were lost with it, or no worker offers
                its resource.
        """
        while self._error is None:
            seconds = FETCH_SECONDS if self._future.status == "finished" else _LOOK
            try:
                result: bytes = self._future.result(timeout=seconds)
                return result
            except TimeoutError:
                pass
            except Exception:  # _look() finds the reason
                time.sleep(_LOOK)
            self._look()
        raise self._error

    def _look(self) -> None:
        """Check whether the task has ended, its worker is alive, and its time limit has passed."""
        if self._error is not None:
            return
        if self._cluster.is_connected or self._cluster.reconnect():
            _ = self._cluster.connection  # subscribes to events again after a reconnection
        workers = self._cluster.workers()
        for silent in [each for each in workers.values() if each.is_silent]:
            self._cluster.unregister(silent.address)
        status, now = self._future.status, time.monotonic()
        if status == "error":
            self._take_failure()
        elif status in ("cancelled", "lost") and self._cluster.is_connected:
            self._canceled += 1
            self._give_again("the scheduler has canceled it" if self._canceled > MOST_LOST else "")
        elif not self._worker and self._has_worker():
            self._since = now
        elif now - self._since > self._seconds:
            self._give_up()

    def _has_worker(self) -> bool:
        is_there = self._cluster.is_connected and self._cluster.silent_since is None
        return is_there and any(self._needs in w.offers and not w.is_silent for w in self._cluster.workers().values())

    def _take_failure(self) -> None:
        """Handle a task that Dask has stopped: retry it if its worker is gone."""
        try:
            error = self._future.exception(timeout=FETCH_SECONDS)
        except Exception as unknown:
            error = unknown
        if not is_killed(error):
            self._give_again(f"its worker cannot run it: {error}")
            return
        if self._worker:
            self._lost.append(self._cluster.name(self._worker))
        else:  # it may have crashed the worker before its start was reported
            self._likely_lost.append("a worker that had not begun it")
        lost, likely = len(self._lost), len(self._likely_lost)
        is_to_blame = lost >= MOST_LOST or (lost > 0 and likely > 0) or likely > MOST_LOST
        self._give_again(self._losses() if is_to_blame else "")

    def _losses(self) -> str:
        return f"workers were lost with it: {', '.join([*self._lost, *self._likely_lost])}"

    def _give_again(self, why: str) -> None:
        if why:
            self._error = ResourceError.of("cluster/lost-workers", why, "see the logs of these workers")
        else:
            self._give()

    def _give_up(self) -> None:
        with contextlib.suppress(Exception):
            self._future.cancel()
        if self._worker:
            what = (
                f"worker {self._cluster.name(self._worker)} began it and has sent no result for {self._seconds:.0f} s"
            )
            self._error = ResourceError.of("cluster/late", what, "is it stopped, or its network gone?")
            return
        what = f"there was no worker with {self._needs!r} at {self._cluster.address} for {self._seconds:.0f} s"
        losses = f"; {self._losses()}" if self._lost or self._likely_lost else ""
        hint = "start one with: tilewright worker ADDRESS"
        self._error = ResourceError.of("cluster/no-worker", what + losses, hint)
