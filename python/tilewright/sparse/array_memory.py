"""Reuse the memory of freed arrays in conversions, since mapping new pages is slow (`src/runtime/array_memory.h`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tilewright import _core


@contextlib.contextmanager
def kept_array_memory() -> Iterator[None]:
    """Make NumPy allocate the arrays of this thread from blocks of freed arrays.

    Arrays may live longer than the context. They begin at multiples of 64 bytes.
    """
    before = _core.set_array_memory()
    try:
        yield
    finally:
        _core.set_array_memory(before)
