"""What a block of threads may use: limits of the device where there is one, within those of the target."""

from __future__ import annotations

from typing import NamedTuple

from tilewright import _core


class Limits(NamedTuple):
    """What a block may use.

    Attributes:
        threads: in a block.
        shared_bytes: memory that its threads share.
    """

    threads: int
    shared_bytes: int


def limits_of(target: _core.Target) -> Limits:
    """Return the limits of a target, and of the device of this machine if that has smaller ones."""
    # A target of 0 leaves the limit open.
    threads, shared = target.max_threads_per_block or 1 << 10, target.max_shared_memory_per_block
    device = _core.opencl_limits() if target.kind == "opencl" else None
    return Limits(threads, shared) if device is None else Limits(min(threads, device[0]), min(shared, device[1]))
