"""Occupancy: how many blocks of a kernel a multiprocessor of an NVIDIA GPU holds at the same time."""

from __future__ import annotations

from tilewright import _core

__all__ = ["blocks_per_multiprocessor", "occupancy"]


def blocks_per_multiprocessor(arch: str, threads: int, registers: int, shared_bytes: int) -> int | None:
    """Return the number of blocks that are resident on a multiprocessor at once; None for an unknown architecture.

    Args:
        arch: the architecture, as ``"sm_80"``.
        threads: threads of a block.
        registers: registers of a thread.
        shared_bytes: bytes of shared memory of a block.
    """
    found: tuple[int, float] | None = _core.occupancy(arch, threads, registers, shared_bytes)
    return None if found is None else found[0]


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> float | None:
    """Return the theoretical occupancy: resident warps of a kernel, as a fraction of the warps that a multiprocessor
    can hold. None for an unknown architecture.

    Args:
        arch: the architecture, as ``"sm_80"``.
        threads: threads of a block.
        registers: registers of a thread.
        shared_bytes: bytes of shared memory of a block.
    """
    found: tuple[int, float] | None = _core.occupancy(arch, threads, registers, shared_bytes)
    return None if found is None else found[1]
