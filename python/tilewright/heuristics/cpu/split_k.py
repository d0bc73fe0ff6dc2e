"""Long sums of a contraction in parts, an axis of results that are added up at the end: so that what the tiles of one
part share stays in the second level, or so that few results do not wait for one another."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.heuristics.cpu.block_info import BlockInfo, Operand, block_info
from tilewright.heuristics.cpu.parameters import (
    BUSY_ACCUMULATORS,
    SEVERAL_ACCUMULATORS_STEPS,
    SPLIT_K_L2_SHARE,
    SPLIT_K_ROWS,
    SPLIT_K_ROWS_NEAR,
    SPLIT_K_STEPS,
    SPLIT_K_USES,
)
from tilewright.heuristics.cpu.register_tile import RegisterTile, accumulator_cycles, bits_of, register_tiles
from tilewright.heuristics.cpu.sampling import Sampler
from tilewright.schedule import LoopRV, Schedule


def split_reduction(schedule: Schedule, info: BlockInfo, target: _core.Target, sampler: Sampler) -> BlockInfo:
    """The contraction that makes the parts, where a sum is long and can be taken apart evenly; else the same as before.

    The block that adds the parts up takes its place, and is found as the block that it was.
    """
    if info.residue_axes or not info.store.buffer.dtype.startswith("float"):
        return info
    tiles = register_tiles(info, target)
    columns = [read for read in info.reads if tiles and read.varies(tiles[0].axis)]
    if len(columns) != 1:
        return info
    if len(info.reduced) == 1:
        return _parts_of_one_axis(schedule, info, columns[0], tiles[0].columns, target, sampler)
    if tiles[0].copied is None:
        return _part_per_axis_value(schedule, info, columns[0], tiles[0], target, sampler)
    return info


def _parts_of_one_axis(
    schedule: Schedule, info: BlockInfo, columns: Operand, width: int, target: _core.Target, sampler: Sampler
) -> BlockInfo:
    """Parts of as many steps as leave the columns of a tile in the second level, with the rows that pass over them,
    where all steps do not."""
    last = info.reduced[0]
    uses = [math.prod(info.extent(i) for i in info.spatial if not read.varies(i)) for read in info.reads]
    rows = min(uses[info.reads.index(columns)], SPLIT_K_ROWS_NEAR)
    most = int(SPLIT_K_L2_SHARE * target.l2_bytes) // ((width + rows) * bits_of(columns.buffer.dtype) // 8)
    if info.extent(last) <= most or not info.axes[last].is_fixed or min(uses) < SPLIT_K_USES:
        return info
    length = info.extent(last)
    steps = next((steps for steps in range(min(most, length // 2), SPLIT_K_STEPS - 1, -1) if length % steps == 0), None)
    if steps is None or sampler.choose(2):
        return info
    parts, _ = schedule.split(info.axes[last].loop, [None, steps])
    return _factor_parts(schedule, info, parts)


def _part_per_axis_value(
    schedule: Schedule, info: BlockInfo, columns: Operand, tile: RegisterTile, target: _core.Target, sampler: Sampler
) -> BlockInfo:
    """One of several axes of the sum that the parts are along, where the columns of a tile take too much of the second
    level for all steps, and not for those of a part."""
    if any(columns.varies(i) for i in info.spatial if i != tile.axis):
        return info
    uses = math.prod(info.extent(i) for i in info.spatial if not columns.varies(i))
    steps = math.prod(info.extent(i) for i in info.reduced if columns.varies(i))
    panel = steps * tile.columns * bits_of(columns.buffer.dtype) // 8
    most = SPLIT_K_L2_SHARE * target.l2_bytes
    ways = [
        i for i in info.reduced[:-1] if info.axes[i].is_fixed and columns.varies(i) and panel / info.extent(i) <= most
    ]
    if panel <= most or not ways or uses < SPLIT_K_ROWS or sampler.choose(2):
        return info
    chosen = min(ways, key=lambda i: (info.extent(i), i))
    parts = info.axes[chosen].loop
    schedule.reorder(parts, *(info.axes[i].loop for i in info.reduced if i != chosen))
    return _factor_parts(schedule, info, parts)


def split_accumulators(schedule: Schedule, info: BlockInfo, target: _core.Target) -> BlockInfo:
    """The contraction that makes several sums of each result, where the best tile has so few of them that each step
    waits for the one before; else the same as before."""
    tiles = register_tiles(info, target)
    if not tiles or info.residue_axes or not info.store.buffer.dtype.startswith("float"):
        return info
    sums = tiles[0].vectors * math.prod(size for _, size in tiles[0].rows)
    last = info.reduced[-1]
    if sums > BUSY_ACCUMULATORS // 2 or tiles[0].cycles > accumulator_cycles(info, target):
        return info
    if not info.axes[last].is_fixed or info.extent(last) < SEVERAL_ACCUMULATORS_STEPS:
        return info
    several = math.ceil(BUSY_ACCUMULATORS / sums)
    ways = [way for way in range(several, 2 * several) if info.extent(last) % way == 0]
    ways += [way for way in range(several, 1, -1) if info.extent(last) % way == 0]
    if not ways:
        return info
    steps, parts = schedule.split(info.axes[last].loop, [None, ways[0]])
    schedule.reorder(parts, *(info.axes[i].loop for i in info.reduced if i != last), steps)
    return _factor_parts(schedule, info, parts)


def _factor_parts(schedule: Schedule, info: BlockInfo, parts: LoopRV) -> BlockInfo:
    partial = schedule.rfactor(parts, 0)
    spatial = len(info.spatial)
    # Loops in the order of the axes: the parts come first.
    for block in (partial, info.block):
        own = schedule.get_loops(block)
        schedule.reorder(own[spatial], *own[:spatial])
    made = block_info(schedule, partial)
    # What has a loop for each axis before has so after, too.
    assert made is not None
    return made
