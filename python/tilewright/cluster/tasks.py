"""Functions that run on a worker. Each takes bytes and returns bytes: errors are returned as data, and a session
unpickles nothing. Build and measure are tasks of their own, so objects go from worker to worker without the session.
Both take a chunk of candidates, because what Dask does for a task does not depend on their number.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright import _core
from tilewright.cluster import builds, labels, processors
from tilewright.cluster.answers import decoded_build
from tilewright.cluster.engine import engine
from tilewright.cluster.messages import pack, unpack
from tilewright.cluster.processors import Canceled
from tilewright.cluster.stations import LOOK, STATIONS, Station, results_of
from tilewright.errors import Error, ResourceError

#: seconds that a task waits for processors that other processes of its host use at most
MOST_WAITING = 120.0
#: seconds between two events of a task by which the session knows that it is alive
REPORT_SECONDS = 1.0
#: seconds after which an event has left a worker
_SENT_SECONDS = 0.1
#: admits as many measuring tasks of this process as it has slots
_TURNS = processors.Turns()


def hold(data: bytes) -> bytes:
    """Return the argument: as the result of a task, Dask keeps it on workers, copies it, and restores it when lost."""
    return data


def _told(error: Error) -> dict[str, Any]:
    """Return the result of a task that failed with an error."""
    return {"error": [error.code, error.message or str(error), error.hint]}


def _answers(function: Callable[..., dict[str, Any]]) -> Callable[..., bytes]:
    """Return the function as a task, whose result is a dict in bytes. An exception becomes the entry "error"."""

    @functools.wraps(function)
    def task(specification: bytes, *arguments: Any) -> bytes:
        try:
            with processors.off_kernels():
                answer = function(unpack(specification), *arguments)
        except Canceled:
            answer = _told(ResourceError.of("cluster/canceled", "nobody waits for it any more"))
        except Error as error:
            answer = _told(error)
        except Exception as error:
            answer = _told(ResourceError.of("cluster/task", f"{type(error).__name__}: {error}"))
        return pack(answer | {"host": labels.host_text(), "worker": engine().get_worker().address})

    return task


class Run:
    """The task that runs in this thread.

    Args:
        specification: `job` is its name, `topic` that of the events by which it reports, `is_suspect` whether workers
            were lost with it.
    """

    def __init__(self, specification: dict[str, Any]) -> None:
        self._worker = engine().get_worker()
        self._key = self._worker.get_current_task()
        self._specification = specification
        self._begin = self._reported = time.monotonic()
        self.times: dict[str, float] = {}

    def wanted(self) -> bool:
        """Return whether a client still waits for the result. Dask informs a worker of canceled tasks and of clients
        that are gone, but does not interrupt a running task."""
        state = self._worker.state.tasks.get(self._key)
        alive = state is not None and state.state not in ("released", "forgotten")
        return alive and not state.state.startswith("cancel")

    def wait(self) -> Callable[[], None]:
        """Return the function to call between two polls of a lock."""
        return processors.waiting(MOST_WAITING, self.wanted)

    def has_its_turn(self) -> None:
        """Restart the clock: the time until now was that of another measuring task of this worker."""
        self._begin = time.monotonic()

    def begins(self) -> None:
        """Start the time of the task, and notify the session by an event of Dask's."""
        self.lap("waiting")
        self._report()
        if self._specification.get("is_suspect"):  # it may end this worker at once, which others would be blamed for
            time.sleep(_SENT_SECONDS)

    def goes_on(self) -> None:
        """Notify the session, at most once a second, that a candidate of the chunk is done."""
        if time.monotonic() - self._reported > REPORT_SECONDS:
            self._report()

    def _report(self) -> None:
        self._reported = time.monotonic()
        event = {"job": self._specification["job"], "worker": self._worker.address}
        self._worker.log_event(self._specification["topic"], event)

    def lap(self, name: str) -> None:
        """Add the time since the last call to the entry `name`."""
        now = time.monotonic()
        self.times[name] = self.times.get(name, 0.0) + now - self._begin
        self._begin = now

    def take_times(self) -> dict[str, float]:
        """Return where the time went since the last call."""
        times, self.times = self.times, {}
        return times


