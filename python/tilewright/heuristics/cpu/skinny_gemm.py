"""Products of few rows with a matrix that no near cache holds: each of its rows is read along memory while it passes,
some steps of the sum at a time, and sums are added to the results as they lie.

    for k_0, j_0:                           k_0: parts of the sum, of 64 to 128 steps
        panel[k_1, j_1] = B[k, j]           where the rows pay for it: it lies in the first level
        for i_0:
            sums[i_1, j_1] = 0              in registers
            for k_1: sums[i_1, j_1] += A[i, k] * panel[k_1, j_1]
            C[i, j] += sums[i_1, j_1]

A tile that goes through all of the sum would touch as many pages as there are rows of the matrix, again for each group
of columns. Where it lies, a part of a group has its rows far apart, so that few sets of the first level hold it, and in
arrays that begin anywhere, as NumPy's do, each of its vectors is in two lines.
"""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.heuristics.cpu.block_info import BlockInfo, Operand, number_of_read
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
from tilewright.heuristics.cpu.register_tile import RegisterTile, bits_of, bytes_of, register_tiles
from tilewright.heuristics.cpu.sampling import Sampler, try_step
from tilewright.heuristics.cpu.single_blocks import parallelize
from tilewright.schedule import BlockRV, LoopRV, Schedule


def schedule_skinny_gemm(schedule: Schedule, info: BlockInfo, target: _core.Target, sampler: Sampler) -> bool:
    """Whether it was such a product, and is scheduled."""
    tile = _tile(info, target, SKINNY_VECTORS) or _tile(info, target)
    steps = _steps(info, SKINNY_STEPS)
    if steps is None or tile is None:
        return False
    if sampler.choose(2):
        return False
    width = bits_of(info.store.buffer.dtype) // 8
    # A line is two vectors of 256 bits: of those only every other one is in two lines.
    enough = SKINNY_COPY_ROWS * (2 if target.vector_bits < 512 else 1)
    many = math.prod(info.extent(i) for i in info.spatial if i != tile.axis) >= enough
    copies = sampler.choose(2) == (0 if many else 1)
    if copies:
        most = int(SKINNY_L1_SHARE * target.l1_bytes) // (tile.columns * width)
        steps = _steps(info, min(most, SKINNY_MOST_STEPS)) or steps
    else:
        tile = _tile(info, target) or tile
    *others, last = (info.axes[i].loop for i in info.reduced)
    parts, _ = schedule.split(last, [None, steps])
    schedule.reorder(*(info.axes[i].loop for i in info.spatial), *others, parts)
    sums = schedule.rfactor(schedule.fuse(*others, parts) if others else parts, 0)
    *own, parts, inner = schedule.get_loops(sums)
    by_axis = dict(zip(info.spatial, own, strict=True))
    together = _groups(info, tile, steps, target)
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
    if copies:
        _copy(schedule, info, tile, sums, column)
    elif bytes_of(info, _matrix(info, tile)) > L3_SHARE_BYTES and tile.columns * width >= SKINNY_PREFETCH_BYTES:
        # Pieces of rows that are far apart are not foreseen by a processor; short ones are too many to ask for.
        try_step(schedule.prefetch_at, column, sums, _number(schedule, info, tile, sums), 1)
    for block in (info.block, begin):
        loops = schedule.get_loops(block)
        try_step(schedule.vectorize, loops[-1])
        for loop in loops[len(outer) + 3 : -1]:
            try_step(schedule.unroll, loop)
    schedule.vectorize(each_column)
    for loop in each:
        schedule.unroll(loop)
    parallelize(schedule, [chunk], math.prod(axis.extent for axis in info.axes), target)
    return True


def _number(schedule: Schedule, info: BlockInfo, tile: RegisterTile, block: BlockRV) -> int:
    """Of the matrix among the buffers that a block reads."""
    return number_of_read(schedule, block, _matrix(info, tile).buffer)


def _matrix(info: BlockInfo, tile: RegisterTile) -> Operand:
    return next(read for read in info.reads if read.varies(tile.axis))


def _copy(schedule: Schedule, info: BlockInfo, tile: RegisterTile, sums: BlockRV, column: LoopRV) -> None:
    """Copies a part of a group of columns before its rows are gone through."""
    number = _number(schedule, info, tile, sums)
    panel = schedule.cache_read(sums, number, "global", consumer_blocks=[sums])
    schedule.compute_at(panel, column)
    pieces = schedule.split(schedule.get_loops(panel)[-1], [None, tile.lanes])
    schedule.vectorize(pieces[1])
    schedule.unroll(pieces[0])


def _steps(info: BlockInfo, best: int) -> int | None:
    """Of a part, that leave no rest; near the best number of them."""
    if not all(axis.is_fixed for axis in info.axes) or info.residue_axes:
        return None
    length = info.extent(info.reduced[-1])
    ways = [steps for steps in range(SKINNY_FEWEST_STEPS, SKINNY_MOST_STEPS + 1) if length % steps == 0]
    sum_of = math.prod(info.extent(i) for i in info.reduced)
    if sum_of < SKINNY_REDUCTION or not ways or not info.store.buffer.dtype.startswith("float"):
        return None
    return min(ways, key=lambda steps: abs(math.log(steps / best)))


def _tile(info: BlockInfo, target: _core.Target, vectors: int | None = None) -> RegisterTile | None:
    """The best one, of so many vectors, where the product is one of few rows with a large matrix."""
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
    few = SKINNY_FEWEST_ROWS <= math.prod(info.extent(i) for i in rows) <= SKINNY_MOST_ROWS
    reduces = all(matrix.varies(i) for i in info.reduced if info.extent(i) > 1) and other.varies(info.reduced[-1])
    is_large = bytes_of(info, matrix) > SKINNY_L2_SIZES * target.l2_bytes
    return tile if few and reduces and is_large and not other.varies(tile.axis) else None


def _work(info: BlockInfo, tile: RegisterTile) -> float:
    """What is loaded for a multiply-add, and what is done beside those that are needed."""
    rows = math.prod(size for _, size in tile.rows)
    done = math.prod(math.ceil(info.extent(i) / size) * size / info.extent(i) for i, size in tile.rows)
    return done * (rows + tile.vectors) / (rows * tile.vectors)


def _groups(info: BlockInfo, tile: RegisterTile, steps: int, target: _core.Target) -> int:
    """Of columns that one thread goes through for each part of the sum: its share of them, or as many as have that part
    in the second level."""
    groups = math.ceil(info.extent(tile.axis) / tile.columns)
    one = steps * tile.columns * bits_of(info.store.buffer.dtype) // 8
    fewest = math.ceil(groups / max(1, int(SKINNY_L2_SHARE * target.l2_bytes) // one))
    chunks = min(max(target.num_cores, fewest), groups)
    even = next((count for count in range(chunks, 2 * chunks + 1) if groups % count == 0), None)
    return groups // even if even else math.ceil(groups / chunks)
