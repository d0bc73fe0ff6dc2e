"""Vectorize blocks without a reduction: elementwise operations and data movement."""

from __future__ import annotations

import math

from tilewright import ir
from tilewright.heuristics.block_info import BlockInfo, clamps_or_wraps, is_conditional
from tilewright.heuristics.cpu.execution import parallelize
from tilewright.heuristics.cpu.parameters import TRANSPOSED_LANES, TRANSPOSED_SIDE, UNROLLED_PERIODS
from tilewright.heuristics.nested_schedule import NestedSchedule
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def row_axis(info: BlockInfo) -> int | None:
    """Return the axis along which results are contiguous."""
    return next((i for i in info.spatial if info.store.strides[i] == 1 and info.extent(i) > 1), None)


def is_contiguous(match: Match) -> bool:
    """Return whether all operands are contiguous in the order of the loops, and rows do not fill whole vectors."""
    info = match.info
    axis = row_axis(info)
    if axis is None or info.parts or len(info.axes) < 2 or not info.extent(axis) % (4 * match.lanes):
        return False
    step = 1
    for i in reversed(range(len(info.axes))):
        if not info.axes[i].is_fixed or any(each.strides[i] != step for each in (info.store, *info.reads)):
            return False
        step *= info.extent(i)
    return True


def crossed_axis(info: BlockInfo) -> int | None:
    """Return an axis along which an operand is contiguous, if that operand is strided along the results."""
    axis = row_axis(info)
    for read in info.reads if axis is not None else ():
        if read.strides[axis or 0] not in (0, 1):
            for i in reversed(range(len(info.axes))):
                if i != axis and read.strides[i] == 1 and info.extent(i) >= 4:
                    return i
    return None


def is_transposed(match: Match) -> bool:
    """Return whether an operand is contiguous along another axis than the results."""
    axis = row_axis(match.info)
    return axis is not None and crossed_axis(match.info) is not None and match.info.extent(axis) >= match.lanes


def reverses_or_clamps(match: Match) -> bool:
    """Return whether an operand is indexed backward, clamped or wrapped along the results."""
    info, axis = match.info, row_axis(match.info)
    if axis is None:
        return False
    backward = any((read.strides[axis] or 0) < 0 for read in info.reads)
    return (backward and is_conditional(match.schedule.get(info.block))) or any(
        clamps_or_wraps(read, info.axes[axis].var) for read in info.reads
    )


def has_short_rows(match: Match) -> bool:
    """Return whether a row fills less than half of a vector."""
    info, axis = match.info, row_axis(match.info)
    return axis is not None and len(info.axes) > 1 and info.axes[axis].is_fixed and 2 * info.extent(axis) < match.lanes


def schedule_contiguous(match: Match) -> bool:
    """Fuse all loops into one: no vector is cut off at the end of each short row."""
    schedule, info, work = match.schedule, match.info, _work(match)
    first, vector = schedule.split(schedule.fuse(*info.loops(range(len(info.axes)))), [None, 4 * match.lanes])
    try_step(schedule.vectorize, vector)
    parallelize(schedule, [first], work, match.target)
    return True


def schedule_transposed(match: Match) -> bool:
    """Copy squares that stay in L1 while they are read along the other dimension; lowering transposes their smaller
    squares in registers."""
    schedule, info, work = match.schedule, match.info, _work(match)
    axis, crossed = row_axis(info), crossed_axis(info)
    assert axis is not None and crossed is not None
    side = TRANSPOSED_SIDE * (1, 2, 4)[match.sampler.choose(3)]
    rows = schedule.split(info.axes[crossed].loop, [None, min(side, info.extent(crossed))])
    columns = schedule.split(info.axes[axis].loop, [None, min(match.lanes, TRANSPOSED_LANES)])
    rest = info.loops(i for i in range(len(info.axes)) if i not in (axis, crossed))
    schedule.reorder(*rest, rows[0], columns[0], rows[1], columns[1])
    try_step(schedule.vectorize, columns[1])
    parallelize(schedule, [*rest, rows[0]], work, match.target)
    return True


def schedule_boundary(match: Match) -> bool:
    """Schedule all loops but the row: lowering splits its loop where indices turn back, and vectorizes the interior."""
    work = _work(match)
    outer, _ = _row_last(match)
    parallelize(match.schedule, outer, work, match.target)
    return True


def schedule_short_rows(match: Match) -> bool:
    """Schedule blocks whose rows fill no vector: lowering makes vectors across rows."""
    schedule, info, target, work = match.schedule, match.info, match.target, _work(match)
    outer, _ = _row_last(match)
    last = [i for i in range(len(info.axes)) if i != row_axis(info)][-1]
    if target.num_cores > 1 and info.axes[last].is_fixed and info.extent(last) >= 4 * match.lanes:
        outer[-1], _ = schedule.split(outer[-1], [None, 4 * match.lanes])
        parallelize(schedule, outer, work, target)
    return True


def schedule_rows(match: Match) -> bool:
    """Vectorize along the results, other loops in parallel."""
    schedule, info, lanes, work = match.schedule, match.info, match.lanes, _work(match)
    axis = row_axis(info)
    if axis is None:
        return False
    outer, vector = _row_last(match)
    is_fixed = info.axes[axis].is_fixed
    period = math.gcd(info.periods[axis], 4 * lanes)
    if is_fixed and period >= lanes and info.extent(axis) > period:
        # Each group of adjacent elements has its own scale, so no vector may span two groups.
        first, vector = schedule.split(vector, [None, period])
        if outer and info.extent(axis) <= UNROLLED_PERIODS * period:
            # Conditions on the group (as on the half of an attention head) become constant.
            schedule.unroll(first)
        outer = outer or [first]
    elif not is_fixed or (not outer and info.extent(axis) > 4 * lanes):
        first, vector = schedule.split(vector, [None, 4 * lanes])
        # A loop with a remainder is not fused: the remainder of a fused loop cannot be peeled.
        outer = outer if outer and not is_fixed else [first]
    try_step(schedule.vectorize, vector)
    parallelize(schedule, outer, work, match.target)
    return True


def _row_last(match: Match) -> tuple[list[LoopRV], LoopRV]:
    """Make the row the innermost loop; return the other loops and the row."""
    info, axis = match.info, row_axis(match.info)
    assert axis is not None
    outer, row = info.loops(i for i in range(len(info.axes)) if i != axis), info.axes[axis].loop
    if axis != len(info.axes) - 1:
        match.schedule.reorder(*outer, row)
    return outer, row


def _work(match: Match) -> int:
    """Return the number of elements; doubled if a consumer is parallel, because its threads then find the elements that
    they computed in their own caches."""
    schedule, info = match.schedule, match.info
    shared = any(_is_parallel(schedule, consumer) for consumer in schedule.get_consumers(info.block))
    return info.work * (2 if shared else 1)


def _is_parallel(schedule: Schedule, block: BlockRV) -> bool:
    if isinstance(schedule, NestedSchedule):
        return True
    loops = schedule.get_loops(block)
    return bool(loops) and bool(schedule.get(loops[0]).kind == ir.ForKind.PARALLEL)
