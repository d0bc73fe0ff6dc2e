"""Standard streams, which a program may have closed or replaced."""

from __future__ import annotations

from typing import Any


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal; False for None (no stream), for a closed one, and for objects that can
    only write."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False
