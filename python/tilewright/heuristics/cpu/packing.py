"""Operands that are copied before they are used, so that what a tile reads lies side by side."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import BlockInfo, Operand, coefficient, constant, number_of_read
from tilewright.heuristics.cpu.parameters import (
    BALANCED,
    FEWEST_TRANSPOSED_STEPS,
    LINE_BYTES,
    LINES_IN_FLIGHT,
    MOST_TRANSPOSED_STEPS,
    PACKED_PIECE_BYTES,
    SAMPLED_PANELS,
)
from tilewright.heuristics.cpu.register_tile import RegisterTile, bits_of, bytes_of
from tilewright.heuristics.cpu.sampling import Sampler, try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def panels_at_a_time(info: BlockInfo, tile: RegisterTile, copied: int, target: _core.Target, sampler: Sampler) -> int:
    """How many groups of columns are copied at a time: as many as fill half of the second level, and where the source
    comes from behind it, so many that what is taken from each of its rows is not less than two lines."""
    if not info.axes[tile.axis].is_fixed:
        return 1
    read = info.reads[copied]
    width = bits_of(read.buffer.dtype) // 8
    one = tile.columns * math.prod(info.extent(i) for i in info.reduced if read.varies(i)) * width
    groups = math.ceil(info.extent(tile.axis) / tile.columns)
    most = target.l2_bytes // 2 // one
    if _exceeds_l2(info, read, target) and read.strides[tile.axis] == 1:
        piece = math.ceil(PACKED_PIECE_BYTES / (tile.columns * width))
        most = max(most, piece if piece * one <= 2 * target.l2_bytes else 1)
    if target.num_cores > 1:
        # They are shared among the cores, which each copy their own.
        most = min(most, max(1, groups // target.num_cores))
    # A remainder of groups would leave one tail in another.
    ways = [way for way in range(max(1, min(groups, most)), 0, -1) if groups % way == 0]
    # All cores have as much to do, where that can be.
    apart = math.prod(info.extent(i) for i in info.spatial if i != tile.axis and read.varies(i))
    ways.sort(key=lambda way: share_of_busy_cores(apart * groups // way, target) < BALANCED)
    return ways[sampler.choose(min(len(ways), SAMPLED_PANELS))]


def share_of_busy_cores(parts: int, target: _core.Target) -> float:
    """While some work on equal parts of the work."""
    return parts / (math.ceil(parts / target.num_cores) * target.num_cores)


def pack(schedule: Schedule, info: BlockInfo, copied: int, at: LoopRV | None) -> BlockRV:
    """The block that copies an operand, where that loop is."""
    buffer = info.reads[copied].buffer
    number = number_of_read(schedule, info.block, buffer)
    packed = schedule.cache_read(info.block, number, "global", consumer_blocks=[info.block])
    if at is not None:
        try_step(schedule.compute_at, packed, at)
    return packed


def copy_in_vectors(
    schedule: Schedule,
    info: BlockInfo,
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
    read = info.reads[copied]
    variable = info.axes[tile.axis].var
    dimension = next((n for n, index in enumerate(read.indices) if coefficient(index, variable) != 0), None)
    if dimension is None:
        return
    rank = len(read.indices)
    # The copy has a loop for each dimension that does not stand still while it is made.
    still = [info.axes[i].var for i in info.spatial if i != tile.axis and read.varies(i)]
    moving = [
        n
        for n, index in enumerate(read.indices)
        if any(coefficient(index, axis.var) != 0 for axis in info.axes if not any(axis.var is v for v in still))
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
    if info.divides(tile.columns, tile.axis):
        try_step(schedule.transform_layout, packed, ("write", 0), _panels_of(rank, dimension, tile.columns))
    elif dimension != rank - 1:
        try_step(schedule.transform_layout, packed, ("write", 0), _panels_of(rank, dimension, None))
    rows = [loop for loop in own if loop is not turned]
    if rows and read.strides[tile.axis] == 1 and _exceeds_l2(info, read, target):
        _prefetch_rows(schedule, packed, rows[-1], turned, bits_of(read.buffer.dtype) // 8)
    pieces = try_step(schedule.split, turned, [None, tile.lanes])
    if pieces and read.strides[tile.axis] != 1:
        _transpose_squares(schedule, rows, pieces)
    try_step(schedule.vectorize, pieces[1] if pieces else turned)


def _transpose_squares(schedule: Schedule, rows: list[LoopRV], pieces: list[LoopRV]) -> None:
    """Takes all of a line while it is near; so many steps along the rows at a time as make a part of the copy that
    stays near until its lines are complete."""
    extent = constant(schedule.get(rows[-1]).extent) if rows else None
    steps = next(
        (
            steps
            for steps in range(MOST_TRANSPOSED_STEPS, FEWEST_TRANSPOSED_STEPS - 1, -1)
            if extent and extent % steps == 0
        ),
        None,
    )
    if steps is None or extent == steps:
        schedule.reorder(pieces[0], *rows, pieces[1])
        return
    outer, inner = schedule.split(rows[-1], [None, steps])
    schedule.reorder(*rows[:-1], outer, pieces[0], inner, pieces[1])


def prefetch_rows(schedule: Schedule, info: BlockInfo, tile: RegisterTile, steps: LoopRV, target: _core.Target) -> None:
    """Asks for the next rows of an operand that is read where it lies, behind the second level; not where a step leads
    to the same lines, as that of a filter does.

    Args:
        steps: the innermost loop of the sum around the tile.
    """
    for read in info.reads:
        width = bits_of(read.buffer.dtype) // 8
        is_near = abs(read.strides[info.reduced[-1]] or 0) * width < LINE_BYTES
        if is_near or read.strides[tile.axis] != 1 or not _exceeds_l2(info, read, target):
            continue
        regions = schedule.get(info.block).reads
        number = next((n for n, region in enumerate(regions) if region.buffer.same_as(read.buffer)), None)
        lines = math.ceil(tile.columns * width / LINE_BYTES)
        if number is not None:
            try_step(schedule.prefetch_at, steps, info.block, number, max(2, LINES_IN_FLIGHT // 2 // lines))


def _exceeds_l2(info: BlockInfo, read: Operand, target: _core.Target) -> bool:
    """Whether the second level does not hold all of an operand."""
    return bytes_of(info, read) > target.l2_bytes


def _prefetch_rows(schedule: Schedule, packed: BlockRV, rows: LoopRV, row: LoopRV, width: int) -> None:
    """Asks for the next rows of the source: a processor foresees lines that follow one another, and not short pieces
    far apart."""
    count, columns = constant(schedule.get(rows).extent), constant(schedule.get(row).extent)
    if count is None or columns is None:
        return
    ahead = max(4, LINES_IN_FLIGHT // math.ceil(columns * width / LINE_BYTES))
    if count >= 4 * ahead:
        try_step(schedule.prefetch_at, rows, packed, 0, ahead)


def _panels_of(rank: int, dimension: int, columns: int | None) -> ir.IndexMap:
    """Groups of columns one after the other, in each of them the columns last; one group where no size is given."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    turned = indices[dimension]
    others = [index for index in indices if index is not turned]
    if columns is None:
        return ir.IndexMap(indices, [*others, turned])
    return ir.IndexMap(indices, [turned // columns, *others, turned % columns])
