"""Reductions: the threads of a block share a long one; otherwise each thread computes one result."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.heuristics.block_info import BlockInfo, is_argreduce, is_elementary, is_spatial
from tilewright.heuristics.gpu.bind_blocks import bind_block
from tilewright.heuristics.gpu.bind_loops import bind_blocks, share, threads_for
from tilewright.heuristics.gpu.limits import limits_of
from tilewright.heuristics.gpu.parameters import (
    BLOCK_THREADS,
    BUSY_BLOCKS,
    COLUMNS,
    MANY_RESULTS,
    MOST_PARTS,
    SHARED_STEPS,
    STEPS_PER_BLOCK,
)
from tilewright.heuristics.loops import fuse_all
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV


def is_argreduce_block(match: Match) -> bool:
    """Return whether the block is an argmin or argmax.

    It must return the first of equal values, which a parallel reduction tree does not guarantee.
    """
    return is_argreduce(match.schedule.get(match.info.block))


def requires_serial_order(match: Match) -> bool:
    """Return whether threads cannot share the steps of the reduction, for instance because it does not start from the
    identity element."""
    return not _core.threads_may_reduce(match.schedule.get(match.info.block))


def is_long(match: Match) -> bool:
    """Return whether threads should share a reduction: it is long, and one thread per result would not occupy the
    device."""
    info = match.info
    is_shared = reads_along_reduction(info) or info.size(info.spatial) < MANY_RESULTS
    return info.size(info.reduced) >= SHARED_STEPS and is_shared


def is_column_reduction(match: Match) -> bool:
    """Return whether adjacent results, and not adjacent reduction steps, read contiguous elements."""
    column = _column(match.info)
    return column is not None and not reads_along_reduction(match.info) and match.info.extent(column) >= COLUMNS


def has_few_results(match: Match) -> bool:
    """Return whether one block per result would not occupy the device, and each reduction is long enough to split."""
    info = match.info
    is_fixed = all(info.axes[i].is_fixed for i in info.reduced)
    return is_fixed and needs_split(info.size(info.spatial), info.size(info.reduced))


def needs_split(results: int, steps: int) -> bool:
    """Return whether each reduction should be split among several thread blocks."""
    return results < BUSY_BLOCKS and steps >= 2 * STEPS_PER_BLOCK


def _column(info: BlockInfo) -> int | None:
    return next((i for i in info.spatial if info.store.strides[i] == 1), None)


def reads_along_reduction(info: BlockInfo) -> bool:
    """Return whether adjacent reduction steps read contiguous elements."""
    return any(read.strides[i] == 1 for read in info.reads for i in info.reduced)


def split_among_blocks(match: Match) -> BlockInfo:
    """Split a long reduction by rfactor: blocks compute partial results; return the reduction of these."""
    schedule, info = match.schedule, match.info
    reduced = [i for i, axis in enumerate(info.axes) if not axis.is_spatial]
    steps = info.size(reduced)
    schedule.reorder(*info.loops(info.spatial), *info.loops(reduced))
    loop = fuse_all(schedule, info.loops(reduced))
    part, _ = schedule.split(loop, [min(MOST_PARTS, math.ceil(steps / STEPS_PER_BLOCK)), None])
    parts = try_step(schedule.rfactor, part, 0)
    if parts is None:
        return match.again()
    spatial = len(schedule.get_loops(parts)) - 1
    _share_row(match, parts, spatial, math.ceil(steps / STEPS_PER_BLOCK))
    return match.again()


def schedule_columns(match: Match) -> bool:
    """Reduce COLUMNS columns per block; its threads share the rows."""
    schedule, info = match.schedule, match.info
    column = _column(info)
    rows = min(limits_of(match.target).threads, BLOCK_THREADS) // COLUMNS
    if column is None or rows < 2:
        return False
    columns, thread = schedule.split(info.axes[column].loop, [None, COLUMNS])
    others = info.loops(i for i in info.spatial if i != column)
    reduced = info.loops(i for i, axis in enumerate(info.axes) if not axis.is_spatial)
    schedule.reorder(*others, columns, thread, *reduced)
    schedule.bind(fuse_all(schedule, [*others, columns]), "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")
    share(schedule, reduced, rows, "threadIdx.y")
    return True


def schedule_row(match: Match) -> bool:
    """Reduce one row per block; its threads share the reduction steps."""
    info = match.info
    match.schedule.reorder(
        *info.loops(info.spatial), *info.loops(i for i, axis in enumerate(info.axes) if not axis.is_spatial)
    )
    _share_row(match, info.block, len(info.spatial), info.size(info.reduced))
    return True


def _share_row(match: Match, block: BlockRV, spatial: int, steps: int) -> None:
    schedule = match.schedule
    bind_blocks(schedule, block, spatial)
    threads = threads_for(steps, min(limits_of(match.target).threads, BLOCK_THREADS))
    share(schedule, schedule.get_loops(block)[1:], threads)


def schedule_results(match: Match) -> bool:
    """Reduce one result per thread, with cheap producers such as padding inlined."""
    for producer in match.schedule.get_producers(match.info.block):
        node = match.schedule.get(producer)
        if is_spatial(node) and not is_elementary(node) and len(match.schedule.get_consumers(producer)) == 1:
            try_step(match.schedule.compute_inline, producer)
    bind_block(match.schedule, match.info.block, limits_of(match.target))
    return True
