"""Tiled products: the threads of a block copy the operands of a tile into shared memory, some steps of the reduction at
a time, and each thread accumulates a register tile.

    for block in T.thread_binding(..., "blockIdx.x"):            a tile of results
      for thread in T.thread_binding(256, "threadIdx.x"):        a register tile each
        for k_0 in range(...):
          A_shared[...], B_shared[...] = A[...], B[...]          all threads fetch together
          for k_1, i, j in T.grid(16, 4, 4):
            C_local[i, j] += A_shared[...] * B_shared[...]
        C[...] = C_local[...]

Source: V. Volkov, J. Demmel: Benchmarking GPUs to tune dense linear algebra (SC 2008).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tilewright import ir
from tilewright.heuristics.block_info import BlockInfo, epilogue_or_copy, is_spatial, number_of_read
from tilewright.heuristics.gpu.all_or_nothing import all_or_nothing
from tilewright.heuristics.gpu.bind_loops import own_loops, share
from tilewright.heuristics.gpu.limits import limits_of
from tilewright.heuristics.gpu.parameters import (
    BLOCK_THREADS,
    BUSY_BLOCKS,
    FETCHED_STEPS,
    MOST_FETCHED_STEPS,
    TILES,
)
from tilewright.heuristics.loops import fuse_all
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule

#: the axes of a grid, that of neighboring blocks first
BLOCK_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z")


@dataclass(frozen=True)
class Tile:
    """The tiling of a product.

    Attributes:
        threads: threads per block along each spatial axis.
        results: results per thread along each spatial axis.
        steps: reduction steps per fetch along each reduction axis.
    """

    threads: dict[int, int]
    results: dict[int, int]
    steps: dict[int, int]

    @property
    def block_threads(self) -> int:
        """Return the number of threads per block."""
        return math.prod(self.threads.values())

    def blocks(self, info: BlockInfo) -> int:
        """Return the number of blocks of the grid."""
        return math.prod(math.ceil(info.extent(i) / (n * self.results[i])) for i, n in self.threads.items())


def sides_of(info: BlockInfo) -> tuple[list[int], list[int]]:
    """Return the spatial axes of the left operand (M) and of the others (N).

    Batch axes, along which all operands vary, belong to neither side. Both sides are empty unless there are two
    different operands.
    """
    buffers = [read.buffer for read in info.reads]
    if len(buffers) < 2 or any(a.same_as(b) for n, a in enumerate(buffers) for b in buffers[:n]):
        return [], []
    first, others = info.reads[0], info.reads[1:]
    left = [i for i in info.spatial if first.varies(i) and not any(read.varies(i) for read in others)]
    right = [i for i in info.spatial if not first.varies(i)]
    return left, right


def has_two_sides(match: Match) -> bool:
    """Return whether M and N are both larger than 1."""
    return all(match.info.size(side) > 1 for side in sides_of(match.info))


def _filled(info: BlockInfo, side: Sequence[int], size: int) -> dict[int, int]:
    """Return a tile of about `size` results along the axes of one side, filling the innermost axes first."""
    taken = {}
    for i in reversed(side):
        extent = info.extent(i)
        taken[i] = extent if extent <= size and info.axes[i].is_fixed else min(size, 1 << (extent - 1).bit_length())
        taken[i] = max(taken[i], 1)
        size = max(1, size // taken[i])
    return taken


def _fetched_steps(info: BlockInfo) -> dict[int, int]:
    """Return the steps per fetch of each reduction axis: innermost first, whole axes while they fit."""
    steps, taken = {}, 1
    for n, i in enumerate(reversed([i for i, axis in enumerate(info.axes) if not axis.is_spatial])):
        extent = info.extent(i)
        if info.axes[i].is_fixed and taken * extent <= MOST_FETCHED_STEPS:
            steps[i] = extent
        else:
            steps[i] = FETCHED_STEPS if n == 0 else 1
        taken *= steps[i]
    return steps


def tile_of(info: BlockInfo, most_threads: int) -> Tile | None:
    """Return the largest tile whose grid still has BUSY_BLOCKS blocks, else the smallest; None if none fits."""
    left, right = sides_of(info)
    smallest = None
    for sizes, registers in TILES:
        results, threads = {}, {}
        for side, size, own in zip((left, right), sizes, registers, strict=True):
            for i, whole in _filled(info, side, size).items():
                results[i] = math.gcd(whole, own)
                own //= results[i]
                threads[i] = whole // results[i]
        for i in info.spatial:
            results.setdefault(i, 1)
            threads.setdefault(i, 1)
        tile = Tile(threads, results, _fetched_steps(info))
        if tile.block_threads > most_threads:
            continue
        smallest = tile
        if tile.blocks(info) >= BUSY_BLOCKS:
            break
    return smallest


def schedule_shared_tiles(match: Match) -> bool:
    """Schedule a product with shared-memory and register tiles."""
    tile = tile_of(match.info, min(limits_of(match.target).threads, BLOCK_THREADS))
    if tile is None:
        return False
    # A decomposed init removes the condition from the inner loop. At tails, some primitives refuse the two predicates
    # that this makes, so the init also stays in the block as a second choice.
    own_init = partial(_divide, info=match.info, tile=tile, has_own_init=True)
    return all_or_nothing(match.schedule, own_init) or all_or_nothing(
        match.schedule, partial(_divide, info=match.info, tile=tile, has_own_init=False)
    )


def _divide(schedule: Schedule, info: BlockInfo, tile: Tile, has_own_init: bool) -> None:
    write = epilogue_or_copy(schedule, info, len(info.spatial))
    blocks, threads, results = [], [], []
    outer: list[LoopRV] = []
    inner: list[LoopRV] = []
    for i in info.spatial:
        block, thread, result = schedule.split(info.axes[i].loop, [None, tile.threads[i], tile.results[i]])
        blocks.append(block)
        threads.append(thread)
        results.append(result)
    for i, steps in tile.steps.items():
        step, each = schedule.split(info.axes[i].loop, [None, steps])
        outer.insert(0, step)
        inner.insert(0, each)
    schedule.reorder(*blocks, *threads, *outer, *inner, *results)
    if has_own_init:
        # Before fuse: the bindings of the axes are still affine in the loops.
        schedule.decompose_reduction(info.block, outer[0])
    if all(info.axes[i].is_fixed for i in info.spatial) or len(blocks) > len(BLOCK_AXES):
        blocks = [fuse_all(schedule, blocks)]
    # In a fused loop, bindings are quotients by the extents. Little is proved of them if these are formulas, such as
    # `(n + 2) // 16 + 1`.
    for loop, axis in zip(reversed(blocks), BLOCK_AXES, strict=False):
        schedule.bind(loop, axis)
    thread = fuse_all(schedule, threads)
    schedule.bind(thread, "threadIdx.x")
    schedule.reverse_compute_at(write, thread, preserve_unit_loops=True)
    schedule.set_scope(info.block, 0, "local")
    for read in info.reads:
        # If the accessed region cannot be bounded by a box, threads read the operand from global memory.
        fetch = partial(_fetch, block=info.block, buffer=read.buffer, step=outer[-1], threads=tile.block_threads)
        all_or_nothing(schedule, fetch)
    for loop in results:
        schedule.unroll(loop)


def _fetch(schedule: Schedule, block: BlockRV, buffer: ir.Buffer, step: LoopRV, threads: int) -> None:
    """Fetch the operand of one reduction step cooperatively into shared memory."""
    copy = schedule.cache_read(block, number_of_read(schedule, block, buffer), "shared")
    for producer in schedule.get_producers(copy):
        # Elementwise producers such as padding and casts are computed during the copy.
        if is_spatial(schedule.get(producer)) and len(schedule.get_consumers(producer)) == 1:
            try_step(schedule.compute_inline, producer)
    schedule.compute_at(copy, step, preserve_unit_loops=True)
    share(schedule, own_loops(schedule, copy, step), threads)
