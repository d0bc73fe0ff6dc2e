"""Long sums of a contraction in parts, an axis of results that are added up at the end: so that what the tiles of one
part share stays in the second level, or so that few results do not wait for one another."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.cpu_space.draw import Draw
from tilewright.cpu_space.facts import Facts, Operand, facts_of
from tilewright.cpu_space.register_tile import RegisterTile, bits_of, cycles_of_lanes_along, register_tiles
from tilewright.schedule import LoopRV, Schedule

#: what is used less often need not stay anywhere
_FEWEST_USES = 8
#: steps of one part
_FEWEST = 256
#: of the second level that what is to stay there may take, and rows that pass over it before they come again
_SHARE, _ROWS_NEAR = 0.8, 64
#: rows that are worth the results of all parts
_FEWEST_ROWS = 64
#: sums that keep two ports busy for the four cycles that a multiply-add takes, and steps that are worth as many
_LATENCY, _WORTH_SEVERAL = 8, 256


def in_parts(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> Facts:
    """The contraction that makes the parts, where a sum is long and can be taken apart evenly; else the same as before.

    The block that adds the parts up takes its place, and is found as the block that it was.
    """
    if facts.phases or not facts.store.buffer.dtype.startswith("float"):
        return facts
    tiles = register_tiles(facts, target)
    columns = [read for read in facts.reads if tiles and read.varies(tiles[0].axis)]
    if len(columns) != 1:
        return facts
    if len(facts.reduced) == 1:
        return _of_one_axis(schedule, facts, columns[0], tiles[0].columns, target, draw)
    if tiles[0].copied is None:
        return _by_an_axis(schedule, facts, columns[0], tiles[0], target, draw)
    return facts


def _of_one_axis(
    schedule: Schedule, facts: Facts, columns: Operand, width: int, target: _core.Target, draw: Draw
) -> Facts:
    """Parts of as many steps as leave the columns of a tile in the second level, with the rows that pass over them,
    where all steps do not."""
    last = facts.reduced[0]
    uses = [math.prod(facts.extent(i) for i in facts.spatial if not read.varies(i)) for read in facts.reads]
    rows = min(uses[facts.reads.index(columns)], _ROWS_NEAR)
    most = int(_SHARE * target.l2_bytes) // ((width + rows) * bits_of(columns.buffer.dtype) // 8)
    if facts.extent(last) <= most or not facts.axes[last].is_fixed or min(uses) < _FEWEST_USES:
        return facts
    length = facts.extent(last)
    steps = next((steps for steps in range(min(most, length // 2), _FEWEST - 1, -1) if length % steps == 0), None)
    if steps is None or draw.choose(2):
        return facts
    parts, _ = schedule.split(facts.axes[last].loop, [None, steps])
    return _apart(schedule, facts, parts)


def _by_an_axis(
    schedule: Schedule, facts: Facts, columns: Operand, tile: RegisterTile, target: _core.Target, draw: Draw
) -> Facts:
    """One of several axes of the sum that the parts are along, where the columns of a tile take too much of the second
    level for all steps, and not for those of a part."""
    if any(columns.varies(i) for i in facts.spatial if i != tile.axis):
        return facts
    uses = math.prod(facts.extent(i) for i in facts.spatial if not columns.varies(i))
    steps = math.prod(facts.extent(i) for i in facts.reduced if columns.varies(i))
    panel = steps * tile.columns * bits_of(columns.buffer.dtype) // 8
    most = _SHARE * target.l2_bytes
    ways = [
        i
        for i in facts.reduced[:-1]
        if facts.axes[i].is_fixed and columns.varies(i) and panel / facts.extent(i) <= most
    ]
    if panel <= most or not ways or uses < _FEWEST_ROWS or draw.choose(2):
        return facts
    chosen = min(ways, key=lambda i: (facts.extent(i), i))
    parts = facts.axes[chosen].loop
    schedule.reorder(parts, *(facts.axes[i].loop for i in facts.reduced if i != chosen))
    return _apart(schedule, facts, parts)


def in_several_sums(schedule: Schedule, facts: Facts, target: _core.Target) -> Facts:
    """The contraction that makes several sums of each result, where the best tile has so few of them that each step
    waits for the one before; else the same as before."""
    tiles = register_tiles(facts, target)
    if not tiles or facts.phases or not facts.store.buffer.dtype.startswith("float"):
        return facts
    sums = tiles[0].vectors * math.prod(size for _, size in tiles[0].rows)
    last = facts.reduced[-1]
    if sums > _LATENCY // 2 or tiles[0].cycles > cycles_of_lanes_along(facts, target):
        return facts
    if not facts.axes[last].is_fixed or facts.extent(last) < _WORTH_SEVERAL:
        return facts
    several = math.ceil(_LATENCY / sums)
    ways = [way for way in range(several, 2 * several) if facts.extent(last) % way == 0]
    ways += [way for way in range(several, 1, -1) if facts.extent(last) % way == 0]
    if not ways:
        return facts
    steps, parts = schedule.split(facts.axes[last].loop, [None, ways[0]])
    schedule.reorder(parts, *(facts.axes[i].loop for i in facts.reduced if i != last), steps)
    return _apart(schedule, facts, parts)


def _apart(schedule: Schedule, facts: Facts, parts: LoopRV) -> Facts:
    partial = schedule.rfactor(parts, 0)
    spatial = len(facts.spatial)
    # Loops in the order of the axes: the parts come first.
    for block in (partial, facts.block):
        own = schedule.get_loops(block)
        schedule.reorder(own[spatial], *own[:spatial])
    made = facts_of(schedule, partial)
    # What has a loop for each axis before has so after, too.
    assert made is not None
    return made
