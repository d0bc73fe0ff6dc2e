"""Products of few rows with a matrix that no near cache holds: each of its rows is read along memory while it passes,
some steps of the sum at a time, and sums are added to the results as they lie.

    for k_0, j_0, i_0:                      k_0: parts of the sum, of about 64 steps
        sums[i_1, j_1] = 0                  in registers
        for k_1: sums[i_1, j_1] += A[i, k] * B[k, j]
        C[i, j] += sums[i_1, j_1]

A tile that goes through all of the sum would touch as many pages as there are rows of the matrix, again for each group
of columns, and a copy takes longer than so few rows are worth.
"""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.cpu_space.draw import Draw, attempt
from tilewright.cpu_space.facts import Facts, Operand
from tilewright.cpu_space.plain import share
from tilewright.cpu_space.register_tile import RegisterTile, bits_of, register_tiles
from tilewright.schedule import Schedule

#: of the second level that the rows of the matrix take which one part reads
_SHARE = 0.6
#: rows that pay for no copy, and those that pay for adding up results in several parts
_FEWEST_ROWS, _MOST_ROWS = 8, 128
#: times the second level that a matrix takes of which most is not there
_LARGE = 1.5
#: steps of a part, the best number of them, and those that a sum has at least
_FEWEST, _STEPS, _MOST, _LEAST_SUM = 32, 64, 128, 256


def schedule_few_rows(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> bool:
    """Whether it was such a product, and is scheduled."""
    steps = _steps(facts)
    tile = _tile(facts, target)
    if steps is None or tile is None:
        return False
    part = steps * facts.extent(tile.axis) * bits_of(facts.store.buffer.dtype) // 8
    if part > _SHARE * target.l2_bytes or draw.choose(2):
        return False
    rows = next(i for i in facts.spatial if facts.extent(i) > 1 and i != tile.axis)
    spatial = [facts.axes[i].loop for i in facts.spatial]
    parts, _ = schedule.split(facts.axes[facts.reduced[0]].loop, [None, steps])
    sums = schedule.rfactor(parts, 0)
    *own, parts, inner = schedule.get_loops(sums)
    assert len(own) == len(spatial)
    by_axis = dict(zip(facts.spatial, own, strict=True))
    around = [loop for i, loop in by_axis.items() if i not in (rows, tile.axis)]
    row, each_row = schedule.split(by_axis[rows], [None, tile.size(rows)])
    chunk, column, each_column = schedule.split(by_axis[tile.axis], [None, _groups(facts, tile, target), tile.columns])
    schedule.reorder(*around, chunk, parts, column, row, inner, each_row, each_column)
    schedule.reverse_compute_at(facts.block, row)
    schedule.set_scope(sums, 0, "local")
    begin = schedule.decompose_reduction(sums, inner)
    for block in (facts.block, begin):
        loops = schedule.get_loops(block)
        attempt(schedule.vectorize, loops[-1])
        attempt(schedule.unroll, loops[-2])
    schedule.vectorize(each_column)
    schedule.unroll(each_row)
    share(schedule, [*around, chunk], math.prod(axis.extent for axis in facts.axes), target)
    return True


def _steps(facts: Facts) -> int | None:
    """Of a part, that leave no rest; near the best number of them."""
    if len(facts.reduced) != 1 or not all(axis.is_fixed for axis in facts.axes) or facts.phases:
        return None
    length = facts.extent(facts.reduced[0])
    ways = [steps for steps in range(_FEWEST, _MOST + 1) if length % steps == 0]
    if length < _LEAST_SUM or not ways or not facts.store.buffer.dtype.startswith("float"):
        return None
    return min(ways, key=lambda steps: abs(math.log(steps / _STEPS)))


def _tile(facts: Facts, target: _core.Target) -> RegisterTile | None:
    """The best one without a copy and without tails, where the product is one of few rows with a large matrix."""
    axes = [i for i in facts.spatial if facts.extent(i) > 1]
    tiles = [tile for tile in register_tiles(facts, target) if tile.copied is None]
    even = [tile for tile in tiles if all(facts.divides(tile.size(i), i) for i in axes)]
    tile = min(even, key=_loads_of_a_product, default=None)
    if len(axes) != 2 or len(facts.reads) != 2 or tile is None or facts.store.strides[tile.axis] != 1:
        return None
    rows = next(i for i in axes if i != tile.axis)
    matrix = next((read for read in facts.reads if read.varies(tile.axis)), None)
    vectors = next((read for read in facts.reads if read.varies(rows)), None)
    if matrix is None or vectors is None or matrix is vectors or not _FEWEST_ROWS <= facts.extent(rows) <= _MOST_ROWS:
        return None
    is_large = _bytes(facts, matrix) > _LARGE * target.l2_bytes
    return tile if is_large and matrix.strides[tile.axis] == 1 and vectors.varies(facts.reduced[0]) else None


def _loads_of_a_product(tile: RegisterTile) -> float:
    rows = math.prod(size for _, size in tile.rows)
    return (rows + tile.vectors) / (rows * tile.vectors)


def _bytes(facts: Facts, read: Operand) -> int:
    elements = math.prod(axis.extent for i, axis in enumerate(facts.axes) if read.varies(i))
    return elements * bits_of(read.buffer.dtype) // 8


def _groups(facts: Facts, tile: RegisterTile, target: _core.Target) -> int:
    """Of columns that one thread goes through for each part of the sum."""
    groups = math.ceil(facts.extent(tile.axis) / tile.columns)
    threads = min(target.num_cores, groups)
    even = next((count for count in range(threads, 2 * threads + 1) if groups % count == 0), None)
    return groups // even if even else math.ceil(groups / threads)
