"""The client of a cluster, and the list of its workers."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import logging
import pickle
import threading
import time
import uuid
import weakref
from collections.abc import Iterator
from typing import Any

from tilewright.cluster import labels, processors, scheduler
from tilewright.cluster.engine import engine
from tilewright.cluster.pump import Pump
from tilewright.errors import ArgumentError, ResourceError

#: seconds until a scheduler has to answer
CONNECT_SECONDS = 10.0
#: seconds of one try to connect again
_RECONNECT_SECONDS = 2.0
#: seconds until a scheduler that is connected has to answer
_ANSWER_SECONDS = 10.0
#: a worker whose heartbeat the scheduler has not seen for so many seconds is silent
SILENT_SECONDS = 15.0
#: seconds between two looks at the workers
_LOOK = 1.0
#: topic of Dask's events about workers that join and leave
_ALL = "all"
#: who listens to that topic of a client, which has one handler for each topic
_LISTENERS: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Cluster]] = weakref.WeakKeyDictionary()


@dataclasses.dataclass
class WorkerFacts:
    """A worker as the scheduler knows it.

    Attributes:
        name: how messages call it.
        host: what identifies the host in its label, or "".
        target: the key of its processor.
        measure, build: its slots; 0 where its versions are others.
        offers: names of its resources.
        last_seen: the scheduler's time of its last heartbeat.
        quiet: seconds for which that did not change. Only time in which the scheduler answered counts: while this
            process or the scheduler is suspended, no worker is silent.
    """

    address: str
    name: str
    host: str
    target: str
    versions: str
    measure: int
    build: int
    last_seen: float
    quiet: float = 0.0
    offers: frozenset[str] = frozenset()

    @property
    def is_silent(self) -> bool:
        """Return whether heartbeats have stopped: the process is suspended, or the network is down."""
        return self.quiet > SILENT_SECONDS


class Cluster:
    """Workers behind a scheduler.

    Args:
        given: its address, "tcp://host:8786" or "tls://host:8786", or a client of ``distributed``.

    Raises:
        tilewright.ArgumentError: it is neither, or no scheduler can have this address.
        tilewright.ResourceError: Dask is not installed; the scheduler does not answer; there are no certificates;
            workers have other versions.
    """

    def __init__(self, given: Any) -> None:
        distributed = engine()
        self.topic = f"tilewright-{uuid.uuid4().hex}"
        self._own = isinstance(given, str)
        if not self._own and not isinstance(given, distributed.Client):
            raise ArgumentError.of(
                "cluster/kind",
                f"cluster is {given!r}; it is the address of a scheduler, or a client of Dask",
                'such as cluster="tcp://host:8786"',
            )
        if not self._own and (given.status != "running" or given.scheduler is None):
            raise ArgumentError.of(
                "cluster/kind", f"the client of Dask is {given.status}", "make a client that is connected"
            )
        if not self._own and given.asynchronous:
            what = "the client of Dask is asynchronous, and a search waits for its results"
            hint = "pass the address of the scheduler; in a coroutine: await asyncio.to_thread(tw.tune, ...)"
            raise ArgumentError.of("cluster/kind", what, hint)
        self.address: str = scheduler.check_address(given) if self._own else given.scheduler.address
        self._security = scheduler.security(self.address) if self._own else given.security
        scheduler.keep_quiet()
        #: advances those who measure here
        self.pump = Pump()
        self._names = itertools.count()
        self._workers: dict[str, WorkerFacts] = {}
        self._slots: dict[str, tuple[int, int]] = {}  # that measure and build, also of workers that have left
        self._called: dict[str, str] = {}  # names, also of workers that have left
        self._looked = self._answered = float("-inf")
        self._lock = threading.RLock()
        self._stream: Any = None  # to the scheduler
        self._connections = 0
        #: since when the scheduler does not answer, though there is a connection; None while it does
        self.silent_since: float | None = None
        self._lone: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self.client: Any = None
        if self._own:
            self._connect(CONNECT_SECONDS)
        else:
            self._take(given)
        try:
            labels.check_versions(self._known(), "this search")
        except BaseException:
            self.close()
            raise

    def new_name(self, what: str) -> str:
        """Return a unique name for a task: Dask treats tasks of the same name as one task.

        Args:
            what: a word; Dask's dashboard groups tasks by what is before the first hexadecimal number.
        """
        return f"{what}-{self.topic.rpartition('-')[2]}-{next(self._names)}"

    def _connect(self, seconds: float) -> None:
        scheduler.find(self.address, seconds, self._security)
        try:
            # Results are bytes: whoever sends something that would have to be unpickled is refused.
            with processors.off_kernels():  # a worker of this machine may be measuring
                client = _client_kind()(
                    self.address,
                    timeout=seconds,
                    deserializers=["msgpack"],
                    set_as_default=False,
                    security=self._security,
                )
        except (OSError, TimeoutError, ValueError, RuntimeError, TypeError) as error:
            raise scheduler.no_scheduler(self.address, error) from None
        self._take(client)

    def _take(self, client: Any) -> None:
        self.client = client
        _ = self.connection

    @property
    def connection(self) -> int:
        """Return the number of the connection to the scheduler.

        Dask's client connects again by itself, and then has lost all futures and subscriptions: the scheduler releases
        the tasks of a client whose connection ends, whether or not it was itself started again.
        """
        with self._lock:
            stream = self.client.scheduler_comm
            if self.is_connected and stream is not None and stream is not self._stream:
                self._stream = stream
                if self._own:
                    stream.comm.allow_offload = False  # it computes the size of each message; ours are small
                self._connections += 1
                self._looked = self._answered = float("-inf")
                self._subscribe()
            return self._connections

    def listen(self, name: str, task: Any) -> None:
        """Have `task.begins(worker)` called when the task of this name does, which belongs to no search here."""
        self._lone[name] = task

    def _let_tasks_fail(self) -> None:
        """Have the scheduler let tasks fail with their workers, see scheduler_plugin.py. One that refuses code gives
        them to other workers by itself, and a search hears of that later."""
        from tilewright.cluster.scheduler_plugin import FailsWithItsWorker

        plugin, method = FailsWithItsWorker(), self.client.scheduler.register_scheduler_plugin
        with contextlib.suppress(Exception):
            self._asked(method, plugin=pickle.dumps(plugin), name=plugin.name, idempotent=True)

    def _subscribe(self) -> None:
        self._let_tasks_fail()
        self.client.subscribe_topic(self.topic, self._on_start)
        _LISTENERS.setdefault(self.client, weakref.WeakSet()).add(self)
        client = weakref.ref(self.client)

        def on_worker(event: tuple[float, Any]) -> None:
            for cluster in list(_LISTENERS.get(client(), ())):
                cluster._on_worker(event[1])

        self.client.subscribe_topic(_ALL, on_worker)

    def _on_start(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if not isinstance(message, dict):
            return
        name, worker = message.get("job"), message.get("worker")
        if not isinstance(name, str) or not isinstance(worker, str):
            return  # a worker may send anything
        if (lone := self._lone.get(name)) is not None:
            lone.begins(worker)
        else:
            self.pump.notify("began", name, worker)

    def _on_worker(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("action") == "remove-worker":
            tasks = [str(key) for key in message.get("processing-tasks") or ()]
            self.pump.notify("removed", message["worker"], tasks, bool(message.get("expected")))

    @property
    def is_connected(self) -> bool:
        """Return whether the client is connected to the scheduler."""
        return bool(self.client.status == "running")

    def reconnect(self) -> bool:
        """Try to reconnect to the scheduler. Return whether that succeeded."""
        with self._lock:
            if self.is_connected:
                return True
            if self.client.status == "connecting":
                return False  # Dask is at it
            with contextlib.suppress(ResourceError):
                self._connect(_RECONNECT_SECONDS)
                self._own = True
                return True
        return False

    def workers(self, *, now: bool = False) -> dict[str, WorkerFacts]:
        """Return the workers that have a label, by address; looked up at most once a second, unless `now`."""
        with self._lock:
            if self.is_connected and (now or time.monotonic() - self._looked > _LOOK):
                self._looked = time.monotonic()
                try:
                    self._look()
                    self.silent_since = None
                except (OSError, TimeoutError, ValueError):
                    self.silent_since = self.silent_since or self._looked
            return dict(self._workers)

    def slots(self, worker: str) -> tuple[int, int]:
        """Return how many tasks a worker measures and builds at a time, also of a worker that has left."""
        return self._slots.get(worker, (1, 1))

    def name(self, worker: str) -> str:
        """Return the name of a worker for messages, also of one that has left."""
        return self._called.get(worker, worker)

    def _look(self) -> None:
        known = self._known()
        now = time.monotonic()
        passed, self._answered = min(now - self._answered, 2 * _LOOK), now
        found = {}
        for address, worker in known.items():
            label = labels.label_of(worker)
            if label is None:
                continue
            before = self._workers.get(address)
            seen = float(worker["last_seen"])
            offers = worker.get("resources") or {}
            target = str(label.get("target", ""))
            found[address] = WorkerFacts(
                address=address,
                name=labels.name_of(address, worker),
                host=str(label.get("machine", "")),
                target=target,
                versions=str(label["versions"]),
                measure=int(offers.get(labels.measures(target), 0)),
                build=int(offers.get(labels.builds(), 0)),
                last_seen=seen,
                offers=frozenset(offers),
                quiet=before.quiet + passed if before is not None and before.last_seen == seen else 0.0,
            )
            self._called[address] = found[address].name
            self._slots[address] = (found[address].measure, found[address].build)
        self._workers = found

    def _known(self) -> dict[str, dict[str, Any]]:
        known: dict[str, dict[str, Any]] = self._asked(self.client.scheduler.identity, n_workers=-1)["workers"]
        return known

    def _asked(self, method: Any, **arguments: Any) -> Any:
        """Return the scheduler's answer.

        Raises:
            OSError: it does not answer.
        """
        seconds = _ANSWER_SECONDS / (1 if self.silent_since is None else 2)  # a search waits meanwhile
        return self.client.sync(method, callback_timeout=seconds, **arguments)

    def processing(self, workers: list[str]) -> set[str]:
        """Return the names of the tasks that workers were given and have not finished.

        Raises:
            OSError: the scheduler does not answer.
        """
        there = self._asked(self.client.scheduler.processing, workers=workers)
        return {str(key) for keys in there.values() for key in keys}

    def holder(self, name: str) -> str:
        """Return the address of the worker that has the result of a task; "" if that is not known."""
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            (worker,) = self._asked(self.client.scheduler.who_has, keys=[name])[name]
            return str(worker)
        return ""

    def unregister(self, worker: str) -> bool:
        """Remove a worker from the scheduler; return whether that succeeded.

        The scheduler recomputes the worker's results on other workers. If the worker resumes, it registers again.
        """
        with contextlib.suppress(OSError, TimeoutError):
            self._asked(self.client.scheduler.unregister, address=worker, stimulus_id=f"silent-{time.time()}")
            with self._lock:
                self._workers.pop(worker, None)
            return True
        return False

    def check_native(self, target: Any) -> None:
        """Check that the target, if it is "native", means one processor for this session and all measuring workers.

        Raises:
            tilewright.ArgumentError: it does not.
        """
        if str(target).split()[:1] != ["native"]:
            return
        own = labels.native_key()
        others = {worker.target for worker in self.workers(now=True).values() if worker.measure} - {own}
        if others:
            raise ArgumentError.of(
                "cluster/native",
                f"target='native' is {own!r} here, and workers of the cluster measure for "
                + ", ".join(map(repr, sorted(others))),
                "name the target whose hosts should measure: "
                + " or ".join(f"target={key!r}" for key in sorted({own, *others})),
            )

    def close(self) -> None:
        """Leave the cluster; a client that was given stays."""
        others = _LISTENERS.get(self.client, weakref.WeakSet())
        others.discard(self)
        with contextlib.suppress(Exception):
            for topic in (self.topic, *([] if others else [_ALL])):
                self.client.unsubscribe_topic(topic)
        if self._own:
            with contextlib.suppress(Exception), _without_errors_of_clients():
                self.client.close(timeout=2)


#: text of the error of a task whose worker was lost, in a client that does not unpickle errors
KILLED = "KilledWorker"


@functools.cache
def _client_kind() -> Any:
    """Return the class of clients that unpickle nothing: Dask's unpickles the errors of tasks, which workers send."""

    class Client(engine().Client):  # type: ignore[misc]  # Dask has no types
        def _handle_task_erred(self, key: Any = None, exception: Any = None, traceback: Any = None) -> None:
            del traceback
            is_killed = isinstance(exception, bytes) and KILLED.encode() in exception
            reason = KILLED if is_killed else "it raised an error, which the log of its worker has"
            super()._handle_task_erred(key=key, exception=reason)

    return Client


def is_killed(error: object) -> bool:
    """Return whether a task failed because its worker, or one that had its inputs, was lost."""
    return isinstance(error, engine().KilledWorker) or str(error) == KILLED


@contextlib.contextmanager
def fails_with_its_worker() -> Iterator[None]:
    """Let tasks that are submitted meanwhile fail when their worker is lost, see scheduler_plugin.py."""
    engine()
    import dask

    from tilewright.cluster.scheduler_plugin import ANNOTATION

    with dask.annotate(**{ANNOTATION: True}):
        yield


@contextlib.contextmanager
def _without_errors_of_clients() -> Iterator[None]:
    """Keep Dask's log quiet while a client is closed: if it was about to connect again, Dask logs the end of that as an
    error with a traceback."""
    logger = logging.getLogger("distributed.client")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
