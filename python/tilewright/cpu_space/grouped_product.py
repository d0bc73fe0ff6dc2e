"""Sums of products of narrow numbers, by instructions that add a few of them to each of sixteen sums at once: four of
bytes, two of bfloat16."""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright import _core, ir
from tilewright.cpu_space.draw import Draw, attempt
from tilewright.cpu_space.facts import (
    Facts,
    Operand,
    coefficient,
    constant,
    facts_of,
    is_conditional,
    is_parameter,
    is_plain,
    step_after,
)
from tilewright.cpu_space.register_tile import RegisterTile, bits_of, cycles_of_lanes_along, register_tiles
from tilewright.schedule import BlockRV, LoopRV, Schedule

#: sums of one instruction
LANES = 16
#: vectors of columns that they are rounded up to, at most
_MOST_VECTORS = 4
#: groups of columns that are packed while the lines they lie in are near
_NEIGHBORS = 4
#: bytes of a row that are padded at a time
_PIECE = 64
#: cycles that packing takes: a byte, with its columns side by side; one that is turned round; how many times that where
#: it is rounded up, too
_PACK_CYCLES, _TURN_CYCLES, _ROUNDING = 0.1, 0.15, 1.5
#: of a multiply-add, what one of pairs of bfloat16 takes where there are matrix tiles for those: processors with tiles
#: do without a fast one
_SLOW_PAIRS = 3.2
#: how many times as long partial sums of floats in the lanes take: each number is widened by instructions of its own
_WIDENING = 1.5


