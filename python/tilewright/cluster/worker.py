"""``tilewright worker``: a Dask worker whose resources and label say what it builds and measures."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import socket
import sys
import time
from typing import Any

from tilewright import _core
from tilewright.cluster import labels, scheduler
from tilewright.cluster.engine import engine
from tilewright.cluster.processors import Measures, stay_off_kernels
from tilewright.cluster.stations import STATIONS
from tilewright.errors import ArgumentError

#: builds at a time by default at most
MOST_BUILDS = 4
#: seconds between two tries to find the scheduler
_RETRY = 1.0
#: seconds until a scheduler has to answer
_ANSWER_SECONDS = 5.0
#: seconds until a worker that is ended is gone, also where the scheduler does not answer: twice at most
_LEAVE_SECONDS = 2.0
#: What Dask does beside the tasks of a worker, a hundred times a second, would disturb what is measured there. Without
#: "offload" it does not compute the size of each message, which was a fifth of a worker's processor time.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
    "distributed.comm.offload": False,
    # A worker that fetches an object from another one that was killed tries to connect for so long: 30 s by default.
    "distributed.comm.timeouts.connect": "5s",
    "logging.distributed": "warning",
}
#: between two looks at which programs sessions still need
_SWEEP = 1.0


def say(text: str) -> None:
    """To who has started the worker."""
    print(text, file=sys.stderr, flush=True)


def be_quiet() -> None:
    """Configure Dask for workers. Dask reads some of it when it is imported.

    Raises:
        tilewright.ResourceError: Dask is not installed.
    """
    with contextlib.suppress(ImportError):
        import dask

        dask.config.set(QUIET)
    engine()


def run(address: str, measure: int | None = None, build: int | None = None, name: str | None = None) -> None:
    """Run a worker of the scheduler at an address until a signal ends it. It waits for a scheduler that is away.

    Args:
        address: such as "tcp://host:8786", or "tls://host:8786" with the certificates of Dask's configuration.
        measure: kernels that are measured at a time; by default one for the first worker of a host, else none.
        build: builds at a time; by default one for each processor that is left, at most four.
        name: name of the worker; by default its address.

    Raises:
        tilewright.ArgumentError: it would do nothing; no scheduler can have this address.
        tilewright.ResourceError: Dask is not installed; another version works there; there are no certificates.
    """
    be_quiet()
    address = scheduler.check_address(address)
    certificates = scheduler.security(address)
    first = Measures()
    why = ""
    if measure is None:
        measure = 1 if first.first else 0
        why = "" if measure else f": process {first.holder} of this host measures, for whatever scheduler"
    if not measure:
        first.close()  # another one may
    if build is None:
        build = min(MOST_BUILDS, len(_core.plan_processors(1)[1]))
    if not measure and not build:
        raise ArgumentError.of(
            "cluster/idle-worker", "a worker with --measure 0 and --build 0 would do nothing", "leave one of them away"
        )
    label = labels.label(measure, build, probe=bool(measure))
    try:
        asyncio.run(_work(address, certificates, measure, build, name, label, why))
    finally:
        STATIONS.close()


async def _work(
    address: str, certificates: Any, measure: int, build: int, name: str | None, label: dict[str, Any], why: str
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    say(f"target of this host: {labels.native_key()}")
    say(f"measures {measure} and builds {build} at a time{why}")
    stopped = asyncio.create_task(stop.wait())
    while not stop.is_set():
        if not await _found(address, certificates, stopped):
            return
        await _work_until_lost(address, certificates, measure, build, name, label, stopped)
        if not stop.is_set():
            say(f"the connection to the scheduler {address} is lost; joins again when it answers")


async def _unless(stopped: asyncio.Task[Any], what: Any) -> bool:
    """Await something unless a signal comes first; return whether it was awaited. What it raises is raised."""
    task = asyncio.ensure_future(what)
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        return False
    task.result()
    return True


async def _found(address: str, certificates: Any, stopped: asyncio.Task[Any]) -> bool:
    """Wait until the scheduler is there. Return false if a signal comes first.

    Raises:
        tilewright.ResourceError: workers of other versions are there.
    """

    async def look() -> None:
        known = await scheduler.identity(address, _ANSWER_SECONDS, certificates, "worker")
        labels.check_versions(known["workers"], "this worker")

    waits = False
    while not stopped.done():
        try:
            return await _unless(stopped, look())
        except OSError as error:
            if not waits:
                say(f"no scheduler answers at {address} ({error}); waiting for it")
            waits = True
            await _unless(stopped, asyncio.sleep(_RETRY))
    return False


async def _work_until_lost(
    address: str,
    certificates: Any,
    measure: int,
    build: int,
    name: str | None,
    label: dict[str, Any],
    stopped: asyncio.Task[Any],
) -> None:
    worker = worker_kind()(
        address,
        # One more thread is for tasks without a slot, such as those that hold descriptions of programs.
        nthreads=round(measure / labels.SHARE) + build + 1,
        name=name,
        resources=labels.resources(measure, build, labels.native_key()),
        startup_information={labels.NAME: functools.partial(_given, label)},
        memory_limit=0,  # large inputs are in helper processes, which have limits of their own
        dashboard=False,
        security=certificates,
        metrics={name: functools.partial(_given, value) for name, value in _shown(measure, build).items()},
    )
    try:
        if not await _unless(stopped, worker):
            return
        stay_off_kernels()  # the loop of events, which wakes up often
        say(f"works as {worker.address} for {address}")
        sweeping = asyncio.create_task(_sweep(worker))
        await _unless(stopped, worker.finished())
        sweeping.cancel()
    except OSError as error:
        say(f"the worker cannot join {address}: {error}")
        await asyncio.sleep(_RETRY)
    except RuntimeError as error:  # Dask's
        cause: BaseException | None = error
        while cause is not None and "name taken" not in str(cause):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise ArgumentError.of(
            "cluster/name", f"a worker of this cluster has the name {name!r}", "give this one another --name"
        ) from None
    finally:
        await asyncio.to_thread(STATIONS.close)  # what runs comes back as canceled
        if stopped.done():
            await _leave(worker)
        await worker.close()


@functools.cache
def worker_kind() -> Any:
    """Return the class of workers that close without waiting for what runs: their stations end that. Dask's waits for
    up to 30 s where it closes a worker itself, such as one that was silent, or whose scheduler is gone."""

    class Worker(engine().Worker):  # type: ignore[misc]  # Dask has no types
        async def close(self, timeout: float = _LEAVE_SECONDS, executor_wait: bool = False, **how: Any) -> Any:
            del executor_wait
            return await super().close(timeout=timeout, executor_wait=False, **how)

    return Worker


async def _leave(worker: Any) -> None:
    """Say that the worker is ended, so that no search takes it for lost with the candidates that it has."""
    with contextlib.suppress(Exception):
        leaving = worker.scheduler.unregister(
            address=worker.address, expected=True, close=False, stimulus_id=f"ended-{time.time()}"
        )
        await asyncio.wait_for(leaving, _LEAVE_SECONDS)


def _shown(measure: int, build: int) -> dict[str, Any]:
    """Return columns for the page of workers in Dask's dashboard."""
    return {"host": socket.gethostname(), "measures": measure, "builds": build}


def _given(value: Any, worker: Any) -> Any:
    return value


async def _sweep(worker: Any) -> None:
    """End the helper processes of programs that no session needs any more."""
    while True:
        await asyncio.sleep(_SWEEP)
        needed = {str(key) for key in worker.data} | {str(key) for key in worker.state.tasks}
        await asyncio.to_thread(STATIONS.sweep, needed.__contains__)
