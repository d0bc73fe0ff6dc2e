"""Ctrl-C while a search runs ends it at a place that suits it, and not in the middle of a line of output."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Record of the first Ctrl-C in a ``with`` statement; the second one raises KeyboardInterrupt as usual.

    Attributes:
        seen: whether there was an interrupt.
    """

    def __init__(self) -> None:
        self.seen = False
        self._raises = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        # Other threads get no signals, and a host program's own handler is its own business.
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Also where it is raised: in a callback of the garbage collector, Python would drop the exception.
        raises = self.seen or self._raises
        self.seen = True
        if raises:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was an interrupt."""
        if self.seen:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """Raise KeyboardInterrupt also at the first interrupt, inside the ``with`` statement: for the user's code."""
        before, self._raises = self._raises, True
        try:
            yield
        finally:
            self._raises = before

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer the KeyboardInterrupt of the first interrupt to the end of the ``with`` statement, for work that must
        not be half done."""
        raises, self._raises = self._raises, False
        seen = self.seen
        try:
            yield
        finally:
            self._raises = raises
        if raises and self.seen and not seen:
            raise KeyboardInterrupt
