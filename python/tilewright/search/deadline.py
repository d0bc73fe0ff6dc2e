"""Time limits for Python code of users, such as schedule functions, that may not return.

In the main thread, a watcher thread sends a signal whose handler raises; in other threads, it raises by
``PyThreadState_SetAsyncExc``.
"""

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

#: seconds after which code that continued is interrupted again: Python drops an exception that is raised in a callback
#: of the garbage collector
_AGAIN = 0.1
#: maximum factor by which a limit is extended while other programs occupy the processor
_MOST = 4.0
#: a signal that nothing else uses, and that is ignored by default
_SIGNAL = signal.SIGURG


class _Overdue(BaseException):
    """Raised inside of code that exceeds its limit. A BaseException, so that `except Exception` does not catch it."""


def _waited(thread: int) -> float:
    """Return the seconds for which a thread of this process was runnable but not running; 0 if the system does not
    report it."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


class _Limit:
    """The time limit of a body that runs on a thread."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.latest = self.ends + (_MOST - 1) * seconds
        self.thread, self.number = threading.get_ident(), threading.get_native_id()
        self.waited = _waited(self.number)
        self.by_signal = threading.current_thread() is threading.main_thread()
        self.running, self.fired = True, False


class _Watch:
    """The watcher thread, which interrupts bodies that exceed their limits.

    It sleeps until the earliest limit, and ends when there are none. Starting a limit is cheap, since a search sets one
    for each candidate.
    """

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
        """Stop watching a limit; it does not fire afterwards."""
        with self._changed:
            self._limits.discard(limit)

    def _run(self) -> None:
        with self._changed:
            while self._limits:
                now = time.monotonic()
                for limit in [limit for limit in self._limits if limit.ends <= now]:
                    # Time in which other programs occupied the processor does not count.
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
    """Replace the watcher in the child of a fork, which has no watcher thread."""
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
    """Interrupt the body when it takes longer than `seconds`.

    In the main thread, this also interrupts sleeping and waiting; in other threads, only Python code, between two
    bytecodes.

    Args:
        seconds: time limit of the body.
        what: begin of the error message, such as "the function did not return".

    Raises:
        tilewright.ResourceError: the body was interrupted.
    """
    mine = _Limit(seconds)
    try:
        with _by_signal(mine) if mine.by_signal else _by_exception(mine):
            yield
    except _Overdue:
        if not mine.fired:
            raise  # for an enclosing limit
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
            mine.running = False  # the handler ignores this limit from here on
    finally:
        mine.running = False  # again, in case the exception came in the line above
        watch.end(mine)
        with contextlib.suppress(ValueError):  # if the exception of an enclosing limit came before the append
            _in_main_thread.remove(mine)
        signal.signal(_SIGNAL, before)


@contextlib.contextmanager
def _by_exception(mine: _Limit) -> Iterator[None]:
    watch = _watch
    watch.begin(mine)
    try:
        yield
        watch.end(mine)
        if mine.fired:  # the exception is pending: run bytecodes until it is raised here
            for _ in range(1_000_000):
                pass
    finally:
        watch.end(mine)
