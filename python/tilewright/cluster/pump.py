"""Event loop of a cluster connection, on its own thread: workers receive tasks while the search thread samples."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from tilewright.cluster import processors

#: seconds between two steps without an event
_POLL_SECONDS = 0.25
#: seconds after a step, so that events of many workers are processed together: at least and at most, and as a share of
#: what a task takes. Workers have another task queued, so a pause far shorter than a task does not make them wait.
_LEAST_PAUSE, _MOST_PAUSE, _SHARE = 0.002, 0.1, 0.1
#: Switch interval of the interpreter (sys.setswitchinterval) while a search runs on a cluster. An answer of a worker
#: passes through several threads, each of which may wait one interval for the thread that samples candidates; with
#: Python's default of 5 ms, these waits add up.
_SWITCH_SECONDS = 5e-4


class _PromptThreads:
    """Shortens the switch interval of the interpreter while a pump of this process is running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users, self._before = 0, 0.0

    def begin(self) -> None:
        """Count a pump that has started."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _SWITCH_SECONDS))

    def end(self) -> None:
        """Count a pump that has ended; restore the previous interval after the last one."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setswitchinterval(self._before)


_PROMPT_THREADS = _PromptThreads()


class Member(Protocol):
    """A search that the pump advances: the measurer of a search on the cluster."""

    task_seconds: float  #: seconds of a typical task

    def take_event(self, event: tuple[Any, ...]) -> None:
        """Process one event."""

    def step(self) -> None:
        """Give tasks to workers that are free."""


class Pump:
    """Searches that share a connection, and the events from the threads of Dask.

    All of their decisions are made under one lock: by the thread of the pump at each event, and by a search that waits
    for its results.
    """

    def __init__(self) -> None:
        #: guards the state of all searches; notified after each step
        self.changed = threading.Condition(threading.RLock())
        #: events, each with the search that it is for; None for all searches
        self.events: SimpleQueue[tuple[object, tuple[Any, ...]]] = SimpleQueue()
        self.members: list[Member] = []
        self._thread: threading.Thread | None = None

    def join(self, member: Member) -> None:
        """Advance a search from now on."""
        with self.changed:
            self.members.append(member)
            if self._thread is None:
                _PROMPT_THREADS.begin()
                self._thread = threading.Thread(target=self._run, name="tilewright-cluster-pump", daemon=True)
                with processors.off_kernels():  # as the thread of Dask's client
                    self._thread.start()

    def notify(self, *event: Any) -> None:
        """Add an event for all searches, if there are any."""
        if self.members:
            self.events.put((None, event))

    def pause_seconds(self) -> float:
        """Return the seconds for which events are collected before they are processed together."""
        with self.changed:
            shortest = min((member.task_seconds for member in self.members), default=0.0)
        return min(max(_SHARE * shortest, _LEAST_PAUSE), _MOST_PAUSE)

    def leave(self, member: Member) -> None:
        """Stop advancing a search. The thread ends when no search is left."""
        ending = None
        with self.changed:
            self.members.remove(member)
            if not self.members:
                ending, self._thread = self._thread, None
        if ending is not None:
            self.events.put((self, ("left",)))  # wakes the thread; no search takes it
            ending.join()
            _PROMPT_THREADS.end()

    def advance(self) -> None:
        """Process all events, and let each search give tasks to workers."""
        with self.changed:
            while True:
                try:
                    self._dispatch(self.events.get_nowait())
                except Empty:
                    break
            for member in list(self.members):
                member.step()
            self.changed.notify_all()

    def _dispatch(self, item: tuple[object, tuple[Any, ...]]) -> None:
        recipient, event = item
        for member in list(self.members):
            if recipient is None or member is recipient:
                member.take_event(event)

    def _run(self) -> None:
        while self._thread is threading.current_thread():  # a newer thread may have replaced this one
            item = None
            with contextlib.suppress(Empty):
                item = self.events.get(timeout=_POLL_SECONDS)
            with self.changed:
                if item is not None:
                    self._dispatch(item)
                self.advance()
            time.sleep(self.pause_seconds())
