"""Operands that are copied before they are used, so that what a tile reads lies side by side."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.cpu_space.draw import Draw, attempt
from tilewright.cpu_space.facts import Facts, Operand, coefficient, constant, number_of_read
from tilewright.cpu_space.register_tile import LINE_BYTES, RegisterTile, bits_of, bytes_of
from tilewright.schedule import BlockRV, LoopRV, Schedule

#: bytes of a row of the source that are worth the way to it
_PIECE = 2 * LINE_BYTES
#: lines that are asked for ahead: what a core can wait for at a time
_LINES_AHEAD = 32
#: numbers of groups that a search draws from
_WAYS = 4
#: share of busy cores that is as good as all of them
BALANCED = 0.9
#: steps along the rows of a source that are turned round at a time
_FEWEST_STEPS, _MOST_STEPS = 32, 128


def panels_at_a_time(facts: Facts, tile: RegisterTile, copied: int, target: _core.Target, draw: Draw) -> int:
    """How many groups of columns are copied at a time: as many as fill half of the second level, and where the source
    comes from behind it, so many that what is taken from each of its rows is not less than two lines."""
    if not facts.axes[tile.axis].is_fixed:
        return 1
    read = facts.reads[copied]
    width = bits_of(read.buffer.dtype) // 8
    one = tile.columns * math.prod(facts.extent(i) for i in facts.reduced if read.varies(i)) * width
    groups = math.ceil(facts.extent(tile.axis) / tile.columns)
    most = target.l2_bytes // 2 // one
    if _comes_from_afar(facts, read, target) and read.strides[tile.axis] == 1:
        piece = math.ceil(_PIECE / (tile.columns * width))
        most = max(most, piece if piece * one <= 2 * target.l2_bytes else 1)
    if target.num_cores > 1:
        # They are shared among the cores, which each copy their own.
        most = min(most, max(1, groups // target.num_cores))
    # A remainder of groups would leave one tail in another.
    ways = [way for way in range(max(1, min(groups, most)), 0, -1) if groups % way == 0]
    # All cores have as much to do, where that can be.
    apart = math.prod(facts.extent(i) for i in facts.spatial if i != tile.axis and read.varies(i))
    ways.sort(key=lambda way: share_of_busy_cores(apart * groups // way, target) < BALANCED)
    return ways[draw.choose(min(len(ways), _WAYS))]


def share_of_busy_cores(parts: int, target: _core.Target) -> float:
    """While some work on equal parts of the work."""
    return parts / (math.ceil(parts / target.num_cores) * target.num_cores)


def pack(schedule: Schedule, facts: Facts, copied: int, at: LoopRV | None) -> BlockRV:
    """The block that copies an operand, where that loop is."""
    buffer = facts.reads[copied].buffer
    number = number_of_read(schedule, facts.block, buffer)
    packed = schedule.cache_read(facts.block, number, "global", consumer_blocks=[facts.block])
    if at is not None:
        attempt(schedule.compute_at, packed, at)
    return packed


def copy_in_vectors(
    schedule: Schedule,
    facts: Facts,
    tile: RegisterTile,
    copied: int,
    packed: BlockRV,
    depth: int,
    target: _core.Target,
) -> None:
    """Copies with vectors; where the source lies the other way, the copy is turned round.

    Args:
        depth: how many loops around the copy are not its own.
    """
    read = facts.reads[copied]
    variable = facts.axes[tile.axis].var
    dimension = next((n for n, index in enumerate(read.indices) if coefficient(index, variable) != 0), None)
    if dimension is None:
        return
    rank = len(read.indices)
    # The copy has a loop for each dimension that does not stand still while it is made.
    still = [facts.axes[i].var for i in facts.spatial if i != tile.axis and read.varies(i)]
    moving = [
        n
        for n, index in enumerate(read.indices)
        if any(coefficient(index, axis.var) != 0 for axis in facts.axes if not any(axis.var is v for v in still))
    ]
    own = schedule.get_loops(packed)[depth:]
    if len(own) == rank and len(moving) < rank:
        # Made before all others, it is made for what stands still around the others, too.
        schedule.reorder(*(loop for n, loop in enumerate(own) if n not in moving), *(own[n] for n in moving))
        own = [own[n] for n in moving]
    if len(own) != len(moving) or dimension not in moving or len(schedule.get(packed).iter_vars) != rank:
        return
    turned = own[moving.index(dimension)]
    if turned is not own[-1]:
        schedule.reorder(*own[moving.index(dimension) + 1 :], turned)
    if facts.divides(tile.columns, tile.axis):
        attempt(schedule.transform_layout, packed, ("write", 0), _panels_of(rank, dimension, tile.columns))
    elif dimension != rank - 1:
        attempt(schedule.transform_layout, packed, ("write", 0), _panels_of(rank, dimension, None))
    rows = [loop for loop in own if loop is not turned]
    if rows and read.strides[tile.axis] == 1 and _comes_from_afar(facts, read, target):
        _prefetch_rows(schedule, packed, rows[-1], turned, bits_of(read.buffer.dtype) // 8)
    pieces = attempt(schedule.split, turned, [None, tile.lanes])
    if pieces and read.strides[tile.axis] != 1:
        _turn_squares(schedule, rows, pieces)
    attempt(schedule.vectorize, pieces[1] if pieces else turned)


def _turn_squares(schedule: Schedule, rows: list[LoopRV], pieces: list[LoopRV]) -> None:
    """Takes all of a line while it is near; so many steps along the rows at a time as make a part of the copy that
    stays near until its lines are complete."""
    extent = constant(schedule.get(rows[-1]).extent) if rows else None
    steps = next((steps for steps in range(_MOST_STEPS, _FEWEST_STEPS - 1, -1) if extent and extent % steps == 0), None)
    if steps is None or extent == steps:
        schedule.reorder(pieces[0], *rows, pieces[1])
        return
    outer, inner = schedule.split(rows[-1], [None, steps])
    schedule.reorder(*rows[:-1], outer, pieces[0], inner, pieces[1])


def ask_for_rows_ahead(
    schedule: Schedule, facts: Facts, tile: RegisterTile, steps: LoopRV, target: _core.Target
) -> None:
    """Asks for the next rows of an operand that is read where it lies, behind the second level; not where a step leads
    to the same lines, as that of a filter does.

    Args:
        steps: the innermost loop of the sum around the tile.
    """
    for read in facts.reads:
        width = bits_of(read.buffer.dtype) // 8
        is_near = abs(read.strides[facts.reduced[-1]] or 0) * width < LINE_BYTES
        if is_near or read.strides[tile.axis] != 1 or not _comes_from_afar(facts, read, target):
            continue
        regions = schedule.get(facts.block).reads
        number = next((n for n, region in enumerate(regions) if region.buffer.same_as(read.buffer)), None)
        lines = math.ceil(tile.columns * width / LINE_BYTES)
        if number is not None:
            attempt(schedule.prefetch_at, steps, facts.block, number, max(2, _LINES_AHEAD // 2 // lines))


def _comes_from_afar(facts: Facts, read: Operand, target: _core.Target) -> bool:
    """Whether the second level does not hold all of an operand."""
    return bytes_of(facts, read) > target.l2_bytes


def _prefetch_rows(schedule: Schedule, packed: BlockRV, rows: LoopRV, row: LoopRV, width: int) -> None:
    """Asks for the next rows of the source: a processor foresees lines that follow one another, and not short pieces
    far apart."""
    count, columns = constant(schedule.get(rows).extent), constant(schedule.get(row).extent)
    if count is None or columns is None:
        return
    ahead = max(4, _LINES_AHEAD // math.ceil(columns * width / LINE_BYTES))
    if count >= 4 * ahead:
        attempt(schedule.prefetch_at, rows, packed, 0, ahead)


def _panels_of(rank: int, dimension: int, columns: int | None) -> ir.IndexMap:
    """Groups of columns one after the other, in each of them the columns last; one group where no size is given."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    turned = indices[dimension]
    others = [index for index in indices if index is not turned]
    if columns is None:
        return ir.IndexMap(indices, [*others, turned])
    return ir.IndexMap(indices, [turned // columns, *others, turned % columns])
