"""Pack operands before they are used, so that a tile reads contiguous elements."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.heuristics.block_info import BlockInfo, Operand, coefficient, constant, number_of_read
from tilewright.heuristics.cpu.parameters import (
    BALANCED,
    FEWEST_TRANSPOSED_STEPS,
    LINE_BYTES,
    LINES_IN_FLIGHT,
    MOST_TRANSPOSED_STEPS,
    PACKED_PIECE_BYTES,
    SAMPLED_PANELS,
)
from tilewright.heuristics.cpu.register_tile import RegisterTile
from tilewright.heuristics.loops import copy_operand, index_map, largest_divisor
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def panels_at_a_time(match: Match, tile: RegisterTile, copied: int) -> int:
    """Return how many panels of columns are packed at a time: as many as fill half of L2. If the source exceeds L2, as
    many as read at least two cache lines of each of its rows."""
    info, target = match.info, match.target
    if not info.axes[tile.axis].is_fixed:
        return 1
    read = info.reads[copied]
    one = tile.columns * info.size(i for i in info.reduced if read.varies(i)) * read.width
    panels = math.ceil(info.extent(tile.axis) / tile.columns)
    most = target.l2_bytes // 2 // one
    if _exceeds_l2(info, read, target) and read.strides[tile.axis] == 1:
        piece = math.ceil(PACKED_PIECE_BYTES / (tile.columns * read.width))
        most = max(most, piece if piece * one <= 2 * target.l2_bytes else 1)
    if target.num_cores > 1:
        # Each core packs its own panels.
        most = min(most, max(1, panels // target.num_cores))
    # A remainder of panels would nest one tail in another, so only divisors are used.
    ways = [way for way in range(max(1, min(panels, most)), 0, -1) if panels % way == 0]
    batch = info.size(i for i in info.spatial if i != tile.axis and read.varies(i))
    ways.sort(key=lambda way: share_of_busy_cores(batch * panels // way, target) < BALANCED)
    return ways[match.sampler.choose(min(len(ways), SAMPLED_PANELS))]


def share_of_busy_cores(parts: int, target: _core.Target) -> float:
    """Return the share of cores that work, on average, on equal parts of the work."""
    return parts / (math.ceil(parts / target.num_cores) * target.num_cores)


def pack(match: Match, copied: int, at: LoopRV | None) -> BlockRV:
    """Return a new block that packs an operand, computed at a loop if one is given."""
    packed = copy_operand(match.schedule, match.info.block, match.info.reads[copied].buffer)
    if at is not None:
        try_step(match.schedule.compute_at, packed, at)
    return packed


def copy_in_vectors(match: Match, tile: RegisterTile, copied: int, packed: BlockRV, depth: int) -> None:
    """Vectorize a copy, and transpose it if the source is contiguous along another dimension.

    Args:
        match: the contraction.
        tile: register tile of the results.
        copied: number of the packed operand among the reads.
        packed: the block that packs.
        depth: number of outer loops that the packing block shares with the contraction.
    """
    schedule, info = match.schedule, match.info
    read = info.reads[copied]
    column = info.axes[tile.axis].var
    dimension = next((n for n, index in enumerate(read.indices) if coefficient(index, column) != 0), None)
    if dimension is None:
        return
    rank = len(read.indices)
    # The packing block has a loop for each dimension that varies during one execution of it.
    still = [i for i in info.spatial if i != tile.axis and read.varies(i)]
    moving = [
        n
        for n, index in enumerate(read.indices)
        if any(coefficient(index, axis.var) != 0 for i, axis in enumerate(info.axes) if i not in still)
    ]
    own = schedule.get_loops(packed)[depth:]
    if len(own) == rank and len(moving) < rank:
        # A block that packs the whole operand also has loops for the other dimensions: they go outside.
        schedule.reorder(*(loop for n, loop in enumerate(own) if n not in moving), *(own[n] for n in moving))
        own = [own[n] for n in moving]
    if len(own) != len(moving) or dimension not in moving or len(schedule.get(packed).iter_vars) != rank:
        return
    columns = own[moving.index(dimension)]
    if columns is not own[-1]:
        schedule.reorder(*own[moving.index(dimension) + 1 :], columns)
    width = tile.columns if info.divides(tile.columns, tile.axis) else None
    if width is not None or dimension != rank - 1:
        try_step(schedule.transform_layout, packed, ("write", 0), _panels_of(rank, dimension, width))
    rows = [loop for loop in own if loop is not columns]
    if rows and read.strides[tile.axis] == 1 and _exceeds_l2(info, read, match.target):
        _prefetch_source(schedule, packed, rows[-1], columns, read.width)
    tiles = try_step(schedule.split, columns, [None, tile.lanes])
    if tiles and read.strides[tile.axis] != 1:
        _transpose_squares(schedule, rows, tiles)
    try_step(schedule.vectorize, tiles[1] if tiles else columns)


def _transpose_squares(schedule: Schedule, rows: list[LoopRV], tiles: list[LoopRV]) -> None:
    """Read whole cache lines of the source, and block its rows so that the written part of the copy stays in a cache
    until its lines are complete."""
    extent = constant(schedule.get(rows[-1]).extent) if rows else None
    steps = largest_divisor(extent, MOST_TRANSPOSED_STEPS, FEWEST_TRANSPOSED_STEPS)
    if steps is None or extent == steps:
        schedule.reorder(tiles[0], *rows, tiles[1])
        return
    outer, inner = schedule.split(rows[-1], [None, steps])
    schedule.reorder(*rows[:-1], outer, tiles[0], inner, tiles[1])


def prefetch_rows(match: Match, tile: RegisterTile, steps: LoopRV) -> None:
    """Prefetch the next rows of an operand that exceeds L2 and is not packed, unless a reduction step leads to the same
    cache lines, as a step of a filter does.

    Args:
        match: the contraction.
        tile: register tile of the results.
        steps: innermost loop of the reduction around the tile.
    """
    info, schedule = match.info, match.schedule
    for read in info.reads:
        is_near = abs(read.strides[info.reduced[-1]] or 0) * read.width < LINE_BYTES
        if is_near or read.strides[tile.axis] != 1 or not _exceeds_l2(info, read, match.target):
            continue
        lines = math.ceil(tile.columns * read.width / LINE_BYTES)
        number = try_step(number_of_read, schedule, info.block, read.buffer)
        if number is not None:
            try_step(schedule.prefetch_at, steps, info.block, number, max(2, LINES_IN_FLIGHT // 2 // lines))


def _exceeds_l2(info: BlockInfo, read: Operand, target: _core.Target) -> bool:
    return info.bytes_read(read) > target.l2_bytes


def _prefetch_source(schedule: Schedule, packed: BlockRV, rows: LoopRV, row: LoopRV, width: int) -> None:
    """Prefetch the next rows of the source: the hardware prefetches streams of lines, but not short parts of distant
    rows."""
    count, columns = constant(schedule.get(rows).extent), constant(schedule.get(row).extent)
    if count is None or columns is None:
        return
    ahead = max(4, LINES_IN_FLIGHT // math.ceil(columns * width / LINE_BYTES))
    if count >= 4 * ahead:
        try_step(schedule.prefetch_at, rows, packed, 0, ahead)


def _panels_of(rank: int, dimension: int, width: int | None) -> ir.IndexMap:
    """Return the index map to panels with `width` columns, stored with the column innermost; a width of None means one
    panel."""
    return index_map(
        rank,
        lambda v: [
            *([] if width is None else [v[dimension] // width]),
            *v[:dimension],
            *v[dimension + 1 :],
            v[dimension] if width is None else v[dimension] % width,
        ],
    )
