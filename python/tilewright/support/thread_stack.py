"""Stacks of context managers, one for each thread."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class ThreadStack(threading.local, Generic[T]):
    """The objects whose ``with`` blocks the current thread has entered, the innermost last."""

    def __init__(self) -> None:
        self.items: list[T] = []

    def current(self) -> T | None:
        """Return the innermost object; None if there is none."""
        return self.items[-1] if self.items else None
