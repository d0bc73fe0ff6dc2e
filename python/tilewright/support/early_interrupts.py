"""Handle Ctrl-C while libraries are imported and the command line is parsed, before a command begins and after it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


def _end_at_once(number: int, frame: object) -> None:
    # Imports drop a KeyboardInterrupt or turn it into another error, and the parser of the command line reports none.
    os.write(2, b"interrupted\n")
    os._exit(130)


def begin() -> None:
    """End the process at Ctrl-C from now on, unless a host program has its own handler."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def end() -> None:
    """Raise KeyboardInterrupt at Ctrl-C again."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def recognized() -> Iterator[None]:
    """Turn errors that Python and libraries made from a Ctrl-C inside this context back into a KeyboardInterrupt.

    During an import, it can be any error: Python 3.11 raises RuntimeError for errors while a class is created.
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
