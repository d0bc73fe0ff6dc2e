"""Sums over rows with data-dependent lengths, as those of a CSR matrix, in vector accumulators."""

from __future__ import annotations

import math
from typing import Any

from tilewright import _core, ir
from tilewright.heuristics.block_info import Sizes, constant, loops_of_axes
from tilewright.heuristics.cpu.parameters import (
    PREFETCHED_AHEAD_BYTES,
    PREFETCHED_POSITIONS,
    PREFETCHED_ROW_BYTES,
)
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.support.nodes import nodes_of
from tilewright.support.numpy_dtype import numpy_dtype


def schedule_ragged_rows(schedule: Schedule, rows: BlockRV, target: _core.Target, sizes: Sizes) -> None:
    """Schedule a block over rows that contains blocks, at least one of which has a loop with a data-dependent extent.

    The columns of a row are unrolled vectors inside that loop, so that they stay in registers. Elements that indices
    select from a large operand are prefetched across the ends of rows. Each thread gets rows with about as many
    elements as the others.
    """
    if not _is_ragged(schedule.get(rows)):
        return
    above = schedule.get_loops(rows)
    inside = schedule.get_child_blocks(rows)
    steps = [_ragged_loop(schedule, block) for block in inside]
    if not above or all(loop is None for loop in steps):
        return
    lengths = [buffer for loop in steps if loop is not None for buffer in buffers_in(schedule.get(loop).extent)]
    for block, loop in zip(inside, steps, strict=True):
        try_step(_vectorize_columns, schedule, block, loop, target)
        if loop is not None:
            _prefetch(schedule, block, loop, target, sizes)
    is_shared = schedule.get(above[0]).kind == ir.ForKind.PARALLEL  # among threads, by columns
    if target.num_cores > 1 and not is_shared and try_step(_run_in_parallel, schedule, above[0]):
        reads = [region.buffer for region in schedule.get(rows).reads]
        for position, read in enumerate(reads):
            if any(read.same_as(buffer) for buffer in lengths) and try_step(
                _balance, schedule, above[0], rows, position
            ):
                break


def _is_ragged(rows: ir.Block) -> bool:
    """Return whether a loop inside the block has a data-dependent extent. Checked first, to record no steps in other
    programs' traces."""
    return any(buffers_in(loop.extent) for loop in nodes_of(rows.body, ir.For))


def _ragged_loop(schedule: Schedule, block: BlockRV) -> LoopRV | None:
    """Return the innermost loop around a block, in its scope, that has a data-dependent extent."""
    loops = schedule.get_loops(block)
    return next((loop for loop in reversed(loops) if buffers_in(schedule.get(loop).extent)), None)


def buffers_in(extent: Any) -> list[ir.Buffer]:
    """Return the buffers that an extent reads."""
    return [load.buffer for load in nodes_of(extent, ir.BufferLoad)]


def _vectorize_columns(schedule: Schedule, block: BlockRV, steps: LoopRV | None, target: _core.Target) -> None:
    """Vectorize the columns, unrolled as far as accumulators fit in registers. The loop over these panels is moved
    outside of the steps."""
    node, loops = schedule.get(block), schedule.get_loops(block)
    if not loops or not node.writes or not node.writes[0].region:
        return  # each row has only one result
    columns = loops[-1]
    count, write = constant(schedule.get(columns).extent), node.writes[0]
    lanes = target.vector_bits // (8 * numpy_dtype(write.buffer.dtype).itemsize)
    if len(node.writes) != 1 or count is None:
        return
    if _is_reduced(schedule, block, columns):
        if count >= lanes:
            schedule.vectorize(columns)  # partial sums in vector accumulators
        return
    if count % lanes or not indexes_last_dimension(schedule, block, columns):
        return
    unroll_factor = max((n for n in range(1, target.vector_registers // 2 + 1) if count // lanes % n == 0), default=1)
    panel, accumulators, vector = schedule.split(columns, [None, unroll_factor, lanes])
    schedule.vectorize(vector)
    schedule.unroll(accumulators)
    if steps is not None and count > unroll_factor * lanes:
        schedule.reorder(panel, steps)


def _is_reduced(schedule: Schedule, block: BlockRV, loop: LoopRV) -> bool:
    """Return whether the loop is a reduction, as over the columns of two rows that are multiplied."""
    kinds = {
        axis.iter_type
        for axis, of_axis in zip(schedule.get(block).iter_vars, loops_of_axes(schedule, block), strict=False)
        if schedule.get(of_axis).same_as(schedule.get(loop))
    }
    return kinds == {ir.IterType.COMM_REDUCE}


def indexes_last_dimension(schedule: Schedule, block: BlockRV, columns: LoopRV) -> bool:
    """Return whether the loop variable moves the last dimension of the buffer that the block writes."""
    node = schedule.get(block)
    last, loops = node.writes[0].region[-1].min, loops_of_axes(schedule, block)
    return any(
        axis.var.same_as(last) and schedule.get(loop).same_as(schedule.get(columns))
        for axis, loop in zip(node.iter_vars, loops, strict=False)
    )


def _prefetch(schedule: Schedule, block: BlockRV, loop: LoopRV, target: _core.Target, sizes: Sizes) -> None:
    """Prefetch long rows that indices select from an operand larger than L2; if sizes are symbolic, the kernel decides
    at run time. For operands in L2, prefetches take longer than the loads that they save, and a short row is loaded as
    fast as it is prefetched."""
    value = sizes.value if sizes.key else constant
    for position, region in enumerate(schedule.get(block).reads):
        extents = [value(extent) for extent in region.buffer.shape]
        selected = [bool(buffers_in(side.min)) for side in region.region]
        item = numpy_dtype(region.buffer.dtype).itemsize
        rest = (extent for extent, by_data in zip(extents, selected, strict=True) if not by_data)
        row = math.prod(extent or 0 for extent in rest) * item
        if not any(selected) or row < PREFETCHED_ROW_BYTES:
            continue
        is_open = any(extent is None for extent in extents)
        if is_open or math.prod(extent or 0 for extent in extents) * item > target.l2_bytes:
            min_bytes = (target.l2_bytes + 1,) if is_open else ()
            positions = max(1, min(PREFETCHED_POSITIONS, PREFETCHED_AHEAD_BYTES // row))
            try_step(schedule.prefetch_indirect, loop, block, position, positions, *min_bytes)


def _run_in_parallel(schedule: Schedule, loop: LoopRV) -> bool:
    schedule.parallel(loop)
    return True


def _balance(schedule: Schedule, loop: LoopRV, rows: BlockRV, position: int) -> bool:
    schedule.balance(loop, rows, position)
    return True
