"""Resource limits of a block of threads: the smaller of the target's and the device's limits, if there is a device."""

from __future__ import annotations

from typing import NamedTuple

from tilewright import _core


class Limits(NamedTuple):
    """Resource limits of a block.

    Attributes:
        threads: the maximum number of threads.
        shared_bytes: the maximum size of shared memory in bytes.
        atomic_bits: the maximum size of elements that every device of the target updates atomically. Atomic operations
            on 64 bits are extensions of OpenCL.
    """

    threads: int
    shared_bytes: int
    atomic_bits: int


def limits_of(target: _core.Target) -> Limits:
    """Return the limits of a target, or those of this machine's device where they are smaller."""
    # 0: the target does not specify the limit.
    threads, shared = target.max_threads_per_block or 1 << 10, target.max_shared_memory_per_block
    device = _core.opencl_limits() if target.kind == "opencl" else None
    if device is not None:
        threads, shared = min(threads, device[0]), min(shared, device[1])
    return Limits(threads, shared, 32 if target.kind == "opencl" else 64)
