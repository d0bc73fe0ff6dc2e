"""Functions that run on a worker. Each takes bytes and returns bytes: errors are returned as data, and a session
unpickles nothing. Build and measure are tasks of their own, so objects go from worker to worker without the session.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright import _core
from tilewright.cluster import labels, processors
from tilewright.cluster.engine import engine
from tilewright.cluster.messages import pack, unpack
from tilewright.cluster.processors import Canceled
from tilewright.cluster.stations import LOOK, STATIONS, Station, result_of
from tilewright.errors import Error, ResourceError

#: seconds that a task waits for processors that other processes of its host use at most
MOST_WAITING = 120.0
#: admits as many measuring tasks of this process as it has slots
_TURNS = processors.Turns()


def hold(data: bytes) -> bytes:
    """Gives back what it is given: Dask keeps it on workers, copies it to others, and makes it again when lost."""
    return data


def _told(error: Error) -> dict[str, Any]:
    """The answer of a task that ended by an error."""
    return {"error": [error.code, error.message or str(error), error.hint]}


def _answers(function: Callable[..., dict[str, Any]]) -> Callable[..., bytes]:
    """A task that gives a map as bytes; what it raises is in it."""

    @functools.wraps(function)
    def task(specification: bytes, *arguments: Any) -> bytes:
        try:
            answer = function(unpack(specification), *arguments)
        except Canceled:
            answer = _told(ResourceError.of("cluster/canceled", "nobody waits for it any more"))
        except Error as error:
            answer = _told(error)
        except Exception as error:
            answer = _told(ResourceError.of("cluster/task", f"{type(error).__name__}: {error}"))
        return pack(answer | {"host": labels.host_text(), "worker": engine().get_worker().address})

    return task


class _Run:
    """The task that runs in this thread."""

    def __init__(self, specification: dict[str, Any]) -> None:
        self._worker = engine().get_worker()
        self._key = self._worker.get_current_task()
        self._specification = specification
        self._begin = time.monotonic()
        self.times: dict[str, float] = {}

    def wanted(self) -> bool:
        """Whether somebody waits for the result: Dask reports canceled tasks and clients that are gone to a
        worker, but does not interrupt what runs."""
        state = self._worker.state.tasks.get(self._key)
        alive = state is not None and state.state not in ("released", "forgotten")
        return alive and not state.state.startswith("cancel")

    def wait(self) -> Callable[[], None]:
        """Called between two looks at a lock."""
        return processors.waiting(MOST_WAITING, self.wanted)

    def has_its_turn(self) -> None:
        """Restart the clock: the time until now was that of another measuring task of this worker."""
        self._begin = time.monotonic()

    def begins(self) -> None:
        """Start the time of the task, and notify the session by an event of Dask's."""
        self.lap("waiting")
        event = {"job": self._specification["job"], "worker": self._worker.address}
        self._worker.log_event(self._specification["topic"], event)

    def lap(self, name: str) -> None:
        """The time since the last call went to this."""
        now = time.monotonic()
        self.times[name] = self.times.get(name, 0.0) + now - self._begin
        self._begin = now


@_answers
def build(specification: dict[str, Any], module: bytes, options: bytes) -> dict[str, Any]:
    """Compiles a lowered module."""
    run = _Run(specification)
    threads = specification["threads"]
    with processors.building(threads, run.wait()), STATIONS.builder(threads, specification["timeout"]) as pipeline:
        run.begins()
        result, code = result_of(pipeline, pipeline.build(module, options), run.wanted)
        run.lap("building")
    return {"result": result, "object": code, "times": run.times}


def submit_build(cluster: Any, module: bytes, options: bytes, threads: int, timeout: float) -> Any:
    """Has a lowered module built; the future of what :func:`build` gives.

    Args:
        cluster: the :class:`~tilewright.cluster.connection.Cluster`.
        module: see :func:`_core.candidate_parts`.
        options: the options of that module.
        threads: number of the kernel's threads, whose processors are not used by the build.
        timeout: seconds that the build may take.
    """
    what = pack({"job": "", "topic": cluster.topic, "threads": threads, "timeout": timeout})
    return cluster.client.submit(build, what, module, options, pure=False, resources={labels.builds(): 1})


