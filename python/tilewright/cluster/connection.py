"""The client of a cluster, and who works there."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
import uuid
from queue import SimpleQueue
from typing import Any

from tilewright.cluster import labels
from tilewright.cluster.engine import engine
from tilewright.errors import ArgumentError, ResourceError

#: seconds until a scheduler has to answer
CONNECT_SECONDS = 10.0
#: a worker whose heartbeat the scheduler has not seen for so many seconds is silent
SILENT_SECONDS = 10.0
#: seconds between two looks at the workers
_LOOK = 1.0


@dataclasses.dataclass
class WorkerFacts:
    """A worker as the scheduler knows it.

    Attributes:
        name: how messages call it.
        host: that of its label, "" where it has none.
        target: the key of its processor.
        measure, build: its slots; 0 where its versions are others.
        last_seen: the scheduler's time of its last heartbeat.
        changed: our time when that was seen to change.
    """

    address: str
    name: str
    host: str
    target: str
    versions: str
    measure: int
    build: int
    last_seen: float
    changed: float

    @property
    def is_silent(self) -> bool:
        """Whether it has not been heard of for long."""
        return time.monotonic() - self.changed > SILENT_SECONDS


class Cluster:
    """Workers behind a scheduler.

    Args:
        given: its address, "tcp://host:8786" or "tls://host:8786", or a client of ``distributed``.

    Raises:
        tilewright.ArgumentError: it is neither.
        tilewright.ResourceError: Dask is not installed; the scheduler does not answer.
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
        self.address: str = given if self._own else given.scheduler.address
        self._security = None if self._own else given.security
        #: those who measure here; one thread turns them all (measurer.py)
        self.members: list[Any] = []
        #: what happened on threads of Dask: for whom, None for all, and what
        self.events: SimpleQueue[tuple[Any, tuple[Any, ...]]] = SimpleQueue()
        self._workers: dict[str, WorkerFacts] = {}
        self._looked = float("-inf")
        self._lock = threading.RLock()
        self.client: Any = None
        if self._own:
            self._connect()
        else:
            self._take(given)

    def _connect(self) -> None:
        distributed = engine()
        try:
            # Results are bytes: whoever sends something that would have to be unpickled is refused.
            client = distributed.Client(
                self.address,
                timeout=CONNECT_SECONDS,
                deserializers=["msgpack"],
                set_as_default=False,
                **({} if self._security is None else {"security": self._security}),
            )
        except (OSError, TimeoutError, ValueError, RuntimeError, TypeError) as error:
            raise ResourceError.of(
                "cluster/no-scheduler",
                f"no scheduler answers at {self.address}: {error}",
                "start one with: dask scheduler; addresses of TLS begin with tls://",
            ) from None
        self._take(client)

    def _take(self, client: Any) -> None:
        self.client = client
        for topic in (self.topic, "all"):
            client.subscribe_topic(topic, self._on_event)

    def _on_event(self, event: tuple[float, Any]) -> None:
        _, message = event
        if not isinstance(message, dict):
            return
        if "job" in message:
            self.events.put((None, ("began", message["job"], message["worker"])))
        elif message.get("action") == "remove-worker":
            self.events.put((None, ("removed", message["worker"])))

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is there."""
        return bool(self.client.status == "running")

    def reconnect(self) -> bool:
        """Tries to find the scheduler again where it was; whether it is there."""
        with self._lock:
            if self.is_connected:
                return True
            if self.client.status == "connecting":
                return False  # Dask is at it
            with contextlib.suppress(ResourceError):
                self._connect()
                self._own = True
                self._workers.clear()
                return True
        return False

    def workers(self, *, now: bool = False) -> dict[str, WorkerFacts]:
        """Those that have a label, by address; looked up at most once a second, unless `now`."""
        with self._lock:
            if self.is_connected and (now or time.monotonic() - self._looked > _LOOK):
                with contextlib.suppress(OSError, TimeoutError, ValueError):
                    self._look()
            return dict(self._workers)

    def _look(self) -> None:
        known = self.client.scheduler_info()["workers"]
        self._looked = time.monotonic()
        found = {}
        for address, worker in known.items():
            told = labels.label_of(worker)
            if told is None:
                continue
            before = self._workers.get(address)
            seen = float(worker["last_seen"])
            offers = worker.get("resources") or {}
            target = str(told.get("target", ""))
            found[address] = WorkerFacts(
                address=address,
                name=labels.name_of(address, worker),
                host=str(told.get("host", {}).get("host", "")),
                target=target,
                versions=str(told["versions"]),
                measure=int(offers.get(labels.measures(target), 0)),
                build=int(offers.get(labels.builds(), 0)),
                last_seen=seen,
                changed=before.changed if before is not None and before.last_seen == seen else self._looked,
            )
        self._workers = found

    def check_native(self) -> None:
        """That "native" means one processor for this session and all who measure.

        Raises:
            tilewright.ArgumentError: it does not.
        """
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
        """Leaves the cluster; a client that was given stays."""
        with contextlib.suppress(Exception):
            for topic in (self.topic, "all"):
                self.client.unsubscribe_topic(topic)
        if self._own:
            with contextlib.suppress(Exception):
                self.client.close(timeout=2)
