"""Split-K: a long reduction is split into parts, whose partial results are added at the end. The operands that the
tiles of a part share then stay in L2, or more accumulators keep multiply-adds from waiting for each other."""

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
    """Return the contraction that computes the parts of a long reduction.

    The block that adds the partial results replaces the original block and keeps its handle.
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
    """Split one reduction axis into parts, if the whole reduction is too long for L2: a part has as many steps as keep
    the columns of a tile, and the rows that are multiplied by them, in L2."""
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
    """Make each value of one of several reduction axes a part, if the columns of a tile exceed L2's share for the whole
    reduction but not for one part."""
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
    """Return the contraction with several accumulators for each result, if the best tile has so few accumulators that
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
    # Order the loops as the axes: the parts come first.
    for block in (partial, info.block):
        own = schedule.get_loops(block)
        schedule.reorder(own[len(info.spatial)], *own[: len(info.spatial)])
    made = block_info(schedule, partial)
    # rfactor keeps one loop for each axis, so the partial block has a BlockInfo as well.
    assert made is not None
    return made
