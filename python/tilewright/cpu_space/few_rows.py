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
from tilewright.cpu_space.draw import Draw, attempt
from tilewright.cpu_space.facts import Facts, Operand, number_of_read
from tilewright.cpu_space.plain import share
from tilewright.cpu_space.register_tile import RegisterTile, bits_of, bytes_of, register_tiles
from tilewright.schedule import BlockRV, LoopRV, Schedule

#: of the second level that the rows of the matrix take which one part reads
_SHARE = 0.6
#: rows that pay for adding up results in several parts, and for a copy of each
_FEWEST_ROWS, _MOST_ROWS, _ROWS_TO_COPY = 8, 128, 24
#: of the first level that such a copy takes, and its vectors side by side
_SHARE_OF_COPY, _VECTORS = 0.7, 4
#: times the second level that a matrix takes of which most is not there
_LARGE = 1.4
#: bytes of which no third level keeps most for one core
_FROM_MEMORY = 2**25
#: bytes of a row that are asked for ahead, at least
_PIECE = 256
#: steps of a part, the best number of them, with a copy too, and those that a sum has at least
_FEWEST, _STEPS, _MOST, _LEAST_SUM = 32, 64, 128, 256


def schedule_few_rows(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> bool:
    """Whether it was such a product, and is scheduled."""
    tile = _tile(facts, target, _VECTORS) or _tile(facts, target)
    steps = _steps(facts, _STEPS)
    if steps is None or tile is None:
        return False
    if draw.choose(2):
        return False
    width = bits_of(facts.store.buffer.dtype) // 8
    # A line is two vectors of 256 bits: of those only every other one is in two lines.
    enough = _ROWS_TO_COPY * (2 if target.vector_bits < 512 else 1)
    many = math.prod(facts.extent(i) for i in facts.spatial if i != tile.axis) >= enough
    copies = draw.choose(2) == (0 if many else 1)
    if copies:
        most = int(_SHARE_OF_COPY * target.l1_bytes) // (tile.columns * width)
        steps = _steps(facts, min(most, _MOST)) or steps
    else:
        tile = _tile(facts, target) or tile
    *others, last = (facts.axes[i].loop for i in facts.reduced)
    parts, _ = schedule.split(last, [None, steps])
    schedule.reorder(*(facts.axes[i].loop for i in facts.spatial), *others, parts)
    sums = schedule.rfactor(schedule.fuse(*others, parts) if others else parts, 0)
    *own, parts, inner = schedule.get_loops(sums)
    by_axis = dict(zip(facts.spatial, own, strict=True))
    together = _groups(facts, tile, steps, target)
    chunk, column, each_column = schedule.split(by_axis[tile.axis], [None, together, tile.columns])
    outer, each = [], []
    for i, loop in by_axis.items():
        if i != tile.axis:
            row, within = schedule.split(loop, [None, tile.size(i)])
            outer.append(row)
            each.append(within)
    schedule.reorder(chunk, parts, column, *outer, inner, *each, each_column)
    schedule.reverse_compute_at(facts.block, outer[-1] if outer else column)
    schedule.set_scope(sums, 0, "local")
    begin = schedule.decompose_reduction(sums, inner)
    if copies:
        _copy(schedule, facts, tile, sums, column)
    elif bytes_of(facts, _matrix(facts, tile)) > _FROM_MEMORY and tile.columns * width >= _PIECE:
        # Pieces of rows that are far apart are not foreseen by a processor; short ones are too many to ask for.
        attempt(schedule.prefetch_at, column, sums, _number(schedule, facts, tile, sums), 1)
    for block in (facts.block, begin):
        loops = schedule.get_loops(block)
        attempt(schedule.vectorize, loops[-1])
        for loop in loops[len(outer) + 3 : -1]:
            attempt(schedule.unroll, loop)
    schedule.vectorize(each_column)
    for loop in each:
        schedule.unroll(loop)
    share(schedule, [chunk], math.prod(axis.extent for axis in facts.axes), target)
    return True


def _number(schedule: Schedule, facts: Facts, tile: RegisterTile, block: BlockRV) -> int:
    """Of the matrix among the buffers that a block reads."""
    return number_of_read(schedule, block, _matrix(facts, tile).buffer)


def _matrix(facts: Facts, tile: RegisterTile) -> Operand:
    return next(read for read in facts.reads if read.varies(tile.axis))


def _copy(schedule: Schedule, facts: Facts, tile: RegisterTile, sums: BlockRV, column: LoopRV) -> None:
    """Copies a part of a group of columns before its rows are gone through."""
    number = _number(schedule, facts, tile, sums)
    panel = schedule.cache_read(sums, number, "global", consumer_blocks=[sums])
    schedule.compute_at(panel, column)
    pieces = schedule.split(schedule.get_loops(panel)[-1], [None, tile.lanes])
    schedule.vectorize(pieces[1])
    schedule.unroll(pieces[0])


def _steps(facts: Facts, best: int) -> int | None:
    """Of a part, that leave no rest; near the best number of them."""
    if not all(axis.is_fixed for axis in facts.axes) or facts.phases:
        return None
    length = facts.extent(facts.reduced[-1])
    ways = [steps for steps in range(_FEWEST, _MOST + 1) if length % steps == 0]
    sum_of = math.prod(facts.extent(i) for i in facts.reduced)
    if sum_of < _LEAST_SUM or not ways or not facts.store.buffer.dtype.startswith("float"):
        return None
    return min(ways, key=lambda steps: abs(math.log(steps / best)))


def _tile(facts: Facts, target: _core.Target, vectors: int | None = None) -> RegisterTile | None:
    """The best one, of so many vectors, where the product is one of few rows with a large matrix."""
    even = [
        tile
        for tile in register_tiles(facts, target)
        if tile.copied is None and facts.divides(tile.columns, tile.axis) and vectors in (None, tile.vectors)
    ]
    tile = min(even, key=lambda tile: _work(facts, tile), default=None)
    if tile is None or len(facts.reads) != 2 or facts.store.strides[tile.axis] != 1:
        return None
    rows = [i for i in facts.spatial if i != tile.axis]
    matrix = next((read for read in facts.reads if read.varies(tile.axis)), None)
    if matrix is None or matrix.strides[tile.axis] != 1 or any(matrix.varies(i) for i in rows):
        return None
    other = next(read for read in facts.reads if read is not matrix)
    few = _FEWEST_ROWS <= math.prod(facts.extent(i) for i in rows) <= _MOST_ROWS
    reduces = all(matrix.varies(i) for i in facts.reduced if facts.extent(i) > 1) and other.varies(facts.reduced[-1])
    is_large = bytes_of(facts, matrix) > _LARGE * target.l2_bytes
    return tile if few and reduces and is_large and not other.varies(tile.axis) else None


def _work(facts: Facts, tile: RegisterTile) -> float:
    """What is loaded for a multiply-add, and what is done beside those that are needed."""
    rows = math.prod(size for _, size in tile.rows)
    done = math.prod(math.ceil(facts.extent(i) / size) * size / facts.extent(i) for i, size in tile.rows)
    return done * (rows + tile.vectors) / (rows * tile.vectors)


def _groups(facts: Facts, tile: RegisterTile, steps: int, target: _core.Target) -> int:
    """Of columns that one thread goes through for each part of the sum: its share of them, or as many as have that part
    in the second level."""
    groups = math.ceil(facts.extent(tile.axis) / tile.columns)
    one = steps * tile.columns * bits_of(facts.store.buffer.dtype) // 8
    fewest = math.ceil(groups / max(1, int(_SHARE * target.l2_bytes) // one))
    chunks = min(max(target.num_cores, fewest), groups)
    even = next((count for count in range(chunks, 2 * chunks + 1) if groups % count == 0), None)
    return groups // even if even else math.ceil(groups / chunks)
