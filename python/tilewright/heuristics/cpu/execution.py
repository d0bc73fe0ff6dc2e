"""How loops run on a CPU: as vectors, unrolled, or on several cores."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright import _core
from tilewright.heuristics.block_info import constant
from tilewright.heuristics.cpu.parameters import CHUNKS_PER_CORE, MOST_DIVISORS, PARALLEL_ELEMENTS
from tilewright.heuristics.loops import fuse_all
from tilewright.heuristics.nested_schedule import NestedSchedule
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import LoopRV, Schedule


def vectorize_last(schedule: Schedule, loops: Sequence[LoopRV]) -> None:
    """Vectorize the innermost of the loops of a tile, and unroll the others."""
    for loop in loops[-1:]:
        try_step(schedule.vectorize, loop)
    for loop in loops[:-1]:
        try_step(schedule.unroll, loop)


def split_vectors(schedule: Schedule, loop: LoopRV, lanes: int) -> None:
    """Vectorize a loop: the whole loop if its extent is constant, otherwise vectors of `lanes` iterations."""
    if constant(schedule.get(loop).extent) is None:
        tiles = try_step(schedule.split, loop, [None, 4 * lanes])
        loop = tiles[1] if tiles else loop
    try_step(schedule.vectorize, loop)


def parallelize(schedule: Schedule, loops: Sequence[LoopRV], work: int, target: _core.Target) -> None:
    """Fuse outer loops into one parallel loop, if there is enough work.

    Only as many loops are fused as give enough chunks, and only the needed part of the last one, because each step
    divides the indices of fused loops again. At most one loop is fused behind a loop of symbolic extent: then the
    remaining indices are affine, and remainders can be peeled.

    Args:
        work: number of computed elements.
    """
    if not loops or work < PARALLEL_ELEMENTS or isinstance(schedule, NestedSchedule):
        return
    enough = CHUNKS_PER_CORE * target.num_cores if target.num_cores > 1 else 2
    count, taken, is_open = 1, [], False
    for loop in loops:
        extent = constant(schedule.get(loop).extent)
        is_open |= extent is None
        if extent is not None and count > 1 and count * extent > 2 * enough:
            fewest = math.ceil(enough / count)
            most = min(extent, fewest + MOST_DIVISORS)
            parts = next((part for part in range(fewest, most + 1) if extent % part == 0), extent)
            if parts < extent:
                loop, _ = schedule.split(loop, [parts, None])
                extent = parts
        taken.append(loop)
        count = 0 if extent is None else count * extent
        if count >= enough or (is_open and len(taken) >= min(2, len(loops) - 1)):
            break
    fused = try_step(fuse_all, schedule, taken)
    if fused is not None:
        try_step(schedule.parallel, fused)
