"""Single blocks: elementwise work and data movement in vectors, and reductions that share nothing between results."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import (
    BlockInfo,
    clamps_or_wraps,
    constant,
    epilogue_or_copy,
    fusible_epilogue,
    has_boundary,
    is_argreduce,
    is_conditional,
)
from tilewright.heuristics.cpu.nested_schedule import NestedSchedule
from tilewright.heuristics.cpu.parameters import (
    ACCUMULATED_ROWS,
    CHUNKS_PER_CORE,
    PARALLEL_ELEMENTS,
    STEPS_PER_ELEMENT,
    THREAD_COLUMNS,
    TRANSPOSED_LANES,
    TRANSPOSED_SIDE,
    UNROLLED_PERIODS,
    UNROLLED_STEPS,
    UNROLLED_WINDOW,
)
from tilewright.heuristics.cpu.register_tile import accumulator_tile, bits_of, reduction_lanes
from tilewright.heuristics.cpu.sampling import Sampler, try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def schedule_elementwise(schedule: Schedule, info: BlockInfo, target: _core.Target, sampler: Sampler) -> None:
    """Vectors along the axis that the result lies along; other loops in parallel."""
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    loops = [axis.loop for axis in info.axes]
    total = math.prod(axis.extent for axis in info.axes)
    if any(_is_parallel(schedule, consumer) for consumer in schedule.get_consumers(info.block)):
        # The threads are needed soon anyway, and find what they make in their own caches.
        total *= 2
    along = [i for i in info.spatial if info.store.strides[i] == 1 and info.extent(i) > 1]
    if not along:
        return
    axis = along[0]
    if len(loops) > 1 and not info.parts and info.extent(axis) % (4 * lanes) and _is_contiguous(info):
        # One row of memory: no vector is cut off at the end of each short line.
        first, vector = schedule.split(schedule.fuse(*loops), [None, 4 * lanes])
        try_step(schedule.vectorize, vector)
        parallelize(schedule, [first], total, target)
        return
    others = [i for i in range(len(loops)) if i != axis]
    crossed = next(
        (
            i
            for read in info.reads
            if read.strides[axis] not in (0, 1)
            for i in reversed(others)
            if read.strides[i] == 1 and info.extent(i) >= 4
        ),
        None,
    )
    if crossed is not None and info.extent(axis) >= lanes:
        # A transposed copy: squares whose lines stay in the cache while they are read the other way, of smaller ones
        # that lowering turns round in registers.
        side = TRANSPOSED_SIDE * (1, 2, 4)[sampler.choose(3)]
        rows = schedule.split(info.axes[crossed].loop, [None, min(side, info.extent(crossed))])
        columns = schedule.split(info.axes[axis].loop, [None, min(lanes, TRANSPOSED_LANES)])
        rest = [info.axes[i].loop for i in others if i != crossed]
        schedule.reorder(*rest, rows[0], columns[0], rows[1], columns[1])
        try_step(schedule.vectorize, columns[1])
        parallelize(schedule, [*rest, rows[0]], total, target)
        return
    if axis != len(loops) - 1:
        schedule.reorder(*(loops[i] for i in others), loops[axis])
    outer = [loops[i] for i in others]
    vector = loops[axis]
    backward = any((read.strides[axis] or 0) < 0 for read in info.reads) and is_conditional(schedule.get(info.block))
    if backward or any(clamps_or_wraps(read, info.axes[axis].var) for read in info.reads):
        # Lowering cuts the loop where indices turn back, and makes vectors of what is between.
        parallelize(schedule, outer, total, target)
        return
    if outer and info.axes[axis].is_fixed and 2 * info.extent(axis) < lanes:
        # Lines that fill no vector: lowering makes vectors across them.
        if target.num_cores > 1 and info.axes[others[-1]].is_fixed and info.extent(others[-1]) >= 4 * lanes:
            outer[-1], _ = schedule.split(outer[-1], [None, 4 * lanes])
            parallelize(schedule, outer, total, target)
        return
    same = math.gcd(info.periods[axis], 4 * lanes)
    if info.axes[axis].is_fixed and same >= lanes and info.extent(axis) > same:
        # One scale for each group of neighbors: no vector takes part in two groups.
        first, vector = schedule.split(vector, [None, same])
        if outer and info.extent(axis) <= UNROLLED_PERIODS * same:
            # What is asked about a group (which half of a head) is settled then.
            schedule.unroll(first)
        outer = outer or [first]
    elif not info.axes[axis].is_fixed or (not outer and info.extent(axis) > 4 * lanes):
        first, vector = schedule.split(vector, [None, 4 * lanes])
        # A loop with a tail stays inside: fused with others, its tail cannot be told apart any more.
        outer = outer if outer and not info.axes[axis].is_fixed else [first]
    try_step(schedule.vectorize, vector)
    parallelize(schedule, outer, total, target)


def _is_parallel(schedule: Schedule, block: BlockRV) -> bool:
    """Whether several threads run it."""
    if isinstance(schedule, NestedSchedule):
        return True
    loops = schedule.get_loops(block)
    return bool(loops) and bool(schedule.get(loops[0]).kind == ir.ForKind.PARALLEL)


def _is_contiguous(info: BlockInfo) -> bool:
    """Whether all operands lie as the loops run, without gaps."""
    step = 1
    for i in reversed(range(len(info.axes))):
        if not info.axes[i].is_fixed or any(each.strides[i] != step for each in (info.store, *info.reads)):
            return False
        step *= info.extent(i)
    return True


def parallelize(schedule: Schedule, loops: list[LoopRV], total: int, target: _core.Target) -> None:
    """Outer loops in parallel, as one, where there is work enough to wake other threads for. Of as few loops as make
    enough chunks, and no more of the last one than that takes: indices of loops that are one have to be taken apart
    again, in each step. Behind a loop of an open length only one more: in what is left, indices are plain, and tails
    can be told apart."""
    if not loops or total < PARALLEL_ELEMENTS or isinstance(schedule, NestedSchedule):
        return
    enough = CHUNKS_PER_CORE * target.num_cores if target.num_cores > 1 else 2
    count, taken, is_unscheduled = 1, [], False
    for loop in loops:
        extent = constant(schedule.get(loop).extent)
        is_unscheduled |= extent is None
        if extent is not None and count > 1 and count * extent > 2 * enough:
            parts = next(part for part in range(math.ceil(enough / count), extent + 1) if extent % part == 0)
            if parts < extent:
                loop, _ = schedule.split(loop, [parts, None])
                extent = parts
        taken.append(loop)
        count = 0 if extent is None else count * extent
        if count >= enough or (is_unscheduled and len(taken) >= min(2, len(loops) - 1)):
            break
    fused = try_step(schedule.fuse, *taken) if len(taken) > 1 else taken[0]
    if fused is not None:
        try_step(schedule.parallel, fused)


def schedule_reduction(schedule: Schedule, info: BlockInfo, target: _core.Target, sampler: Sampler) -> None:
    """Partial sums in the lanes of vectors, along the results where these lie together, else along the reduction."""
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    spatial = [info.axes[i].loop for i in info.spatial]
    in_order = _contiguous_last(info)
    reduced = [info.axes[i].loop for i in in_order]
    total = math.prod(axis.extent for axis in info.axes)
    along = vectorized_result_axis(info, target)
    if is_argreduce(schedule.get(info.block)):
        _argreduce(schedule, info, along, target)
        return
    if along is not None and has_boundary(schedule.get(info.block), info, along):
        _windows_with_boundary(schedule, info, along, target)
        return
    if along is not None:
        _vectorize_results(schedule, info, along, target, sampler)
        return
    schedule.reorder(*spatial, *reduced)
    results = math.prod(info.extent(i) for i in info.spatial)
    last = reduced[-1]
    together = _contiguous_axes(info, in_order)
    if together > 1:
        last = try_step(schedule.fuse, *reduced[-together:]) or last
        reduced[-together:] = [last]
    if not info.parts and results < 2 * target.num_cores and target.num_cores > 1 and total > 2 * PARALLEL_ELEMENTS:
        # Too few results to share among the cores: parts of the sums are shared.
        longest = max(reduced, key=lambda loop: constant(schedule.get(loop).extent) or 0)
        part, each = schedule.split(longest, [4 * target.num_cores, None])
        schedule.reorder(part, *(each if loop is longest else loop for loop in reduced))
        parts = try_step(schedule.rfactor, part, 0)
        if parts is not None:
            own = schedule.get_loops(parts)
            try_step(schedule.vectorize, own[-1])
            try_step(schedule.parallel, schedule.get_loops(parts)[len(spatial)])
            return
    if info.is_contraction() and info.axes[in_order[-1]].is_fixed:
        last = _tile_results(schedule, info, spatial, reduced, target)
    vectorize(schedule, last, lanes)
    parallelize(schedule, spatial, total // STEPS_PER_ELEMENT, target)


def _windows_with_boundary(schedule: Schedule, info: BlockInfo, along: int, target: _core.Target) -> None:
    """Windows that slide along the lanes beyond the ends of what they read: lowering cuts the loop there, and makes
    vectors of what is between."""
    others = [info.axes[i].loop for i in info.spatial if i != along]
    reduced = [info.axes[i].loop for i in info.reduced]
    schedule.reorder(*others, info.axes[along].loop, *reduced)
    steps = math.prod(info.extent(i) for i in info.reduced)
    if steps <= UNROLLED_WINDOW and all(info.axes[i].is_fixed for i in info.reduced):
        for loop in reduced:
            try_step(schedule.unroll, loop)
    after = fusible_epilogue(schedule, info, len(info.spatial)) if others else None
    if after is not None:
        # Sums of a line stay near, and in memory that nothing else can point to.
        try_step(schedule.reverse_compute_at, after, others[-1])
        own = schedule.get_loops(after)
        if len(own) == len(info.spatial):
            try_step(schedule.vectorize, own[-1])
    parallelize(schedule, others, math.prod(axis.extent for axis in info.axes) // STEPS_PER_ELEMENT, target)


def _argreduce(schedule: Schedule, info: BlockInfo, along: int | None, target: _core.Target) -> None:
    """The best value and where it is: lowering makes vectors along rows; of columns, some side by side."""
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    spatial = [info.axes[i].loop for i in info.spatial if i != along]
    reduced = [info.axes[i].loop for i in info.reduced]
    total = math.prod(axis.extent for axis in info.axes)
    vector = []
    if along is not None:
        column, lane = schedule.split(info.axes[along].loop, [None, 4 * lanes])
        spatial, vector = [*spatial, column], [lane]
    schedule.reorder(*spatial, *reduced, *vector)
    if vector:
        begin = try_step(schedule.decompose_reduction, info.block, reduced[0])
        for loop in (*vector, *(schedule.get_loops(begin)[-1:] if begin else ())):
            try_step(schedule.vectorize, loop)
    parallelize(schedule, spatial, total // STEPS_PER_ELEMENT, target)


def _tile_results(
    schedule: Schedule, info: BlockInfo, spatial: list[LoopRV], reduced: list[LoopRV], target: _core.Target
) -> LoopRV:
    """A tile of results inside of the sum, which share what they load; returns the loop that becomes vectors, and
    leaves the outer ones in `spatial`."""
    lanes = reduction_lanes(info, target)
    extent = constant(schedule.get(reduced[-1]).extent)
    tile = accumulator_tile(info, target)
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
    """The axes of a sum, the one last along which operands lie."""
    together = [i for i in info.reduced if all(read.strides[i] in (0, 1) for read in info.reads)]
    longest = max(together, key=info.extent, default=info.reduced[-1])
    return [*(i for i in info.reduced if i != longest), longest]


def _contiguous_axes(info: BlockInfo, reduced: list[int]) -> int:
    """How many of the last axes are one in memory: taken together, no operand jumps from the end of one to the next
    step of the other."""
    count = 1
    for outer, inner in zip(reversed(reduced[:-1]), reversed(reduced), strict=False):
        for read in info.reads:
            step = read.strides[inner]
            if step is None or read.strides[outer] != step * info.extent(inner) or not info.axes[inner].is_fixed:
                return count
        count += 1
    return count


def vectorized_result_axis(info: BlockInfo, target: _core.Target) -> int | None:
    """The axis that results lie along, where partial sums of neighbors in the lanes cost less than partial sums of one
    result: operands lie along it, or the sums are short."""
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    along = [i for i in info.spatial if 2 * info.extent(i) >= lanes and info.store.strides[i] == 1]
    if not along or not info.reduced:
        return None
    axis, last = along[0], _contiguous_last(info)[-1]
    steps = math.prod(info.extent(i) for i in info.reduced)
    # Lanes of one result have to be brought together at its end.
    of_one = math.ceil(steps / lanes) * _loading(info, last, lanes) + 2 * math.log2(lanes)
    of_several = steps / min(lanes, info.extent(axis)) * _loading(info, axis, lanes)
    return axis if of_several < 0.8 * of_one else None


def _loading(info: BlockInfo, axis: int, lanes: int) -> float:
    """Cycles to load the vectors for one step, along an axis."""
    strides = [read.strides[axis] for read in info.reads]
    return sum(
        1.0 if stride in (0, 1) else abs(stride) if stride is not None and abs(stride) <= 4 else 1.5 * lanes
        for stride in strides
    )


def _vectorize_results(schedule: Schedule, info: BlockInfo, along: int, target: _core.Target, sampler: Sampler) -> None:
    """Sums of columns: some at a time in registers, or rows one after the other where the sums of all lie near."""
    width = bits_of(info.store.buffer.dtype) // 8
    lanes = target.vector_bits // 8 // width
    others = [info.axes[i].loop for i in info.spatial if i != along]
    reduced = [info.axes[i].loop for i in info.reduced]
    whole = info.axes[along].is_fixed
    total = math.prod(axis.extent for axis in info.axes)
    # Where the reduction may be empty, lowering knows best when results begin.
    is_fixed = all(info.axes[i].is_fixed for i in info.reduced)
    across = target.vector_registers // 2 >> sampler.choose(3)
    whole_rows = _loops_with_boundary(schedule, info, along, target)
    head, vector = others, info.axes[along].loop
    if not whole or math.ceil(info.extent(along) / lanes) > across:
        steps = math.prod(info.extent(i) for i in info.reduced)
        if steps > UNROLLED_STEPS and accumulate_rows(schedule, info, along, target):
            return
        if is_fixed and steps <= UNROLLED_STEPS:
            # Steps that run without a loop keep a core busy with few vectors at a time.
            across = min(across, 4)
        column, vector = schedule.split(vector, [None, lanes * across])
        head = [*others, column]
    schedule.reorder(*head, *reduced, vector)
    copy = epilogue_or_copy(schedule, info, len(info.spatial))
    if head:
        try_step(schedule.reverse_compute_at, copy, head[-1])
        own = schedule.get_loops(copy)
        if own and schedule.get(own[0]).loop_var.same_as(schedule.get(head[0]).loop_var):
            try_step(schedule.set_scope, info.block, 0, "local")
    begin = try_step(schedule.decompose_reduction, info.block, reduced[0]) if is_fixed else None
    for loop in (vector, schedule.get_loops(copy)[-1], *(schedule.get_loops(begin)[-1:] if begin else ())):
        try_step(schedule.vectorize, loop)
    if is_fixed and math.prod(info.extent(i) for i in info.reduced) <= UNROLLED_STEPS:
        for loop in reduced:
            try_step(schedule.unroll, loop)
    parallelize(schedule, head[:whole_rows], total // STEPS_PER_ELEMENT, target)


def _loops_with_boundary(schedule: Schedule, info: BlockInfo, along: int, target: _core.Target) -> int | None:
    """How many of the loops outside of the lanes threads share, where something is decided near the ends of the next
    one: it stays one loop then, of which lowering takes the ends off. None: all of them, where the outer ones alone
    would be too few."""
    others = [i for i in info.spatial if i != along]
    node = schedule.get(info.block)
    inner = max((n for n, i in enumerate(others) if has_boundary(node, info, i)), default=0)
    enough = math.prod(info.extent(i) for i in others[:inner]) >= 4 * target.num_cores
    return inner if inner and enough else None


def accumulate_rows(schedule: Schedule, info: BlockInfo, along: int, target: _core.Target) -> bool:
    """Adds rows to sums of columns as the rows lie in memory, a few at a time, while the sums of all columns stay in
    the first level; whether it does."""
    if not info.axes[along].is_fixed or not all(info.axes[i].is_fixed for i in info.reduced):
        return False
    width = bits_of(info.store.buffer.dtype) // 8
    lanes, extent = target.vector_bits // 8 // width, info.extent(along)
    others = [info.axes[i].loop for i in info.spatial if i != along]
    reduced = [info.axes[i].loop for i in info.reduced]
    most = target.l1_bytes // 2 // width // lanes * lanes
    if target.num_cores > 1 and math.prod(info.extent(i) for i in info.spatial if i != along) < target.num_cores:
        most = min(most, max(THREAD_COLUMNS, math.ceil(extent / (2 * target.num_cores * lanes)) * lanes))
    head, vector = others, info.axes[along].loop
    if extent > most:
        column, vector = schedule.split(vector, [None, most])
        head = [*others, column]
    together: list[LoopRV] = []
    if info.extent(info.reduced[-1]) >= 2 * ACCUMULATED_ROWS:
        # The sums are loaded and stored once for so many rows, each a stream that is fetched ahead.
        reduced[-1], each = schedule.split(reduced[-1], [None, ACCUMULATED_ROWS])
        vectors, vector = schedule.split(vector, [None, lanes])
        together = [vectors, each]
    schedule.reorder(*head, *reduced, *together, vector)
    begin = try_step(schedule.decompose_reduction, info.block, reduced[0])
    for loop in (vector, *(schedule.get_loops(begin)[-1:] if begin else ())):
        try_step(schedule.vectorize, loop)
    if together:
        try_step(schedule.unroll, together[-1])
    parallelize(schedule, head, math.prod(axis.extent for axis in info.axes) // STEPS_PER_ELEMENT, target)
    return True


def vectorize(schedule: Schedule, loop: LoopRV, lanes: int) -> None:
    """A loop of constant extent whole, of another one in steps."""
    if constant(schedule.get(loop).extent) is None:
        pieces = try_step(schedule.split, loop, [None, 4 * lanes])
        loop = pieces[1] if pieces else loop
    try_step(schedule.vectorize, loop)
