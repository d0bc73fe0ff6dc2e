"""Fetch results of tasks from workers in batches: one request for tasks that end at about the same time."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import threading
import time
from collections.abc import Callable
from typing import Any

#: time limit in seconds for fetching a batch of results; afterwards each is fetched by itself
_BATCH_SECONDS = 2.0
#: time limit in seconds for fetching a result from a worker
FETCH_SECONDS = 20.0


class Fetcher:
    """Fetches results for one search.

    Args:
        client: returns Dask's client.
        pause: returns the time in seconds for which finished tasks are collected into a batch.
        take: callback with the label of a task, its result or exception, and the address of its worker ("" if
            unknown).
    """

    def __init__(
        self,
        client: Callable[[], Any],
        pause: Callable[[], float],
        take: Callable[[Any, bytes | BaseException, str], None],
    ) -> None:
        self._client, self._pause, self._take = client, pause, take
        self._threads = concurrent.futures.ThreadPoolExecutor(8, thread_name_prefix="tilewright-cluster")
        self._lock = threading.Lock()
        self._finished: list[tuple[Any, Any]] = []  # labels and futures

    def add(self, label: Any, future: Any) -> None:
        """Fetch the result of a finished task."""
        with self._lock:
            self._finished.append((label, future))
            is_first = len(self._finished) == 1
        if is_first:
            self._start(self._fetch_batch)

    def holder(self, future: Any) -> str:
        """Return the address of the worker that has a result; "" if unknown."""
        with contextlib.suppress(Exception):
            (worker,) = self._client().who_has([future])[future.key]
            return str(worker)
        return ""

    def close(self) -> None:
        """Stop, and drop results that were not fetched."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            self._threads.submit(function, *arguments)

    def _fetch_batch(self) -> None:
        time.sleep(self._pause())
        with self._lock:
            batch, self._finished = self._finished, []
        if len(batch) > 1:
            client = self._client()
            try:
                gather = functools.partial(client.gather, [future for _, future in batch], asynchronous=True)
                results = client.sync(gather, callback_timeout=_BATCH_SECONDS)
            except BaseException:  # one result is lost or refused: fetch each by itself
                for label, future in batch:
                    self._start(self._fetch, label, future)
                return
            for (label, _), result in zip(batch, results, strict=True):
                self._take(label, result, "")
        else:
            for label, future in batch:
                self._fetch(label, future)

    def _fetch(self, label: Any, future: Any) -> None:
        worker = ""
        try:
            result = future.result(timeout=FETCH_SECONDS)
        except BaseException as error:
            result = error
            if not isinstance(error, OSError | TimeoutError):
                worker = self.holder(future)
        self._take(label, result, worker)
