"""Caches the helper processes of a worker: one for each program that it measures, and a pool for builds.

A station holds the arguments of one program, the results of its reference, and the measuring helper. It is closed when
Dask drops the description of the program from the worker's memory, because no session needs it any more.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tilewright import _core, ir
from tilewright.cluster.messages import unpack
from tilewright.cluster.processors import Canceled, on_all
from tilewright.task.arguments import kernel_arguments, make_arrays
from tilewright.task.task import task_of

#: seconds between two checks whether a task was canceled
LOOK = 0.1
#: the most programs whose arguments are kept per slot
MOST_STATIONS = 4
#: idle seconds after which a helper process for builds is ended
IDLE_SECONDS = 5.0


class Station:
    """The arguments of one program and the helper that calls its kernels.

    Args:
        program: the description of the program, see :func:`describe <tilewright.cluster.job.describe>`.
    """

    def __init__(self, program: Mapping[str, Any]) -> None:
        module: Any = ir.load_json(program["module"])
        task = task_of(module, program["sizes"], cold=program["cold"])
        inputs = {name: _array(*array) for name, array in program["inputs"].items()}
        initial = make_arrays(task, inputs, program["seed"])
        options = dict(program["options"])
        if steady := options.pop("steady", None):
            options["race"] = _core.RaceRules.steady(*steady)
        self.entry: str = program["entry"]
        self.pipeline = _core.WorkerPipeline(
            arguments=kernel_arguments(task, initial),
            reduction_length=task.reduction_length,
            options=_core.PipelineOptions(
                threads=program["threads"], cold=program["cold"], measures_only=True, **options
            ),
        )
        self.lock = threading.Lock()
        self.outputs: list[bytes] | None = None  #: results of the reference, once it has run here
        self._loosened: set[str] = set()

    def loosen(self, rounding: Mapping[str, float]) -> None:
        """Raise the tolerance of outputs whose differences the session attributes to rounding."""
        for name, absolute in rounding.items():
            if name not in self._loosened:
                self._loosened.add(name)
                self.pipeline.loosen(name, absolute)

    def close(self) -> None:
        """End the helper process. A task that runs is reported as canceled."""
        self.pipeline.close()


def _array(dtype: str, shape: list[int], data: bytes) -> Any:
    from tilewright.support.numpy_dtype import numpy_dtype

    return np.frombuffer(data, numpy_dtype(dtype)).reshape(shape)


class Stations:
    """The stations of this process, and idle helper processes for builds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stations: collections.OrderedDict[tuple[str, int], Station] = collections.OrderedDict()
        #: Idle pipelines for builds, each with the time since when it is idle. The key: threads of kernels, time limit
        #: of a build, and whether the pipeline runs on the processors that are reserved for kernels.
        self._builders: dict[tuple[int, float, bool], list[tuple[float, Any]]] = {}
        self.build_seconds = 0.0  #: duration of the last build

    def get(self, key: str, slot: int, program: bytes) -> Station:
        """Return the station of a program in a slot. The least recently used one is ended if there are too many."""
        with self._lock:
            station = self._stations.pop((key, slot), None)
            ending = []
            if station is None:
                while sum(other == slot for _, other in self._stations) >= MOST_STATIONS:
                    oldest = next(name for name in self._stations if name[1] == slot)
                    ending.append(self._stations.pop(oldest))
        for each in ending:
            each.close()
        if station is None:
            station = Station(unpack(program))  # slow, so without the lock; a slot has one task at a time
        with self._lock:
            self._stations[key, slot] = station
        return station

    def forget(self, key: str, slot: int) -> None:
        """End a station; the next task of the program creates it again."""
        with self._lock:
            station = self._stations.pop((key, slot), None)
        if station is not None:
            station.close()

    def sweep(self, is_needed: Callable[[str], bool]) -> None:
        """End stations of programs that no session needs, and helper processes for builds that are idle."""
        with self._lock:
            gone = [name for name in self._stations if not is_needed(name[0])]
            ending: list[Any] = [self._stations.pop(name) for name in gone]
            old = time.monotonic() - IDLE_SECONDS
            for free in self._builders.values():
                ending += [pipeline for since, pipeline in free if since < old]
            kept = {kind: [each for each in free if each[0] >= old] for kind, free in self._builders.items()}
            self._builders = {kind: free for kind, free in kept.items() if free}
        for each in ending:
            each.close()

    @contextlib.contextmanager
    def builder(self, threads: int, timeout: float, *, guest: bool = False) -> Iterator[Any]:
        """Lend a pipeline for builds; nothing else uses it meanwhile.

        Args:
            threads: number of the kernels' threads.
            timeout: seconds that a build may take.
            guest: whether it builds on the processors that the calling thread is pinned to, instead of all.
        """
        kind = threads, timeout, guest
        with self._lock:
            free = self._builders.get(kind)
            pipeline = free.pop()[1] if free else None
        if pipeline is None:
            options = _core.PipelineOptions(threads=threads, builders=1, builds_only=True, build_timeout=timeout)
            with contextlib.nullcontext() if guest else on_all():
                pipeline = _core.WorkerPipeline(arguments=[], reduction_length=1, options=options)
        try:
            yield pipeline
        except BaseException:
            pipeline.close()
            raise
        with self._lock:
            self._builders.setdefault(kind, []).append((time.monotonic(), pipeline))

    def close(self) -> None:
        """End all helper processes."""
        with self._lock:
            builders = [pipeline for free in self._builders.values() for _, pipeline in free]
            ending: list[Any] = [*self._stations.values(), *builders]
            self._stations.clear()
            self._builders.clear()
        for each in ending:
            each.close()


def results_of(pipeline: Any, count: int, wanted: Callable[[], bool]) -> Iterator[tuple[int, bytes, bytes | None]]:
    """Wait for `count` results of a pipeline, and yield each with its number and the object code.

    Raises:
        Canceled: the task was canceled; the pipeline was closed.
    """
    while count > 0:
        for number, result, code in pipeline.poll(LOOK):
            if _core.measured_facts(result)["outcome"] == "canceled":  # the worker is shutting down
                raise Canceled
            count -= 1
            yield number, result, code
        if count > 0 and not wanted():
            pipeline.close()
            raise Canceled


#: the stations of this process
STATIONS = Stations()
