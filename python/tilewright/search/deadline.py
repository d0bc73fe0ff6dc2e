"""Ends Python code that does not come back."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator
from typing import Any

from tilewright.errors import ResourceError

#: seconds after which code that went on all the same is interrupted again: an exception in a callback of the garbage
#: collector is dropped by Python
_AGAIN = 0.1
#: which nothing else uses, and which is ignored where nobody asks for it
_SIGNAL = signal.SIGURG


class _Overdue(BaseException):
    """Raised inside the code that took too long; no `except Exception` of the user's catches it."""


@contextlib.contextmanager
def limit(seconds: float, what: str) -> Iterator[None]:
    """Interrupts the body when it takes longer than `seconds`.

    In the main thread also where it sleeps or waits; in another one, Python code alone, between two bytecodes.

    Raises:
        tilewright.ResourceError: the body was interrupted; `what` says what it was.
    """
    by_signal = threading.current_thread() is threading.main_thread()
    interrupted = _by_signal(seconds) if by_signal else _by_exception(seconds)
    try:
        with interrupted:
            yield
    except _Overdue:
        error = ResourceError(
            f"{what} within {seconds:.3g} s and was interrupted\n  hint: look for a loop that does not end"
        )
        error.code = "space/deadline"
        raise error from None


@contextlib.contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    thread, running, over = threading.get_ident(), True, threading.Event()

    def on_signal(number: int, frame: Any) -> None:
        if running:
            raise _Overdue

    def watch() -> None:
        if over.wait(seconds):
            return
        while running:
            signal.pthread_kill(thread, _SIGNAL)
            over.wait(_AGAIN)

    before = signal.signal(_SIGNAL, on_signal)
    watcher = threading.Thread(target=watch, daemon=True)
    try:
        try:
            watcher.start()
            yield
        finally:
            running = False  # from here on the handler does nothing
            over.set()
            watcher.join()
    finally:
        running = False  # also where the exception came just then
        over.set()
        signal.signal(_SIGNAL, before)


@contextlib.contextmanager
def _by_exception(seconds: float) -> Iterator[None]:
    thread = threading.get_ident()
    lock = threading.Lock()
    state = {"running": True, "fired": False}

    def fire() -> None:
        with lock:
            if state["running"]:
                state["fired"] = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Overdue))

    timer = threading.Timer(seconds, fire)
    timer.daemon = True
    timer.start()
    try:
        yield
        with lock:
            state["running"] = False
        if state["fired"]:  # the exception is on its way: let it arrive here
            for _ in range(1_000_000):
                pass
    finally:
        with lock:
            state["running"] = False
        timer.cancel()
