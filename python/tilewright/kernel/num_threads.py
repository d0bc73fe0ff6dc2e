"""Number of threads that the parallel loops of all kernels use."""

from __future__ import annotations

from tilewright import _core
from tilewright.support import limits
from tilewright.support.notes import warn_of_threads


def set_num_threads(count: int) -> None:
    """Set the number of threads, including the calling one, that the parallel loops of all kernels use.

    0 restores the default: one per core that this process may use, or ``TILEWRIGHT_NUM_THREADS``.
    """
    limits.kind("count", count, int, "a number of threads, or 0 for the default")
    warn_of_threads(count)
    _core.set_num_threads(count)


def get_num_threads() -> int:
    """Return the number of threads that the parallel loops of kernels use."""
    return _core.get_num_threads()
