"""Skinny GEMM: a small left operand times a matrix that exceeds L2. Rows of the matrix are read contiguously, for a
part of the reduction at a time, and accumulators are added to the results after each part.

    for k_0, j_0:                           k_0: parts of the reduction, of 64 to 128 steps
        panel[k_1, j_1] = B[k, j]           if there are enough rows; fits in L1
        for i_0:
            sums[i_1, j_1] = 0              in registers
            for k_1: sums[i_1, j_1] += A[i, k] * panel[k_1, j_1]
            C[i, j] += sums[i_1, j_1]

A tile that runs through the whole reduction would touch one page for each row of the matrix, again for each panel of
columns. Without the copy, the rows of a panel are far apart: they map to few sets of L1, and in unaligned arrays, as
NumPy's, each of their vectors crosses two cache lines.
"""

from __future__ import annotations

import math

from tilewright.heuristics.block_info import BlockInfo, Operand, number_of_read
from tilewright.heuristics.cpu.execution import parallelize, vectorize_last
from tilewright.heuristics.cpu.parameters import (
    L3_SHARE_BYTES,
    SKINNY_COPY_ROWS,
    SKINNY_FEWEST_ROWS,
    SKINNY_FEWEST_STEPS,
    SKINNY_L1_SHARE,
    SKINNY_L2_SHARE,
    SKINNY_L2_SIZES,
    SKINNY_MOST_ROWS,
    SKINNY_MOST_STEPS,
    SKINNY_PREFETCH_BYTES,
    SKINNY_REDUCTION,
    SKINNY_STEPS,
    SKINNY_VECTORS,
)
from tilewright.heuristics.cpu.register_tile import RegisterTile, register_tiles
from tilewright.heuristics.loops import copy_operand
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV


def schedule_skinny_gemm(match: Match) -> bool:
    """Schedule a skinny GEMM; return whether the block is one."""
    schedule, info, target, sampler = match.schedule, match.info, match.target, match.sampler
    tile = _tile(match, SKINNY_VECTORS) or _tile(match)
    steps = _steps(info, SKINNY_STEPS)
    if steps is None or tile is None or sampler.choose(2):
        return False
    width = info.store.width
    # With 256-bit vectors, only every second unaligned load crosses a cache line.
    enough = SKINNY_COPY_ROWS * (2 if target.vector_bits < 512 else 1)
    many = info.size(i for i in info.spatial if i != tile.axis) >= enough
    copies = sampler.choose(2) == (0 if many else 1)
    if copies:
        most = int(SKINNY_L1_SHARE * target.l1_bytes) // (tile.columns * width)
        steps = _steps(info, min(most, SKINNY_MOST_STEPS)) or steps
    else:
        tile = _tile(match) or tile
    *others, last = info.loops(info.reduced)
    parts, _ = schedule.split(last, [None, steps])
    schedule.reorder(*info.loops(info.spatial), *others, parts)
    sums = schedule.rfactor(schedule.fuse(*others, parts) if others else parts, 0)
    *own, parts, inner = schedule.get_loops(sums)
    by_axis = dict(zip(info.spatial, own, strict=True))
    together = _panels_at_a_time(match, tile, steps)
    chunk, column, each_column = schedule.split(by_axis[tile.axis], [None, together, tile.columns])
    outer, each = [], []
    for i, loop in by_axis.items():
        if i != tile.axis:
            row, within = schedule.split(loop, [None, tile.size(i)])
            outer.append(row)
            each.append(within)
    schedule.reorder(chunk, parts, column, *outer, inner, *each, each_column)
    schedule.reverse_compute_at(info.block, outer[-1] if outer else column)
    schedule.set_scope(sums, 0, "local")
    begin = schedule.decompose_reduction(sums, inner)
    matrix = _matrix(info, tile)
    if copies:
        _copy_panel(match, matrix, tile, sums, column)
    elif info.bytes_read(matrix) > L3_SHARE_BYTES and tile.columns * width >= SKINNY_PREFETCH_BYTES:
        # The hardware does not prefetch parts of rows that are far apart. Short parts are too many to prefetch.
        try_step(schedule.prefetch_at, column, sums, number_of_read(schedule, sums, matrix.buffer), 1)
    for block in (info.block, begin):
        vectorize_last(schedule, schedule.get_loops(block)[len(outer) + 3 :])
    schedule.vectorize(each_column)
    for loop in each:
        schedule.unroll(loop)
    parallelize(schedule, [chunk], info.work, target)
    return True


