"""Single blocks: elementwise work and data movement in vectors, and reductions that share nothing between results."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.cpu_space.draw import Draw, attempt
from tilewright.cpu_space.facts import (
    MOST_WINDOW,
    Facts,
    constant,
    goes_round,
    has_edges,
    is_choice,
    is_conditional,
    next_step,
    step_after,
)
from tilewright.cpu_space.inside import Inside
from tilewright.cpu_space.register_tile import bits_of, lanes_along, tile_of_lanes_along
from tilewright.schedule import BlockRV, LoopRV, Schedule

#: least work, in elements, that is worth a parallel loop
_SHARED_WORK = 1 << 15
#: parts of the work for each core that are enough to share it evenly
_CHUNKS = 16
#: steps of a sum that take as long as an element that is computed and stored
_STEPS = 8
#: rows that are added to sums of columns at a time, and columns that are worth a stream of their own
_ROWS_TOGETHER, _LEAST_COLUMNS = 4, 256
#: most lanes that lowering takes from rows of their own by turning squares round in registers
_TURNED_LANES = 16
#: of the squares of a transposed copy that stay near
_SIDE = 32
#: groups of neighbors in a row that run without a loop
_FEW_GROUPS = 4
#: steps of a reduction that run without a loop
_UNROLLED = 64


def schedule_elementwise(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> None:
    """Vectors along the axis that the result lies along; other loops in parallel."""
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    loops = [axis.loop for axis in facts.axes]
    total = math.prod(axis.extent for axis in facts.axes)
    if any(_is_shared(schedule, consumer) for consumer in schedule.get_consumers(facts.block)):
        # The threads are needed soon anyway, and find what they make in their own caches.
        total *= 2
    along = [i for i in facts.spatial if facts.store.strides[i] == 1 and facts.extent(i) > 1]
    if not along:
        return
    axis = along[0]
    if len(loops) > 1 and not facts.parts and facts.extent(axis) % (4 * lanes) and _is_flat(facts):
        # One row of memory: no vector is cut off at the end of each short line.
        first, vector = schedule.split(schedule.fuse(*loops), [None, 4 * lanes])
        attempt(schedule.vectorize, vector)
        share(schedule, [first], total, target)
        return
    others = [i for i in range(len(loops)) if i != axis]
    crossed = next(
        (
            i
            for read in facts.reads
            if read.strides[axis] not in (0, 1)
            for i in reversed(others)
            if read.strides[i] == 1 and facts.extent(i) >= 4
        ),
        None,
    )
    if crossed is not None and facts.extent(axis) >= lanes:
        # A transposed copy: squares whose lines stay in the cache while they are read the other way, of smaller ones
        # that lowering turns round in registers.
        side = _SIDE * (1, 2, 4)[draw.choose(3)]
        rows = schedule.split(facts.axes[crossed].loop, [None, min(side, facts.extent(crossed))])
        columns = schedule.split(facts.axes[axis].loop, [None, min(lanes, _TURNED_LANES)])
        rest = [facts.axes[i].loop for i in others if i != crossed]
        schedule.reorder(*rest, rows[0], columns[0], rows[1], columns[1])
        attempt(schedule.vectorize, columns[1])
        share(schedule, [*rest, rows[0]], total, target)
        return
    if axis != len(loops) - 1:
        schedule.reorder(*(loops[i] for i in others), loops[axis])
    outer = [loops[i] for i in others]
    vector = loops[axis]
    backward = any((read.strides[axis] or 0) < 0 for read in facts.reads) and is_conditional(schedule.get(facts.block))
    if backward or any(goes_round(read, facts.axes[axis].var) for read in facts.reads):
        # Lowering cuts the loop where indices turn back, and makes vectors of what is between.
        share(schedule, outer, total, target)
        return
    if outer and facts.axes[axis].is_fixed and 2 * facts.extent(axis) < lanes:
        # Lines that fill no vector: lowering makes vectors across them.
        if target.num_cores > 1 and facts.axes[others[-1]].is_fixed and facts.extent(others[-1]) >= 4 * lanes:
            outer[-1], _ = schedule.split(outer[-1], [None, 4 * lanes])
            share(schedule, outer, total, target)
        return
    same = math.gcd(facts.periods[axis], 4 * lanes)
    if facts.axes[axis].is_fixed and same >= lanes and facts.extent(axis) > same:
        # One scale for each group of neighbors: no vector takes part in two groups.
        first, vector = schedule.split(vector, [None, same])
        if outer and facts.extent(axis) <= _FEW_GROUPS * same:
            # What is asked about a group (which half of a head) is settled then.
            schedule.unroll(first)
        outer = outer or [first]
    elif not facts.axes[axis].is_fixed or (not outer and facts.extent(axis) > 4 * lanes):
        first, vector = schedule.split(vector, [None, 4 * lanes])
        # A loop with a tail stays inside: fused with others, its tail cannot be told apart any more.
        outer = outer if outer and not facts.axes[axis].is_fixed else [first]
    attempt(schedule.vectorize, vector)
    share(schedule, outer, total, target)


def _is_shared(schedule: Schedule, block: BlockRV) -> bool:
    """Whether several threads run it."""
    if isinstance(schedule, Inside):
        return True
    loops = schedule.get_loops(block)
    return bool(loops) and bool(schedule.get(loops[0]).kind == ir.ForKind.PARALLEL)


def _is_flat(facts: Facts) -> bool:
    """Whether all operands lie as the loops run, without gaps."""
    step = 1
    for i in reversed(range(len(facts.axes))):
        if not facts.axes[i].is_fixed or any(each.strides[i] != step for each in (facts.store, *facts.reads)):
            return False
        step *= facts.extent(i)
    return True


def share(schedule: Schedule, loops: list[LoopRV], total: int, target: _core.Target) -> None:
    """Outer loops in parallel, as one, where there is work enough to wake other threads for. Of as few loops as make
    enough chunks, and no more of the last one than that takes: indices of loops that are one have to be taken apart
    again, in each step. Behind a loop of an open length only one more: in what is left, indices are plain, and tails
    can be told apart."""
    if not loops or total < _SHARED_WORK or isinstance(schedule, Inside):
        return
    enough = _CHUNKS * target.num_cores if target.num_cores > 1 else 2
    count, taken, is_open = 1, [], False
    for loop in loops:
        extent = constant(schedule.get(loop).extent)
        is_open |= extent is None
        if extent is not None and count > 1 and count * extent > 2 * enough:
            parts = next(part for part in range(math.ceil(enough / count), extent + 1) if extent % part == 0)
            if parts < extent:
                loop, _ = schedule.split(loop, [parts, None])
                extent = parts
        taken.append(loop)
        count = 0 if extent is None else count * extent
        if count >= enough or (is_open and len(taken) >= min(2, len(loops) - 1)):
            break
    fused = attempt(schedule.fuse, *taken) if len(taken) > 1 else taken[0]
    if fused is not None:
        attempt(schedule.parallel, fused)


def schedule_reduction(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> None:
    """Partial sums in the lanes of vectors, along the results where these lie together, else along the reduction."""
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    spatial = [facts.axes[i].loop for i in facts.spatial]
    in_order = _nearest_last(facts)
    reduced = [facts.axes[i].loop for i in in_order]
    total = math.prod(axis.extent for axis in facts.axes)
    along = along_results(facts, target)
    if is_choice(schedule.get(facts.block)):
        _choices(schedule, facts, along, target)
        return
    if along is not None and has_edges(schedule.get(facts.block), facts, along):
        _windows_with_edges(schedule, facts, along, target)
        return
    if along is not None:
        _columns(schedule, facts, along, target, draw)
        return
    schedule.reorder(*spatial, *reduced)
    results = math.prod(facts.extent(i) for i in facts.spatial)
    last = reduced[-1]
    together = _lying_together(facts, in_order)
    if together > 1:
        last = attempt(schedule.fuse, *reduced[-together:]) or last
        reduced[-together:] = [last]
    if not facts.parts and results < 2 * target.num_cores and target.num_cores > 1 and total > 2 * _SHARED_WORK:
        # Too few results to share among the cores: parts of the sums are shared.
        longest = max(reduced, key=lambda loop: constant(schedule.get(loop).extent) or 0)
        part, each = schedule.split(longest, [4 * target.num_cores, None])
        schedule.reorder(part, *(each if loop is longest else loop for loop in reduced))
        parts = attempt(schedule.rfactor, part, 0)
        if parts is not None:
            own = schedule.get_loops(parts)
            attempt(schedule.vectorize, own[-1])
            attempt(schedule.parallel, schedule.get_loops(parts)[len(spatial)])
            return
    if facts.is_contraction() and facts.axes[in_order[-1]].is_fixed:
        last = _results_together(schedule, facts, spatial, reduced, target)
    vectorize(schedule, last, lanes)
    share(schedule, spatial, total // _STEPS, target)


def _windows_with_edges(schedule: Schedule, facts: Facts, along: int, target: _core.Target) -> None:
    """Windows that slide along the lanes beyond the ends of what they read: lowering cuts the loop there, and makes
    vectors of what is between."""
    others = [facts.axes[i].loop for i in facts.spatial if i != along]
    reduced = [facts.axes[i].loop for i in facts.reduced]
    schedule.reorder(*others, facts.axes[along].loop, *reduced)
    steps = math.prod(facts.extent(i) for i in facts.reduced)
    if steps <= MOST_WINDOW and all(facts.axes[i].is_fixed for i in facts.reduced):
        for loop in reduced:
            attempt(schedule.unroll, loop)
    after = next_step(schedule, facts, len(facts.spatial)) if others else None
    if after is not None:
        # Sums of a line stay near, and in memory that nothing else can point to.
        attempt(schedule.reverse_compute_at, after, others[-1])
        own = schedule.get_loops(after)
        if len(own) == len(facts.spatial):
            attempt(schedule.vectorize, own[-1])
    share(schedule, others, math.prod(axis.extent for axis in facts.axes) // _STEPS, target)


def _choices(schedule: Schedule, facts: Facts, along: int | None, target: _core.Target) -> None:
    """The best value and where it is: lowering makes vectors along rows; of columns, some side by side."""
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    spatial = [facts.axes[i].loop for i in facts.spatial if i != along]
    reduced = [facts.axes[i].loop for i in facts.reduced]
    total = math.prod(axis.extent for axis in facts.axes)
    vector = []
    if along is not None:
        column, lane = schedule.split(facts.axes[along].loop, [None, 4 * lanes])
        spatial, vector = [*spatial, column], [lane]
    schedule.reorder(*spatial, *reduced, *vector)
    if vector:
        begin = attempt(schedule.decompose_reduction, facts.block, reduced[0])
        for loop in (*vector, *(schedule.get_loops(begin)[-1:] if begin else ())):
            attempt(schedule.vectorize, loop)
    share(schedule, spatial, total // _STEPS, target)


def _results_together(
    schedule: Schedule, facts: Facts, spatial: list[LoopRV], reduced: list[LoopRV], target: _core.Target
) -> LoopRV:
    """A tile of results inside of the sum, which share what they load; returns the loop that becomes vectors, and
    leaves the outer ones in `spatial`."""
    lanes = lanes_along(facts, target)
    extent = constant(schedule.get(reduced[-1]).extent)
    tile = tile_of_lanes_along(facts, target)
    if extent is None or extent < 2 * lanes or not tile:
        return reduced[-1]
    inner = []
    for i, size in tile.items():
        place = facts.spatial.index(i)
        spatial[place], each = schedule.split(spatial[place], [None, size])
        inner.append(each)
    steps, last = schedule.split(reduced[-1], [None, lanes])
    schedule.reorder(*spatial, *reduced[:-1], steps, *inner, last)
    for loop in inner:
        schedule.unroll(loop)
    return last


def _nearest_last(facts: Facts) -> list[int]:
    """The axes of a sum, the one last along which operands lie."""
    together = [i for i in facts.reduced if all(read.strides[i] in (0, 1) for read in facts.reads)]
    longest = max(together, key=facts.extent, default=facts.reduced[-1])
    return [*(i for i in facts.reduced if i != longest), longest]


def _lying_together(facts: Facts, reduced: list[int]) -> int:
    """How many of the last axes are one in memory: taken together, no operand jumps from the end of one to the next
    step of the other."""
    count = 1
    for outer, inner in zip(reversed(reduced[:-1]), reversed(reduced), strict=False):
        for read in facts.reads:
            step = read.strides[inner]
            if step is None or read.strides[outer] != step * facts.extent(inner) or not facts.axes[inner].is_fixed:
                return count
        count += 1
    return count


def along_results(facts: Facts, target: _core.Target) -> int | None:
    """The axis that results lie along, where partial sums of neighbors in the lanes cost less than partial sums of one
    result: operands lie along it, or the sums are short."""
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    along = [i for i in facts.spatial if 2 * facts.extent(i) >= lanes and facts.store.strides[i] == 1]
    if not along or not facts.reduced:
        return None
    axis, last = along[0], _nearest_last(facts)[-1]
    steps = math.prod(facts.extent(i) for i in facts.reduced)
    # Lanes of one result have to be brought together at its end.
    of_one = math.ceil(steps / lanes) * _loading(facts, last, lanes) + 2 * math.log2(lanes)
    of_several = steps / min(lanes, facts.extent(axis)) * _loading(facts, axis, lanes)
    return axis if of_several < 0.8 * of_one else None


def _loading(facts: Facts, axis: int, lanes: int) -> float:
    """Cycles to load the vectors for one step, along an axis."""
    strides = [read.strides[axis] for read in facts.reads]
    return sum(
        1.0 if stride in (0, 1) else abs(stride) if stride is not None and abs(stride) <= 4 else 1.5 * lanes
        for stride in strides
    )


def _columns(schedule: Schedule, facts: Facts, along: int, target: _core.Target, draw: Draw) -> None:
    """Sums of columns: some at a time in registers, or rows one after the other where the sums of all lie near."""
    width = bits_of(facts.store.buffer.dtype) // 8
    lanes = target.vector_bits // 8 // width
    others = [facts.axes[i].loop for i in facts.spatial if i != along]
    reduced = [facts.axes[i].loop for i in facts.reduced]
    whole = facts.axes[along].is_fixed
    total = math.prod(axis.extent for axis in facts.axes)
    # Where the reduction may be empty, lowering knows best when results begin.
    is_fixed = all(facts.axes[i].is_fixed for i in facts.reduced)
    across = target.vector_registers // 2 >> draw.choose(3)
    whole_rows = _rows_with_edges(schedule, facts, along, target)
    head, vector = others, facts.axes[along].loop
    if not whole or math.ceil(facts.extent(along) / lanes) > across:
        steps = math.prod(facts.extent(i) for i in facts.reduced)
        if steps > _UNROLLED and row_after_row(schedule, facts, along, target):
            return
        if is_fixed and steps <= _UNROLLED:
            # Steps that run without a loop keep a core busy with few vectors at a time.
            across = min(across, 4)
        column, vector = schedule.split(vector, [None, lanes * across])
        head = [*others, column]
    schedule.reorder(*head, *reduced, vector)
    copy = step_after(schedule, facts, len(facts.spatial))
    if head:
        attempt(schedule.reverse_compute_at, copy, head[-1])
        own = schedule.get_loops(copy)
        if own and schedule.get(own[0]).loop_var.same_as(schedule.get(head[0]).loop_var):
            attempt(schedule.set_scope, facts.block, 0, "local")
    begin = attempt(schedule.decompose_reduction, facts.block, reduced[0]) if is_fixed else None
    for loop in (vector, schedule.get_loops(copy)[-1], *(schedule.get_loops(begin)[-1:] if begin else ())):
        attempt(schedule.vectorize, loop)
    if is_fixed and math.prod(facts.extent(i) for i in facts.reduced) <= _UNROLLED:
        for loop in reduced:
            attempt(schedule.unroll, loop)
    share(schedule, head[:whole_rows], total // _STEPS, target)


def _rows_with_edges(schedule: Schedule, facts: Facts, along: int, target: _core.Target) -> int | None:
    """How many of the loops outside of the lanes threads share, where something is decided near the ends of the next
    one: it stays one loop then, of which lowering takes the ends off. None: all of them, where the outer ones alone
    would be too few."""
    others = [i for i in facts.spatial if i != along]
    node = schedule.get(facts.block)
    inner = max((n for n, i in enumerate(others) if has_edges(node, facts, i)), default=0)
    enough = math.prod(facts.extent(i) for i in others[:inner]) >= 4 * target.num_cores
    return inner if inner and enough else None


def row_after_row(schedule: Schedule, facts: Facts, along: int, target: _core.Target) -> bool:
    """Adds rows to sums of columns as the rows lie in memory, a few at a time, while the sums of all columns stay in
    the first level; whether it does."""
    if not facts.axes[along].is_fixed or not all(facts.axes[i].is_fixed for i in facts.reduced):
        return False
    width = bits_of(facts.store.buffer.dtype) // 8
    lanes, extent = target.vector_bits // 8 // width, facts.extent(along)
    others = [facts.axes[i].loop for i in facts.spatial if i != along]
    reduced = [facts.axes[i].loop for i in facts.reduced]
    most = target.l1_bytes // 2 // width // lanes * lanes
    if target.num_cores > 1 and math.prod(facts.extent(i) for i in facts.spatial if i != along) < target.num_cores:
        most = min(most, max(_LEAST_COLUMNS, math.ceil(extent / (2 * target.num_cores * lanes)) * lanes))
    head, vector = others, facts.axes[along].loop
    if extent > most:
        column, vector = schedule.split(vector, [None, most])
        head = [*others, column]
    together: list[LoopRV] = []
    if facts.extent(facts.reduced[-1]) >= 2 * _ROWS_TOGETHER:
        # The sums are loaded and stored once for so many rows, each a stream that is fetched ahead.
        reduced[-1], each = schedule.split(reduced[-1], [None, _ROWS_TOGETHER])
        vectors, vector = schedule.split(vector, [None, lanes])
        together = [vectors, each]
    schedule.reorder(*head, *reduced, *together, vector)
    begin = attempt(schedule.decompose_reduction, facts.block, reduced[0])
    for loop in (vector, *(schedule.get_loops(begin)[-1:] if begin else ())):
        attempt(schedule.vectorize, loop)
    if together:
        attempt(schedule.unroll, together[-1])
    share(schedule, head, math.prod(axis.extent for axis in facts.axes) // _STEPS, target)
    return True


def vectorize(schedule: Schedule, loop: LoopRV, lanes: int) -> None:
    """A loop of constant extent whole, of another one in steps."""
    if constant(schedule.get(loop).extent) is None:
        pieces = attempt(schedule.split, loop, [None, 4 * lanes])
        loop = pieces[1] if pieces else loop
    attempt(schedule.vectorize, loop)