@_answers
def measure(
    specification: dict[str, Any], program: bytes, reference: bytes, built: bytes, incumbent: bytes | None
) -> dict[str, Any]:
    """Measure an object, alternately with the incumbent; without `built`, call the reference alone.

    Args:
        specification: `key` is that of the target, `rounding` what results may differ by, ...
        program: what it is called with.
        reference: what :func:`build` returned for the unscheduled program.
        built: what it returned for the candidate.
        incumbent: what it returned for the incumbent.
    """
    candidate = unpack(built) if built else None
    if lost := _lost_build(reference, candidate):
        return lost
    made = {"built_by": [candidate["worker"], candidate["times"]]} if candidate is not None else {}
    if candidate is not None and candidate.get("object") is None:
        return {"result": candidate.get("result"), "times": {}} | made
    run = _Run(specification)
    with _slot(run, specification) as slot:
        run.begins()
        station, fresh = _station(run, specification, slot, program, reference, again=candidate is None)
        answer: dict[str, Any] = {"times": run.times} | made
        if fresh is not None:
            answer["reference"] = fresh
            answer["outputs"] = station.outputs
        if candidate is None:
            answer["object"] = unpack(reference).get("object")
        if candidate is None or ("outputs" in answer and answer["outputs"] is None):
            return answer
        number = station.pipeline.measure(
            candidate["object"],
            station.entry,
            None if incumbent is None else unpack(incumbent).get("object"),
            check_only=specification["check_only"],
            is_baseline=specification["is_baseline"],
        )
        answer["result"] = _measured(run, specification, slot, station, number)
        run.lap("measuring")
    if specification["check_only"] or _core.measured_facts(answer["result"])["contender"]:
        answer["object"] = candidate["object"]  # for the finals
    return answer


@_answers
def finals(specification: dict[str, Any], program: bytes, reference: bytes, kernels: Sequence[bytes]) -> dict[str, Any]:
    """Times kernels against one another.

    Raises:
        tilewright.ResourceError: the reference fails here.
    """
    if lost := _lost_build(reference, None):
        return lost
    run = _Run(specification)
    with _slot(run, specification) as slot:
        run.begins()
        station, fresh = _station(run, specification, slot, program, reference)
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


def _lost_build(reference: bytes, candidate: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the answer of a task one of whose builds did not come to its end, as where its worker ended; else None."""
    for whose, built in (("reference", unpack(reference)), ("candidate", candidate or {})):
        if built.get("error") is not None:
            return {"lost_build": [whose, built["error"][0]], "times": {}}
    return None


@contextlib.contextmanager
def _slot(run: _Run, specification: dict[str, Any]) -> Iterator[int]:
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
    run: _Run, specification: dict[str, Any], slot: int, program: bytes, reference: bytes, *, again: bool = False
) -> tuple[Station, bytes | None]:
    """The station of the program; where it is new, or `again`, its reference is called, and this is the result."""
    station = STATIONS.get(specification["program"], slot, program)
    run.lap("preparing")
    fresh = None
    if station.outputs is None or again:
        written = unpack(reference)
        if written.get("object") is None:
            return station, written.get("result")
        number = station.pipeline.measure(written["object"], station.entry, None, reference=True)
        fresh = _measured(run, specification, slot, station, number)
        run.lap("reference")
        if _core.measured_facts(fresh)["outcome"] == "ok":
            station.outputs = station.pipeline.expected()
        else:
            STATIONS.forget(specification["program"], slot)
    station.loosen(specification["rounding"])
    return station, fresh


def _measured(run: _Run, specification: dict[str, Any], slot: int, station: Station, number: int) -> bytes:
    try:
        with processors.off_kernels():
            return result_of(station.pipeline, number, run.wanted)[0]
    except BaseException:  # canceled, or its helper does not start
        STATIONS.forget(specification["program"], slot)
        raise