@_answers
def build(specification: dict[str, Any], modules: Sequence[bytes], options: Sequence[bytes]) -> dict[str, Any]:
    """Compile lowered modules.

    Args:
        specification: `threads` is the number of the kernels' threads, `timeout` the time limit of a build.
        modules: see :func:`_core.candidate_parts`.
        options: those of each module.
    """
    run = Run(specification)
    threads = specification["threads"]
    with processors.building(threads, run.wait()):
        run.begins()
        return {"built": builds.build(list(zip(modules, options, strict=True)), threads, specification["timeout"], run)}


def submit_build(
    cluster: Any, name: str, module: bytes, options: bytes, threads: int, timeout: float, *, is_suspect: bool = False
) -> Any:
    """Submit a task that compiles a lowered module, and return its future: the result of :func:`build`.

    Args:
        cluster: the :class:`~tilewright.cluster.connection.Cluster`.
        name: name of the task.
        module: see :func:`_core.candidate_parts`.
        options: the options of that module.
        threads: number of the kernel's threads, whose processors are not used by the build.
        timeout: seconds that the build may take.
        is_suspect: whether workers were lost with it.
    """
    what = pack({"job": name, "topic": cluster.topic, "threads": threads, "timeout": timeout, "is_suspect": is_suspect})
    return cluster.client.submit(build, what, [module], [options], key=name, pure=False, resources={labels.builds(): 1})


def built_at(built: dict[str, Any], place: int) -> dict[str, Any]:
    """Return the build result of a module of a chunk: its object and the worker that built it, or an error."""
    if built.get("error") is not None:
        return {"error": built["error"]}
    if place >= len(built["built"]):
        return _told(ResourceError.of("cluster/bad-build", f"worker {built['worker']} has built other modules"))
    return dict(built["built"][place]) | {"worker": built["worker"]}


def _built(packed: bytes) -> dict[str, Any]:
    """Return what another worker has built, or an error where that is not the answer of such a task."""
    try:
        return decoded_build(packed)
    except ValueError as error:
        return _told(ResourceError.of("cluster/bad-build", f"these are no objects: {error}"))


@_answers
def measure(
    specification: dict[str, Any], program: bytes, reference: bytes, chunks: Sequence[bytes], incumbent: bytes | None
) -> dict[str, Any]:
    """Measure objects one after the other, alternately with the incumbent; without any, call the reference alone.

    Args:
        specification: `key` is that of the target, `rounding` what results may differ by, `candidates` says where each
            object is: the number of its chunk, its place there, ...; `incumbent` is the place of the incumbent in its
            chunk, ...
        program: what they are called with.
        reference: what :func:`build` returned for the unscheduled program.
        chunks: what it returned for the candidates.
        incumbent: what it returned for the incumbent.
    """
    written = built_at(_built(reference), 0)
    if written.get("error") is not None:
        return {"lost_build": written["error"][0]}
    unpacked = [_built(each) for each in chunks]
    candidates = [built_at(unpacked[each["chunk"]], each["place"]) for each in specification["candidates"]]
    answers = [_without_measuring(candidate) for candidate in candidates]
    answer: dict[str, Any] = {"answers": answers}
    if candidates and not any(candidate.get("object") for candidate in candidates):
        return answer
    beside = None if incumbent is None else built_at(_built(incumbent), specification["incumbent"]).get("object")
    run = Run(specification)
    with _slot(run, specification) as slot:
        run.begins()
        station, fresh = _station(run, specification, slot, program, written, again=not candidates)
        if fresh is not None:
            answer |= {"reference": fresh, "outputs": station.outputs}
        if not candidates:
            return answer | {"object": written.get("object"), "times": run.times}
        if station.outputs is None:
            return answer
        numbers = {}
        for place, (candidate, how) in enumerate(zip(candidates, specification["candidates"], strict=True)):
            if candidate.get("object") is not None:
                other = beside if how["beside"] else None
                options = {name: how[name] for name in ("check_only", "is_baseline")}
                numbers[station.pipeline.measure(candidate["object"], station.entry, other, **options)] = place
        for number, result in _measured(run, specification, slot, station, len(numbers)):
            place = numbers[number]
            run.lap("measuring")
            answers[place] |= {"result": result, "times": run.take_times()}
            run.goes_on()
            if specification["candidates"][place]["check_only"] or _core.measured_facts(result)["contender"]:
                answers[place]["object"] = candidates[place]["object"]  # for the finals
    return answer


