"""Split-K: long reductions of a contraction in parts, an axis of partial results that are added up at the end: so that
what the tiles of one part share stays in L2, or so that few accumulators do not wait for one another."""

from __future__ import annotations

import math

from tilewright.heuristics.block_info import BlockInfo, Operand, block_info
from tilewright.heuristics.cpu.accumulators import accumulator_cycles
from tilewright.heuristics.cpu.parameters import (
    BUSY_ACCUMULATORS,
    SEVERAL_ACCUMULATORS_STEPS,
    SPLIT_K_L2_SHARE,
    SPLIT_K_ROWS,
    SPLIT_K_ROWS_NEAR,
    SPLIT_K_STEPS,
    SPLIT_K_USES,
)
from tilewright.heuristics.cpu.register_tile import RegisterTile, register_tiles
from tilewright.heuristics.loops import largest_divisor
from tilewright.heuristics.pattern import Match
from tilewright.schedule import LoopRV


def split_reduction(match: Match) -> BlockInfo:
    """Return the contraction that makes the parts of a long reduction.

    The block that adds the parts up takes its place, and is found as the block that it was.
    """
    info = match.info
    tile = register_tiles(info, match.target)[0]
    columns = [read for read in info.reads if read.varies(tile.axis)]
    if len(columns) != 1:
        return info
    if len(info.reduced) == 1:
        return _parts_of_one_axis(match, columns[0], tile.columns)
    return _part_per_axis_value(match, columns[0], tile) if tile.copied is None else info


def _parts_of_one_axis(match: Match, columns: Operand, width: int) -> BlockInfo:
    """Parts of as many steps as leave the columns of a tile in L2, with the rows that pass over them, if all steps do
    not."""
    info = match.info
    last = info.reduced[0]
    length, uses = info.extent(last), [info.uses(read) for read in info.reads]
    rows = min(uses[info.reads.index(columns)], SPLIT_K_ROWS_NEAR)
    most = int(SPLIT_K_L2_SHARE * match.target.l2_bytes) // ((width + rows) * columns.width)
    if length <= most or not info.axes[last].is_fixed or min(uses) < SPLIT_K_USES:
        return info
    steps = largest_divisor(length, min(most, length // 2), SPLIT_K_STEPS)
    if steps is None or match.sampler.choose(2):
        return info
    parts, _ = match.schedule.split(info.axes[last].loop, [None, steps])
    return _factor_parts(match, parts)


def _part_per_axis_value(match: Match, columns: Operand, tile: RegisterTile) -> BlockInfo:
    """One of several axes of the reduction becomes the parts, if the columns of a tile take too much of L2 for all
    steps, and not for those of a part."""
    info = match.info
    if any(columns.varies(i) for i in info.spatial if i != tile.axis):
        return info
    panel = info.size(i for i in info.reduced if columns.varies(i)) * tile.columns * columns.width
    most = SPLIT_K_L2_SHARE * match.target.l2_bytes
    ways = [
        i for i in info.reduced[:-1] if info.axes[i].is_fixed and columns.varies(i) and panel / info.extent(i) <= most
    ]
    if panel <= most or not ways or info.uses(columns) < SPLIT_K_ROWS or match.sampler.choose(2):
        return info
    chosen = min(ways, key=lambda i: (info.extent(i), i))
    parts = info.axes[chosen].loop
    match.schedule.reorder(parts, *info.loops(i for i in info.reduced if i != chosen))
    return _factor_parts(match, parts)


def split_accumulators(match: Match) -> BlockInfo:
    """Return the contraction that makes several accumulators of each result, if the best tile has so few of them that
    each step waits for the one before."""
    info = match.info
    tile = register_tiles(info, match.target)[0]
    accumulators = tile.vectors * tile.height
    last = info.reduced[-1]
    if accumulators > BUSY_ACCUMULATORS // 2 or tile.cycles > accumulator_cycles(info, match.target):
        return info
    if not info.axes[last].is_fixed or info.extent(last) < SEVERAL_ACCUMULATORS_STEPS:
        return info
    several = math.ceil(BUSY_ACCUMULATORS / accumulators)
    ways = [way for way in (*range(several, 2 * several), *range(several, 1, -1)) if info.extent(last) % way == 0]
    if not ways:
        return info
    steps, parts = match.schedule.split(info.axes[last].loop, [None, ways[0]])
    match.schedule.reorder(parts, *info.loops(i for i in info.reduced if i != last), steps)
    return _factor_parts(match, parts)


def _factor_parts(match: Match, parts: LoopRV) -> BlockInfo:
    schedule, info = match.schedule, match.info
    partial = schedule.rfactor(parts, 0)
    # Loops in the order of the axes: the parts come first.
    for block in (partial, info.block):
        own = schedule.get_loops(block)
        schedule.reorder(own[len(info.spatial)], *own[: len(info.spatial)])
    made = block_info(schedule, partial)
    # What has a loop for each axis before has so after, too.
    assert made is not None
    return made
