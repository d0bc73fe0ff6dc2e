"""Memory of the arrays that conversions make: it stays mapped after they are freed (`src/runtime/array_memory.h`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tilewright import _core


@contextlib.contextmanager
def kept_array_memory() -> Iterator[None]:
    """Let NumPy take the memory of new arrays of this thread from blocks that earlier arrays have left.

    Arrays may live longer than the context. They begin at multiples of 64 bytes.
    """
    before = _core.set_array_memory()
    try:
        yield
    finally:
        _core.set_array_memory(before)
