"""Ctrl-C while libraries are imported and the command line is read: before a command has begun, and behind that."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


def _end_at_once(number: int, frame: object) -> None:
    # Imports drop a KeyboardInterrupt, or make another error of it; and who reads the command line says nothing.
    os.write(2, b"interrupted\n")
    os._exit(130)


def begin() -> None:
    """From now on Ctrl-C ends the process; where a host program has a handler of its own, that stays."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def end() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def recognized() -> Iterator[None]:
    """What Python and libraries made of a Ctrl-C inside is a KeyboardInterrupt again.

    In the middle of an import that is any error: Python 3.11 says RuntimeError for what a class being made raises.
    """
    try:
        yield
    except Exception as error:
        at: BaseException | None = error
        while at is not None and not isinstance(at, KeyboardInterrupt):
            at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
        if at is None:
            raise
        raise KeyboardInterrupt from error
