"""Reductions that are not contractions with a register tile: vector accumulators along the results or the reduction."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.heuristics.block_info import (
    BlockInfo,
    constant,
    epilogue_or_copy,
    fusible_epilogue,
    has_boundary,
    is_argreduce,
    size_of,
)
from tilewright.heuristics.cpu.accumulators import accumulator_tile, reduction_lanes
from tilewright.heuristics.cpu.execution import parallelize, split_vectors
from tilewright.heuristics.cpu.parameters import (
    ACCUMULATED_ROWS,
    GATHER_CYCLES,
    GEMV_VECTORS,
    PARALLEL_ELEMENTS,
    STEPS_PER_ELEMENT,
    THREAD_COLUMNS,
    UNROLLED_STEPS,
)
from tilewright.heuristics.loops import innermost, starts_with
from tilewright.heuristics.parameters import WINDOW_TERMS
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import LoopRV


def vectorized_result_axis(info: BlockInfo, target: _core.Target) -> int | None:
    """Return the axis along which results are contiguous, if lanes of adjacent results cost less than lanes of one
    result: operands are contiguous along that axis, or the reductions are short."""
    lanes = info.lanes(target)
    along = info.contiguous_axes(lanes)
    if not along or not info.reduced:
        return None
    axis, last = along[0], _contiguous_last(info)[-1]
    steps = info.size(info.reduced)
    # The lanes of one result are summed at its end.
    of_one = math.ceil(steps / lanes) * _load_cycles(info, last, lanes) + 2 * math.log2(lanes)
    of_several = steps / min(lanes, info.extent(axis)) * _load_cycles(info, axis, lanes)
    return axis if of_several < 0.8 * of_one else None


def vectorizes_results(match: Match) -> bool:
    """Return whether the lanes accumulate adjacent results."""
    return vectorized_result_axis(match.info, match.target) is not None


def is_argreduce_block(match: Match) -> bool:
    """Return whether the block is an argmin or argmax."""
    return is_argreduce(match.schedule.get(match.info.block))


def slides_over_boundary(match: Match) -> bool:
    """Return whether windows slide along the lanes and cross the boundary of the buffer that they read."""
    along = vectorized_result_axis(match.info, match.target)
    return along is not None and has_boundary(match.schedule.get(match.info.block), match.info, along)


def is_matrix_vector(match: Match) -> bool:
    """Return whether most of the work is loading an operand whose elements are used in one product each, as the matrix
    of a matrix-vector product."""
    info, target, along = match.info, match.target, vectorized_result_axis(match.info, match.target)
    if along is None:
        return False
    for read in info.reads:
        elements = size_of(read.buffer)
        if (
            elements is not None
            and read.strides[along] == 1
            and elements * read.width > target.l1_bytes
            and info.extent(along) * info.store.width * 8 > GEMV_VECTORS * target.vector_bits
            and info.work <= 1.5 * elements
            and all(read.varies(i) for i in (*info.spatial, *info.reduced) if info.extent(i) > 1)
        ):
            return True
    return False


def schedule_argreduce(match: Match) -> bool:
    """Schedule an argmin or argmax. Lowering vectorizes rows; for columns, adjacent ones are vectorized together."""
    schedule, info, along = match.schedule, match.info, vectorized_result_axis(match.info, match.target)
    spatial = info.loops(i for i in info.spatial if i != along)
    reduced = info.loops(info.reduced)
    vector = []
    if along is not None:
        column, lane = schedule.split(info.axes[along].loop, [None, 4 * match.lanes])
        spatial, vector = [*spatial, column], [lane]
    schedule.reorder(*spatial, *reduced, *vector)
    if vector:
        begin = try_step(schedule.decompose_reduction, info.block, reduced[0])
        for loop in (*vector, *innermost(schedule, begin)):
            try_step(schedule.vectorize, loop)
    parallelize(schedule, spatial, info.work // STEPS_PER_ELEMENT, match.target)
    return True


def schedule_boundary_window(match: Match) -> bool:
    """Schedule all loops but that of the lanes: lowering splits it at the boundary and vectorizes the interior."""
    schedule, info, along = match.schedule, match.info, vectorized_result_axis(match.info, match.target)
    assert along is not None
    others = info.loops(i for i in info.spatial if i != along)
    reduced = info.loops(info.reduced)
    schedule.reorder(*others, info.axes[along].loop, *reduced)
    if info.size(info.reduced) <= WINDOW_TERMS and all(info.axes[i].is_fixed for i in info.reduced):
        for loop in reduced:
            try_step(schedule.unroll, loop)
    epilogue = fusible_epilogue(schedule, info, len(info.spatial)) if others else None
    if epilogue is not None:
        # Results of a row stay in L1, in local memory that no pointer can alias.
        try_step(schedule.reverse_compute_at, epilogue, others[-1])
        own = schedule.get_loops(epilogue)
        if len(own) == len(info.spatial):
            try_step(schedule.vectorize, own[-1])
    parallelize(schedule, others, info.work // STEPS_PER_ELEMENT, match.target)
    return True


def schedule_columns(match: Match) -> bool:
    """Accumulate columns: a few at a time in registers, or row after row if the accumulators of all columns fit in
    L1."""
    schedule, info, target, lanes = match.schedule, match.info, match.target, match.lanes
    along = vectorized_result_axis(match.info, match.target)
    assert along is not None
    others = info.loops(i for i in info.spatial if i != along)
    reduced = info.loops(info.reduced)
    steps = info.size(info.reduced)
    # The reduction may be empty: lowering then decides where to initialize the results.
    is_fixed = all(info.axes[i].is_fixed for i in info.reduced)
    across = target.vector_registers // 2 >> match.sampler.choose(3)
    parallel = _loops_with_boundary(match, along)
    head, vector = others, info.axes[along].loop
    if not info.axes[along].is_fixed or math.ceil(info.extent(along) / lanes) > across:
        if steps > UNROLLED_STEPS and accumulate_rows(match):
            return True
        if is_fixed and steps <= UNROLLED_STEPS:
            # With unrolled steps, a few vectors at a time keep a core busy.
            across = min(across, 4)
        column, vector = schedule.split(vector, [None, lanes * across])
        head = [*others, column]
    schedule.reorder(*head, *reduced, vector)
    epilogue = epilogue_or_copy(schedule, info, len(info.spatial))
    if head:
        try_step(schedule.reverse_compute_at, epilogue, head[-1])
        if starts_with(schedule, epilogue, head[0]):
            try_step(schedule.set_scope, info.block, 0, "local")
    begin = try_step(schedule.decompose_reduction, info.block, reduced[0]) if is_fixed else None
    for loop in (vector, *innermost(schedule, epilogue, begin)):
        try_step(schedule.vectorize, loop)
    if is_fixed and steps <= UNROLLED_STEPS:
        for loop in reduced:
            try_step(schedule.unroll, loop)
    parallelize(schedule, head[:parallel], info.work // STEPS_PER_ELEMENT, target)
    return True


def accumulate_rows(match: Match) -> bool:
    """Add contiguous rows to accumulators of columns, some of them at once, while the accumulators stay in L1; return
    whether all extents are constant."""
    schedule, info, target, lanes = match.schedule, match.info, match.target, match.lanes
    along = vectorized_result_axis(match.info, match.target)
    if along is None or not all(info.axes[i].is_fixed for i in (along, *info.reduced)):
        return False
    extent = info.extent(along)
    others = [i for i in info.spatial if i != along]
    reduced = info.loops(info.reduced)
    most = target.l1_bytes // 2 // info.store.width // lanes * lanes
    if target.num_cores > 1 and info.size(others) < target.num_cores:
        most = min(most, max(THREAD_COLUMNS, math.ceil(extent / (2 * target.num_cores * lanes)) * lanes))
    head, vector = info.loops(others), info.axes[along].loop
    if extent > most:
        column, vector = schedule.split(vector, [None, most])
        head = [*head, column]
    together: list[LoopRV] = []
    if info.extent(info.reduced[-1]) >= 2 * ACCUMULATED_ROWS:
        # Accumulators are loaded and stored once for these rows; each row is a stream that the hardware prefetches.
        reduced[-1], each = schedule.split(reduced[-1], [None, ACCUMULATED_ROWS])
        vectors, vector = schedule.split(vector, [None, lanes])
        together = [vectors, each]
    schedule.reorder(*head, *reduced, *together, vector)
    begin = try_step(schedule.decompose_reduction, info.block, reduced[0])
    for loop in (vector, *innermost(schedule, begin)):
        try_step(schedule.vectorize, loop)
    if together:
        try_step(schedule.unroll, together[-1])
    parallelize(schedule, head, info.work // STEPS_PER_ELEMENT, target)
    return True


def schedule_accumulators(match: Match) -> bool:
    """Vectorize along the reduction, in partial sums of one result."""
    schedule, info, target = match.schedule, match.info, match.target
    spatial, in_order = info.loops(info.spatial), _contiguous_last(info)
    reduced = info.loops(in_order)
    schedule.reorder(*spatial, *reduced)
    last = reduced[-1]
    together = _contiguous_axes(info, in_order)
    if together > 1:
        last = try_step(schedule.fuse, *reduced[-together:]) or last
        reduced[-together:] = [last]
    few = target.num_cores > 1 and info.size(info.spatial) < 2 * target.num_cores
    if few and not info.parts and info.work > 2 * PARALLEL_ELEMENTS:
        # There are too few results for all cores, so the cores share the reduction.
        longest = max(reduced, key=lambda loop: constant(schedule.get(loop).extent) or 0)
        part, each = schedule.split(longest, [4 * target.num_cores, None])
        schedule.reorder(part, *(each if loop is longest else loop for loop in reduced))
        parts = try_step(schedule.rfactor, part, 0)
        if parts is not None:
            try_step(schedule.vectorize, schedule.get_loops(parts)[-1])
            try_step(schedule.parallel, schedule.get_loops(parts)[len(spatial)])
            return True
    if info.is_contraction() and info.axes[in_order[-1]].is_fixed:
        last = _tile_results(match, spatial, reduced)
    split_vectors(schedule, last, match.lanes)
    parallelize(schedule, spatial, info.work // STEPS_PER_ELEMENT, target)
    return True


def _tile_results(match: Match, spatial: list[LoopRV], reduced: list[LoopRV]) -> LoopRV:
    """Tile results inside the reduction, so that they share loads. Return the loop to vectorize; the outer loops remain
    in `spatial`."""
    schedule, info = match.schedule, match.info
    lanes = reduction_lanes(info, match.target)
    extent = constant(schedule.get(reduced[-1]).extent)
    tile = accumulator_tile(info, match.target)
    if extent is None or extent < 2 * lanes or not tile:
        return reduced[-1]
    inner = []
    for i, size in tile.items():
        place = info.spatial.index(i)
        spatial[place], each = schedule.split(spatial[place], [None, size])
        inner.append(each)
    steps, last = schedule.split(reduced[-1], [None, lanes])
    schedule.reorder(*spatial, *reduced[:-1], steps, *inner, last)
    for loop in inner:
        schedule.unroll(loop)
    return last


def _contiguous_last(info: BlockInfo) -> list[int]:
    """Return the axes of a reduction, the axis along which operands are contiguous last."""
    together = [i for i in info.reduced if all(read.strides[i] in (0, 1) for read in info.reads)]
    longest = max(together, key=info.extent, default=info.reduced[-1])
    return [*(i for i in info.reduced if i != longest), longest]


def _contiguous_axes(info: BlockInfo, reduced: list[int]) -> int:
    """Return how many of the last axes can be fused into one contiguous axis: no operand jumps between the end of one
    axis and the next step of the other."""
    count = 1
    for outer, inner in zip(reversed(reduced[:-1]), reversed(reduced), strict=False):
        for read in info.reads:
            step = read.strides[inner]
            if step is None or read.strides[outer] != step * info.extent(inner) or not info.axes[inner].is_fixed:
                return count
        count += 1
    return count


def _load_cycles(info: BlockInfo, axis: int, lanes: int) -> float:
    """Return the cycles to load the vectors for one step along an axis."""
    strides = [read.strides[axis] for read in info.reads]
    return sum(
        1.0 if stride in (0, 1) else abs(stride) if stride is not None and abs(stride) <= 4 else GATHER_CYCLES * lanes
        for stride in strides
    )


def _loops_with_boundary(match: Match, along: int) -> int | None:
    """Return how many of the loops outside of the lanes are parallel if conditions handle the ends of the next loop,
    which must remain one loop so that lowering can peel its ends. Return None for all loops, if the outer ones have too
    few iterations."""
    info = match.info
    others = [i for i in info.spatial if i != along]
    node = match.schedule.get(info.block)
    inner = max((n for n, i in enumerate(others) if has_boundary(node, info, i)), default=0)
    return inner if inner and info.size(others[:inner]) >= 4 * match.target.num_cores else None
