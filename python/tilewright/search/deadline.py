"""Ends Python code that does not come back."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator

from tilewright.errors import ResourceError


class _Overdue(BaseException):
    """Raised inside the code that took too long; no `except Exception` of the user's catches it."""


@contextlib.contextmanager
def limit(seconds: float, what: str) -> Iterator[None]:
    """Interrupts the body when it takes longer than `seconds`.

    Works on Python code of the calling thread: a loop is ended between two bytecodes; a call into C is not.

    Raises:
        tilewright.ResourceError: the body was interrupted; `what` says what it was.
    """
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
    except _Overdue:
        error = ResourceError(
            f"{what} within {seconds:g} s and was interrupted\n  hint: look for a loop that does not end"
        )
        error.code = "space/deadline"
        raise error from None
    finally:
        with lock:
            state["running"] = False
        timer.cancel()
