"""Ends Python code that does not come back."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from tilewright.errors import ResourceError

#: seconds after which code that went on all the same is interrupted again: an exception in a callback of the garbage
#: collector is dropped by Python
_AGAIN = 0.1
#: times its seconds that code may take where other programs leave it no processor
_MOST = 4.0
#: which nothing else uses, and which is ignored where nobody asks for it
_SIGNAL = signal.SIGURG


class _Overdue(BaseException):
    """Raised inside the code that took too long; no `except Exception` of the user's catches it."""


def _waited(thread: int) -> float:
    """Seconds that a thread of this process was ready to run and got no processor; 0 where the system does not say."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


class _Limit:
    """A body that runs on a thread, and has to be done by some time."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.latest = self.ends + (_MOST - 1) * seconds
        self.thread, self.number = threading.get_ident(), threading.get_native_id()
        self.waited = _waited(self.number)
        self.by_signal = threading.current_thread() is threading.main_thread()
        self.running, self.fired = True, False


class _Watch:
    """A thread that interrupts what is overdue. It sleeps until the first limit that it knows of may be over: a search
    sets one for each candidate, and hardly any ever is. Where it wakes up and none is left, it ends."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._limits: set[_Limit] = set()
        self._wakes = math.inf
        self._thread: threading.Thread | None = None

    def begin(self, limit: _Limit) -> None:
        with self._changed:
            self._limits.add(limit)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tilewright-deadlines", daemon=True)
                self._thread.start()
            elif limit.ends < self._wakes:
                self._changed.notify()

    def end(self, limit: _Limit) -> None:
        """Afterwards it does not fire any more."""
        with self._changed:
            self._limits.discard(limit)

    def _run(self) -> None:
        with self._changed:
            while self._limits:
                now = time.monotonic()
                for limit in [limit for limit in self._limits if limit.ends <= now]:
                    # Time in which other programs had the processor is not the code's own.
                    waited = _waited(limit.number)
                    if not limit.fired and waited > limit.waited and now < limit.latest:
                        limit.ends = min(limit.ends + waited - limit.waited + 1e-3, limit.latest)
                        limit.waited = waited
                        if limit.ends > now:
                            continue
                    self._fire(limit)
                    limit.ends = now + _AGAIN
                self._wakes = min((limit.ends for limit in self._limits), default=now)
                self._changed.wait(self._wakes - now)
            self._thread, self._wakes = None, math.inf

    def _fire(self, limit: _Limit) -> None:
        limit.fired = True
        if limit.by_signal:
            signal.pthread_kill(limit.thread, _SIGNAL)
            return
        self._limits.discard(limit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(limit.thread), ctypes.py_object(_Overdue))


_watch = _Watch()


def _watch_anew() -> None:
    """A process that is a copy of another one has none of its threads."""
    global _watch
    _watch = _Watch()


os.register_at_fork(after_in_child=_watch_anew)

#: limits of the main thread, the innermost last
_in_main_thread: list[_Limit] = []


def _on_signal(number: int, frame: Any) -> None:
    if any(limit.fired and limit.running for limit in _in_main_thread):
        raise _Overdue


@contextlib.contextmanager
def limit(seconds: float, what: str) -> Iterator[None]:
    """Interrupts the body when it takes longer than `seconds`.

    In the main thread also where it sleeps or waits; in another one, Python code alone, between two bytecodes.

    Raises:
        tilewright.ResourceError: the body was interrupted; `what` says what it was.
    """
    mine = _Limit(seconds)
    try:
        with _by_signal(mine) if mine.by_signal else _by_exception(mine):
            yield
    except _Overdue:
        if not mine.fired:
            raise  # it is for the one around
        raise ResourceError.of(
            "space/deadline", f"{what} within {seconds:.3g} s and was interrupted", "look for a loop that does not end"
        ) from None


@contextlib.contextmanager
def _by_signal(mine: _Limit) -> Iterator[None]:
    watch = _watch
    before = signal.signal(_SIGNAL, _on_signal)
    try:
        try:
            _in_main_thread.append(mine)
            watch.begin(mine)
            yield
        finally:
            mine.running = False  # from here on the handler does nothing
    finally:
        mine.running = False  # also where the exception came just then
        watch.end(mine)
        with contextlib.suppress(ValueError):  # where the exception of one around came first
            _in_main_thread.remove(mine)
        signal.signal(_SIGNAL, before)


@contextlib.contextmanager
def _by_exception(mine: _Limit) -> Iterator[None]:
    watch = _watch
    watch.begin(mine)
    try:
        yield
        watch.end(mine)
        if mine.fired:  # the exception is on its way: let it arrive here
            for _ in range(1_000_000):
                pass
    finally:
        watch.end(mine)
