"""Occupancy: how many blocks of a kernel a multiprocessor of an NVIDIA GPU holds at the same time.

Source: the tables "Technical specifications per compute capability" of the CUDA C++ programming guide, and the rules of
allocation in the occupancy calculator of the CUDA toolkit.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

__all__ = ["Multiprocessor", "blocks_per_multiprocessor", "multiprocessor_of", "occupancy"]

WARP_THREADS = 32
#: registers of a multiprocessor, and the number that is allocated to a warp at once
REGISTERS, REGISTER_UNIT = 1 << 16, 256
#: the multiprocessor's partitions, each of which holds a warp's registers as a whole
PARTITIONS = 4


class Multiprocessor(NamedTuple):
    """Resources of a multiprocessor, which its blocks share.

    Attributes:
        warps: the maximum number of warps.
        blocks: the maximum number of blocks.
        shared_bytes: bytes of shared memory.
        reserved_bytes: bytes of shared memory that the system takes for each block.
        shared_unit: bytes that are allocated at once.
    """

    warps: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int = 1024
    shared_unit: int = 128


#: by the number of the architecture, as 80 for sm_80
_MULTIPROCESSORS = {
    70: Multiprocessor(64, 32, 96 << 10, 0, 256),
    72: Multiprocessor(64, 32, 96 << 10, 0, 256),
    75: Multiprocessor(32, 16, 64 << 10, 0, 256),
    80: Multiprocessor(64, 32, 164 << 10),
    86: Multiprocessor(48, 16, 100 << 10),
    87: Multiprocessor(48, 16, 164 << 10),
    89: Multiprocessor(48, 24, 100 << 10),
    90: Multiprocessor(64, 32, 228 << 10),
    100: Multiprocessor(64, 32, 228 << 10),
    103: Multiprocessor(64, 32, 228 << 10),
    120: Multiprocessor(48, 24, 100 << 10),
    121: Multiprocessor(48, 24, 100 << 10),
}


def multiprocessor_of(arch: str) -> Multiprocessor | None:
    """Return the resources of a multiprocessor of an architecture such as ``"sm_90a"``; None if it is unknown."""
    found = re.fullmatch(r"sm_(\d+)[a-z]?", arch)
    return _MULTIPROCESSORS.get(int(found[1])) if found else None


def blocks_per_multiprocessor(holder: Multiprocessor, threads: int, registers: int, shared_bytes: int) -> int:
    """Return the number of blocks that are resident on a multiprocessor at once.

    Args:
        holder: the multiprocessor.
        threads: threads of a block.
        registers: registers of a thread.
        shared_bytes: bytes of shared memory of a block.
    """
    warps = math.ceil(threads / WARP_THREADS)
    most = min(holder.blocks, holder.warps // warps)
    if registers:
        of_a_warp = _rounded_up(registers * WARP_THREADS, REGISTER_UNIT)
        most = min(most, REGISTERS // PARTITIONS // of_a_warp * PARTITIONS // warps)
    if shared := _rounded_up(shared_bytes + holder.reserved_bytes, holder.shared_unit):
        most = min(most, holder.shared_bytes // shared)
    return most


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> float | None:
    """Return the theoretical occupancy: resident warps of a kernel, as a fraction of the warps that a multiprocessor
    can hold. None for an unknown architecture.

    Args:
        arch: the architecture, as ``"sm_80"``.
        threads: threads of a block.
        registers: registers of a thread.
        shared_bytes: bytes of shared memory of a block.
    """
    holder = multiprocessor_of(arch)
    if holder is None:
        return None
    blocks = blocks_per_multiprocessor(holder, threads, registers, shared_bytes)
    return blocks * math.ceil(threads / WARP_THREADS) / holder.warps


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