def _matrix(info: BlockInfo, tile: RegisterTile) -> Operand:
    return next(read for read in info.reads if read.varies(tile.axis))


def _copy_panel(match: Match, matrix: Operand, tile: RegisterTile, sums: BlockRV, column: LoopRV) -> None:
    """Copy a part of a panel before the rows of the left operand use it."""
    schedule = match.schedule
    panel = copy_operand(schedule, sums, matrix.buffer)
    schedule.compute_at(panel, column)
    vectors, lanes = schedule.split(schedule.get_loops(panel)[-1], [None, tile.lanes])
    schedule.vectorize(lanes)
    schedule.unroll(vectors)


def _steps(info: BlockInfo, best: int) -> int | None:
    """Return a divisor of the length of the reduction close to `best`, or None."""
    length = info.extent(info.reduced[-1])
    ways = [steps for steps in range(SKINNY_FEWEST_STEPS, SKINNY_MOST_STEPS + 1) if length % steps == 0]
    if info.size(info.reduced) < SKINNY_REDUCTION or not ways:
        return None
    return min(ways, key=lambda steps: abs(math.log(steps / best)))


def _tile(match: Match, vectors: int | None = None) -> RegisterTile | None:
    """Return the best tile, with `vectors` vectors if given; None if the product is not a skinny GEMM with a large
    matrix."""
    info, target = match.info, match.target
    even = [
        tile
        for tile in register_tiles(info, target)
        if tile.copied is None and info.divides(tile.columns, tile.axis) and vectors in (None, tile.vectors)
    ]
    tile = min(even, key=lambda tile: _work(info, tile), default=None)
    if tile is None or len(info.reads) != 2 or info.store.strides[tile.axis] != 1:
        return None
    rows = [i for i in info.spatial if i != tile.axis]
    matrix = next((read for read in info.reads if read.varies(tile.axis)), None)
    if matrix is None or matrix.strides[tile.axis] != 1 or any(matrix.varies(i) for i in rows):
        return None
    other = next(read for read in info.reads if read is not matrix)
    few = SKINNY_FEWEST_ROWS <= info.size(rows) <= SKINNY_MOST_ROWS
    reduces = all(matrix.varies(i) for i in info.reduced if info.extent(i) > 1) and other.varies(info.reduced[-1])
    is_large = info.bytes_read(matrix) > SKINNY_L2_SIZES * target.l2_bytes
    return tile if few and reduces and is_large and not other.varies(tile.axis) else None


def _work(info: BlockInfo, tile: RegisterTile) -> float:
    """Return the loads per multiply-add, including those of tails that compute nothing."""
    done = math.prod(math.ceil(info.extent(i) / size) * size / info.extent(i) for i, size in tile.rows)
    return done * (tile.height + tile.vectors) / (tile.height * tile.vectors)


def _panels_at_a_time(match: Match, tile: RegisterTile, steps: int) -> int:
    """Return how many panels one thread processes for each part of the reduction: its share of the panels, or as many
    as fit in L2 for that part."""
    info, target = match.info, match.target
    panels = math.ceil(info.extent(tile.axis) / tile.columns)
    one = steps * tile.columns * info.store.width
    fewest = math.ceil(panels / max(1, int(SKINNY_L2_SHARE * target.l2_bytes) // one))
    chunks = min(max(target.num_cores, fewest), panels)
    even = next((count for count in range(chunks, 2 * chunks + 1) if panels % count == 0), None)
    return panels // even if even else math.ceil(panels / chunks)
