"""Builds of a chunk of candidates on a worker: by one helper process, and by a guest where kernels would run.

The guest is a second helper process. It builds on the processors that are reserved for kernels while no measurement
runs or waits, as a search on one machine does (``src/search/measure/pipeline_loop.h``). A measurement that comes
meanwhile waits until the build ends, so the guest builds only where builds are short.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.cluster import processors
from tilewright.cluster.stations import STATIONS, results_of

#: a build that is this short in seconds does not delay measurements much
_SHORT = 0.1
#: seconds between two looks whether the processors of kernels are free, which other processes of the host may use
_LOOK = 0.02


def build(modules: Sequence[tuple[bytes, bytes]], threads: int, timeout: float, run: Any) -> list[dict[str, Any]]:
    """Return the result, the object and the seconds of each build.

    Args:
        modules: lowered modules and their options.
        threads: number of the kernels' threads.
        timeout: seconds that a build may take.
        run: the task.

    Raises:
        Canceled: the task was canceled.
    """
    chunk = _Chunk(modules, run)
    with STATIONS.builder(threads, timeout) as pipeline:
        if len(modules) > 1:
            with chunk.guest(threads, timeout):
                chunk.build_on(pipeline)
        chunk.build_on(pipeline)  # also what a guest has given back
    return chunk.built


class _Chunk:
    """Modules that are to be built, and what became of the others."""

    def __init__(self, modules: Sequence[tuple[bytes, bytes]], run: Any) -> None:
        self._todo = deque(enumerate(modules))
        self._run = run
        self._has_ended = False  # or was canceled
        self.built: list[dict[str, Any]] = [{} for _ in modules]

    def build_on(self, pipeline: Any) -> None:
        """Build modules until none is left."""
        while self._build_next(pipeline):
            pass

    def _build_next(self, pipeline: Any) -> bool:
        try:
            place, (module, options) = item = self._todo.popleft()
        except IndexError:
            return False
        begin = time.monotonic()
        try:
            pipeline.build(module, options)
            ((_, result, code),) = results_of(pipeline, 1, self._run.wanted)
        except BaseException:
            self._todo.appendleft(item)
            raise
        passed = time.monotonic() - begin
        STATIONS.build_seconds = passed
        self.built[place] = {"result": result, "object": code, "times": {"building": passed}}
        self._run.goes_on()
        return True

    @contextlib.contextmanager
    def guest(self, threads: int, timeout: float) -> Iterator[None]:
        """Meanwhile, a thread builds on the processors of kernels while they are free."""
        thread = threading.Thread(target=self._be_guest, args=(threads, timeout), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._has_ended = True
            processors.FREED.notify()
            thread.join()

    def _be_guest(self, threads: int, timeout: float) -> None:
        # If a build fails here, the task's own thread builds the module again and reports the error.
        with contextlib.suppress(Exception), processors.off_kernels():
            while self._todo and not self._has_ended:
                count = processors.FREED.count
                if self._has_ended or not (STATIONS.build_seconds < _SHORT and self._build_as_guest(threads, timeout)):
                    processors.FREED.wait(count, _LOOK)

    def _build_as_guest(self, threads: int, timeout: float) -> bool:
        with processors.spare(threads) as free:
            if not free:
                return False
            with STATIONS.builder(threads, timeout, guest=True) as pipeline:
                return self._build_next(pipeline)
