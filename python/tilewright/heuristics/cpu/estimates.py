"""Estimated cycles of one core: execution ports, and loads from L2, L3 and memory."""

from __future__ import annotations

from tilewright import _core
from tilewright.heuristics.cpu.parameters import (
    BUSY_ACCUMULATORS,
    FMA_CYCLES,
    FMA_PORTS,
    L2_BYTES_PER_CYCLE,
    L3_BYTES_PER_CYCLE,
    LOAD_PORTS,
)


def port_cycles(accumulators: float, loads: float, steps: int = 1) -> float:
    """Return the cycles of steps with a number of multiply-adds and loads on their ports. With few accumulators, each
    multiply-add waits for the one before."""
    waiting = FMA_CYCLES * steps if accumulators < BUSY_ACCUMULATORS else 0
    return max(accumulators * steps / FMA_PORTS, loads / LOAD_PORTS, waiting)


def load_cycles(moved: float, held: float, target: _core.Target, used: float = 1.0) -> float:
    """Return the cycles to load bytes from the cache level that holds their working set; 0 if that is L1.

    Args:
        moved: number of bytes that are loaded.
        held: number of bytes of the working set.
        target: the processor, with its caches.
        used: share of the sets of a cache to which the lines of the working set map.
    """
    near = target.l1_bytes * used / 2
    # L2 is indexed by physical addresses: how lines with a large stride map to its sets depends on the pages.
    if held > target.l2_bytes * used * 0.7 or (used < 0.5 and held > near):
        return moved / L3_BYTES_PER_CYCLE
    return moved / L2_BYTES_PER_CYCLE if held > near else 0.0
