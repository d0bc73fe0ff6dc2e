"""Estimated cycles of one core: ports, and what comes from behind L1."""

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
    """Return the cycles of a step, of so many multiply-adds and loads on their ports: few accumulators wait for the
    results of one another."""
    waiting = FMA_CYCLES * steps if accumulators < BUSY_ACCUMULATORS else 0
    return max(accumulators * steps / FMA_PORTS, loads / LOAD_PORTS, waiting)


def load_cycles(moved: float, held: float, target: _core.Target, used: float = 1.0) -> float:
    """Return the cycles to load bytes from the cache level that holds their working set; 0 if that is L1.

    Args:
        moved: bytes that are loaded.
        held: bytes of the working set.
        target: whose caches count.
        used: share of the sets of a cache that these map to.
    """
    near = target.l1_bytes * used / 2
    # Of lines that share few sets, L2 keeps what the pages leave to it.
    if held > target.l2_bytes * used * 0.7 or (used < 0.5 and held > near):
        return moved / L3_BYTES_PER_CYCLE
    return moved / L2_BYTES_PER_CYCLE if held > near else 0.0