def schedule_groups(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> bool:
    """Whether a contraction has such an instruction, and takes it. Sizes that leave a rest are rounded up."""
    if not is_narrow(facts):
        return False
    for left in range(2):
        way = _best_way(facts, left, target)
        if way is None or way.cycles >= _cycles_without(facts, target):
            continue
        tile = way.tiles[draw.choose(len(way.tiles))]
        if way.whole is not facts:
            schedule.pad_einsum(facts.block, way.steps)
            for copy in schedule.get_producers(facts.block):
                for source in schedule.get_producers(copy):
                    attempt(schedule.compute_inline, source)  # zeros around it are made with those behind
            again = facts_of(schedule, facts.block)
            if again is None:
                return True
            facts = again
        # Where a step is refused, what others know of the block is no longer so.
        attempt(_Groups(schedule, facts, left, way.group, tile, way.intrin).run)
        return True
    return False


def is_narrow(facts: Facts) -> bool:
    """Whether products of two narrow numbers are added to wide ones: others have no instruction that takes a group."""
    if len(facts.reads) != 2 or facts.phases or not facts.adds_products:
        return False
    return bits_of(facts.store.buffer.dtype) == 32 and all(bits_of(read.buffer.dtype) <= 16 for read in facts.reads)


def cycles_in_groups(facts: Facts, target: _core.Target) -> float:
    """What the model expects of the fastest way that adds a group or one product at a time."""
    ways = [_best_way(facts, left, target) for left in range(2)]
    return min([_cycles_without(facts, target), *(way.cycles for way in ways if way is not None)])


def _best_way(facts: Facts, left: int, target: _core.Target) -> _Way | None:
    # The instructions are scripts; reading them, once in a process, takes longer than a hundred schedules.
    from tilewright.tensor_intrin.x86 import best_dot

    types = facts.reads[left].buffer.dtype, facts.reads[1 - left].buffer.dtype, facts.store.buffer.dtype
    found = best_dot(target, types)
    if found is None:
        return None
    ways = [_Way(facts, left, *found, vectors, target) for vectors in range(1, _MOST_VECTORS + 1)]
    return min((way for way in ways if way.tiles), key=lambda way: way.cycles, default=None)


def _cycles_without(facts: Facts, target: _core.Target) -> float:
    """What the model expects of one product at a time, where the operands lie."""
    tiles = register_tiles(facts, target)
    along = cycles_of_lanes_along(facts, target)
    if facts.store.buffer.dtype.startswith("float"):
        along *= _WIDENING
    return min(along, tiles[0].cycles if tiles else math.inf)


def columns_of(facts: Facts, left: int) -> int | None:
    """The axis that results lie along, of the right operand alone."""
    a, b = facts.reads[left], facts.reads[1 - left]
    along = [i for i in facts.spatial if _lies_along(facts, facts.store, i) and b.varies(i) and not a.varies(i)]
    return along[0] if along else None


def _lies_along(facts: Facts, operand: Operand, axis: int) -> bool:
    """Whether neighbors along an axis are neighbors in memory, and their last indices follow one another: instructions
    are described with those."""
    return operand.strides[axis] == 1 and coefficient(operand.indices[-1], facts.axes[axis].var) == 1


def group_axis_of(facts: Facts, left: int) -> int | None:
    """The reduction along which the numbers of a group lie side by side in the left operand."""
    a, b, axis = facts.reads[left], facts.reads[1 - left], columns_of(facts, left)
    if axis is None:
        return None
    for i in facts.reduced:
        if _lies_along(facts, a, i) and all(dimension_of(facts, b.indices, j) is not None for j in (i, axis)):
            return i
    return None


class _Way:
    """Columns rounded up to so many whole vectors, and a reduction rounded up to whole groups: the tiles that fit."""

    def __init__(self, facts: Facts, left: int, intrin: str, group: int, vectors: int, target: _core.Target) -> None:
        self.intrin, self.group = intrin, group
        columns, reduction = columns_of(facts, left), group_axis_of(facts, left)
        sizes = {columns: LANES * vectors, reduction: group}
        self.steps = [sizes.get(i, 1) for i in range(len(facts.axes))]
        self.whole = rounded_up(facts, self.steps) if reduction is not None else None
        self.tiles = _fitting(self.whole, left, target) if self.whole is not None else []
        self.cycles = math.inf
        if self.whole is not None and self.tiles:
            # What is rounded up is copied before and after.
            steps = self.tiles[0].cycles / group * (1.0 if self.whole is facts else 1.05)
            if "amx-bf16" in target.features and facts.reads[left].buffer.dtype == "bfloat16":
                steps *= _SLOW_PAIRS
            self.cycles = steps + cycles_of_packing(self.whole, 1 - left, reduction, self.whole is not facts)


def cycles_of_packing(facts: Facts, right: int, reduction: int | None, is_rounded: bool) -> float:
    """Cycles that the right operand takes until its groups lie one after the other: what few rows use is not worth
    it."""
    operand = facts.reads[right]
    size = math.prod(axis.extent for i, axis in enumerate(facts.axes) if operand.varies(i))
    each = _PACK_CYCLES
    if reduction is not None and operand.strides[reduction] == 1:
        each = _TURN_CYCLES * (_ROUNDING if is_rounded else 1.0)
    return size * each * bits_of(operand.buffer.dtype) / 8


def rounded_up(facts: Facts, steps: list[int]) -> Facts | None:
    """With axes that are multiples of the steps; None where that cannot be."""
    rest = [i for i, step in enumerate(steps) if step > 1 and not facts.divides(step, i)]
    if not rest:
        return facts
    plain = all(isinstance(index, (ir.Var, ir.IntImm)) for index in facts.store.indices) and all(
        not read.varies(i) or dimension_of(facts, read.indices, i) is not None for read in facts.reads for i in rest
    )
    # Of short axes most would be what is added.
    if not plain or any(not facts.axes[i].is_fixed or 2 * facts.extent(i) < steps[i] for i in rest):
        return None
    axes = tuple(
        replace(axis, extent=math.ceil(axis.extent / step) * step) for axis, step in zip(facts.axes, steps, strict=True)
    )
    return replace(facts, axes=axes)


def dimension_of(facts: Facts, indices: tuple[object, ...], axis: int) -> int | None:
    """The one index that an axis is."""
    own = [n for n, index in enumerate(indices) if isinstance(index, ir.Var) and index.same_as(facts.axes[axis].var)]
    return own[0] if len(own) == 1 else None


def _fitting(facts: Facts, left: int, target: _core.Target) -> list[RegisterTile]:
    """Tiles of whole instructions, the one that the model expects most of first."""
    b, axis = facts.reads[1 - left], columns_of(facts, left)
    found: list[RegisterTile] = []
    for tile in sorted(register_tiles(facts, target), key=lambda tile: _corrected(facts, tile)):
        rows = dict(tile.rows)
        if (
            tile.axis == axis
            and tile.columns % LANES == 0
            and facts.divides(tile.columns, tile.axis)
            and not any(b.varies(i) for i in facts.spatial if i != tile.axis)
            and _has_registers(facts, tile, target)
            and rows not in [dict(other.rows) for other in found if other.columns == tile.columns]
        ):
            found.append(tile)
    return found[:16]


def _corrected(facts: Facts, tile: RegisterTile) -> float:
    """Cycles, with those of one more sum for each vector of columns, which corrects bytes with signs on both sides."""
    if {read.buffer.dtype for read in facts.reads} != {"int8"}:
        return tile.cycles
    return tile.cycles * (1 + 1 / math.prod(size for _, size in tile.rows))


def _has_registers(facts: Facts, tile: RegisterTile, target: _core.Target) -> bool:
    """Whether all sums stay in registers: those of bytes with signs on both sides are corrected by one more sum for
    each vector of columns."""
    if {read.buffer.dtype for read in facts.reads} != {"int8"}:
        return True
    sums = tile.vectors * math.prod(size for _, size in tile.rows)
    return sums + 2 * tile.vectors + 2 <= target.vector_registers


class _Groups:
    def __init__(
        self, schedule: Schedule, facts: Facts, left: int, group: int, tile: RegisterTile, intrin: str
    ) -> None:
        self.schedule, self.facts, self.left, self.tile, self.intrin = schedule, facts, left, tile, intrin
        self.group = group

    def run(self) -> None:
        schedule, facts, tile = self.schedule, self.facts, self.tile
        group_axis = group_axis_of(facts, self.left)
        assert group_axis is not None
        pack_groups(schedule, facts, 1 - self.left, tile.axis, group_axis, self.group)
        # Loops with a tail stay inside: fused with others, their tails cannot be told apart any more.
        head: list[LoopRV] = []
        with_tail: list[LoopRV] = []
        rows: list[LoopRV] = []
        for i in [tile.axis, *(i for i in facts.spatial if i != tile.axis)]:
            loop = facts.axes[i].loop
            if i == tile.axis:
                outer, vectors, lanes = schedule.split(loop, [None, tile.columns // LANES, LANES])
                head.append(outer)
            elif tile.size(i) > 1:
                outer, inner = schedule.split(loop, [None, tile.size(i)])
                (head if facts.divides(tile.size(i), i) else with_tail).append(outer)
                rows.append(inner)
            else:
                head.append(loop)
        reduced = [facts.axes[i].loop for i in facts.reduced if i != group_axis]
        steps, group = schedule.split(facts.axes[group_axis].loop, [None, self.group])
        every = [*head, *with_tail]
        schedule.reorder(*every, *reduced, steps, *rows, vectors, lanes, group)
        leaving = step_after(schedule, facts, len(facts.spatial))
        schedule.reverse_compute_at(leaving, every[-1])
        schedule.set_scope(facts.block, 0, "local")
        begin = schedule.decompose_reduction(facts.block, [*reduced, steps][0])
        schedule.tensorize(lanes, self.intrin)
        for block in (begin, leaving):
            own = schedule.get_loops(block)[len(every) :]
            if (constant(schedule.get(own[-1]).extent) or 0) > LANES:
                # Sums leave as the instruction has them, or their vectors would be taken apart in each step.
                own[-1:] = schedule.split(own[-1], [None, LANES])
            attempt(schedule.vectorize, own[-1])
            for loop in own[:-1]:
                attempt(schedule.unroll, loop)
        for loop in (*rows, vectors):
            schedule.unroll(loop)
        attempt(schedule.parallel, schedule.fuse(*head) if len(head) > 1 else head[0])


def pack_groups(
    schedule: Schedule,
    facts: Facts,
    right: int,
    column_axis: int,
    group_axis: int,
    group: int,
    at: LoopRV | None = None,
) -> None:
    """Groups of the right operand one after the other, for sixteen columns each.

    Args:
        schedule: of the contraction.
        facts: what it does.
        right: the number of the operand.
        column_axis: the axis that results lie along.
        group_axis: that which is summed over in groups.
        group: elements of one.
        at: the loop that packs what it needs, for all before the first one if None.
    """
    operand = facts.reads[right]
    number = next(
        n for n, region in enumerate(schedule.get(facts.block).reads) if region.buffer.same_as(operand.buffer)
    )
    indices = [ir.Var(f"i{n}", "int32") for n in range(len(operand.indices))]
    dimensions = [dimension_of(facts, operand.indices, i) or 0 for i in (column_axis, group_axis)]
    turned = dimensions[1] == len(indices) - 1
    packed = _padding(schedule, facts, operand.buffer)
    # Groups that lie in a line each are words, which vectors are made of where nothing decides between values.
    padded = packed if packed is not None and turned and is_conditional(schedule.get(packed)) else None
    if packed is None or padded is not None:
        packed = schedule.cache_read(facts.block, number, "global", consumer_blocks=[facts.block])
    j, k = (indices[dimension] for dimension in dimensions)
    others = [index for index in indices if index is not j and index is not k]
    layout = ir.IndexMap(indices, [j // LANES, *others, k // group, j % LANES, k % group])
    schedule.transform_layout(packed, ("write", 0), layout)
    if at is not None:
        schedule.compute_at(packed, at, preserve_unit_loops=True)
    own = schedule.get_loops(packed)[-len(indices) :]
    if at is None and len(own) != len(indices):
        return
    if not turned and dimensions[0] != len(indices) - 1:
        return
    columns = (constant(schedule.get(own[dimensions[0]]).extent) or 0) // LANES
    neighbors_in_line = 1 if turned else math.gcd(columns, _NEIGHBORS) if at is not None else _NEIGHBORS
    panels, neighbors, lanes = schedule.split(own[dimensions[0]], [None, neighbors_in_line, LANES])
    groups, each = schedule.split(own[dimensions[1]], [None, group])
    rest = [loop for n, loop in enumerate(own) if n not in dimensions]
    schedule.reorder(*rest, panels, groups, neighbors, lanes, each)
    attempt(schedule.vectorize, lanes)
    attempt(schedule.unroll, each)
    if at is None:
        attempt(schedule.parallel, panels)
    elif padded is not None:
        # While what is padded is near: a row after the other.
        attempt(schedule.compute_at, padded, at, preserve_unit_loops=True)
        last = schedule.get_loops(padded)[-1]
        pieces = attempt(schedule.split, last, [None, _PIECE // (bits_of(operand.buffer.dtype) // 8)])
        attempt(schedule.vectorize, pieces[1] if pieces else last)


def _padding(schedule: Schedule, facts: Facts, buffer: ir.Buffer) -> BlockRV | None:
    """The block that makes an operand for this contraction alone."""
    for block in schedule.get_producers(facts.block):
        if schedule.get(block).writes[0].buffer.same_as(buffer) and is_plain(schedule, schedule.get_loops(block)):
            alone = len(schedule.get_consumers(block)) == 1 and not is_parameter(schedule, buffer)
            return block if alone else None
    return None
