"""Ctrl-C before a command has begun: while libraries are imported and the command line is read."""

from __future__ import annotations

import os
import signal


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