def _without_measuring(candidate: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of a candidate that is built: why there is no object, if so, and who built it."""
    if candidate.get("error") is not None:
        return {"lost_build": candidate["error"][0], "times": {}}
    answer = {"times": {}, "built_by": [candidate["worker"], candidate["times"]]}
    return answer if candidate.get("object") is not None else answer | {"result": candidate.get("result")}


@_answers
def finals(specification: dict[str, Any], program: bytes, reference: bytes, kernels: Sequence[bytes]) -> dict[str, Any]:
    """Time kernels in interleaved rounds: the finals of a search.

    Raises:
        tilewright.ResourceError: the reference fails here.
    """
    written = built_at(_built(reference), 0)
    if written.get("error") is not None:
        return {"lost_build": written["error"][0]}
    run = Run(specification)
    with _slot(run, specification) as slot:
        run.begins()
        station, fresh = _station(run, specification, slot, program, written)
        if station.outputs is None:
            why = _core.measured_facts(fresh or b"")["message"]
            raise ResourceError.of("cluster/reference", f"the program as it was written fails there: {why}")
        station.pipeline.begin_finals(list(kernels), [station.entry] * len(kernels), **specification["finals"])
        with processors.off_kernels():
            while (result := station.pipeline.poll_finals(LOOK)) is None:
                if not run.wanted():
                    STATIONS.forget(specification["program"], slot)
                    raise Canceled
        run.lap("measuring")
    seconds, disturbed, error = result
    if error is not None and error[0] == "measure/canceled":  # this worker ends
        raise Canceled
    return {"seconds": seconds, "disturbed": disturbed, "failed": error, "times": run.times}


@contextlib.contextmanager
def _slot(run: Run, specification: dict[str, Any]) -> Iterator[int]:
    """Hold a slot and the processors of a kernel, after checking that this host matches its label. Dask starts the next
    task while one measures, so that it is ready when that one ends.

    Raises:
        tilewright.ResourceError: it is not.
    """
    if specification["key"] != labels.native_key():
        raise ResourceError.of(
            "cluster/wrong-host",
            f"this worker measures for {labels.native_key()!r}, and was asked to for {specification['key']!r}",
        )
    slots = max(1, int(engine().get_worker().state.total_resources.get(labels.measures(labels.native_key()), 1)))
    with _TURNS.turn(slots, run.wanted):
        run.has_its_turn()
        with processors.measuring(specification["threads"], slots, run.wait()) as slot:
            yield slot


def _station(
    run: Run,
    specification: dict[str, Any],
    slot: int,
    program: bytes,
    written: dict[str, Any],
    *,
    again: bool = False,
) -> tuple[Station, bytes | None]:
    """Return the station of the program, and the result of measuring the reference if the station is new or `again`."""
    station = STATIONS.get(specification["program"], slot, program)
    run.lap("preparing")
    fresh = None
    if station.outputs is None or again:
        if written.get("object") is None:
            return station, written.get("result")
        station.pipeline.measure(written["object"], station.entry, None, reference=True)
        ((_, fresh),) = _measured(run, specification, slot, station, 1)
        run.lap("reference")
        if _core.measured_facts(fresh)["outcome"] == "ok":
            station.outputs = station.pipeline.expected()
        else:
            STATIONS.forget(specification["program"], slot)
    station.loosen(specification["rounding"])
    return station, fresh


def _measured(
    run: Run, specification: dict[str, Any], slot: int, station: Station, count: int
) -> Iterator[tuple[int, bytes]]:
    """Yield numbers and results of so many kernels that the station was given."""
    try:
        with processors.off_kernels():
            for number, result, _ in results_of(station.pipeline, count, run.wanted):
                yield number, result
    except BaseException:  # canceled, or its helper does not start
        STATIONS.forget(specification["program"], slot)
        raise
