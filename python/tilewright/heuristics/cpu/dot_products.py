"""Sums of products of narrow numbers, by instructions that add a few of them to each of sixteen sums at once: four of
bytes, two of bfloat16."""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import (
    BlockInfo,
    Operand,
    block_info,
    coefficient,
    constant,
    epilogue_or_copy,
    is_conditional,
    is_parameter,
    is_plain,
)
from tilewright.heuristics.cpu.parameters import (
    DOT_LANES,
    DOT_PACK_CYCLES,
    DOT_PADDED_BYTES,
    DOT_PADDED_FACTOR,
    DOT_PADDING_FACTOR,
    DOT_PANELS,
    DOT_TRANSPOSE_CYCLES,
    DOT_VECTORS,
    SLOW_PAIRS_FACTOR,
    UPCAST_FACTOR,
)
from tilewright.heuristics.cpu.register_tile import RegisterTile, accumulator_cycles, bits_of, register_tiles
from tilewright.heuristics.cpu.sampling import Sampler, try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def schedule_dot_products(schedule: Schedule, info: BlockInfo, target: _core.Target, sampler: Sampler) -> bool:
    """Whether a contraction has such an instruction, and takes it. Sizes that leave a rest are rounded up."""
    if not is_low_precision_product(info):
        return False
    for left in range(2):
        way = _best_way(info, left, target)
        if way is None or way.cycles >= _cycles_without_dot_products(info, target):
            continue
        tile = way.tiles[sampler.choose(len(way.tiles))]
        if way.whole is not info:
            schedule.pad_einsum(info.block, way.steps)
            for copy in schedule.get_producers(info.block):
                for source in schedule.get_producers(copy):
                    try_step(schedule.compute_inline, source)  # zeros around it are made with those behind
            again = block_info(schedule, info.block)
            if again is None:
                return True
            info = again
        # Where a step is refused, what others know of the block is no longer so.
        try_step(_DotProducts(schedule, info, left, way.group, tile, way.intrin).run)
        return True
    return False


def is_low_precision_product(info: BlockInfo) -> bool:
    """Whether products of two narrow numbers are added to wide ones: others have no instruction that takes a group."""
    if len(info.reads) != 2 or info.residue_axes or not info.adds_products:
        return False
    return bits_of(info.store.buffer.dtype) == 32 and all(bits_of(read.buffer.dtype) <= 16 for read in info.reads)


def dot_product_cycles(info: BlockInfo, target: _core.Target) -> float:
    """What the model expects of the fastest way that adds a group or one product at a time."""
    ways = [_best_way(info, left, target) for left in range(2)]
    return min([_cycles_without_dot_products(info, target), *(way.cycles for way in ways if way is not None)])


def _best_way(info: BlockInfo, left: int, target: _core.Target) -> _Way | None:
    # The instructions are scripts; reading them, once in a process, takes longer than a hundred schedules.
    from tilewright.tensor_intrin.x86 import best_dot

    types = info.reads[left].buffer.dtype, info.reads[1 - left].buffer.dtype, info.store.buffer.dtype
    found = best_dot(target, types)
    if found is None:
        return None
    ways = [_Way(info, left, *found, vectors, target) for vectors in range(1, DOT_VECTORS + 1)]
    return min((way for way in ways if way.tiles), key=lambda way: way.cycles, default=None)


def _cycles_without_dot_products(info: BlockInfo, target: _core.Target) -> float:
    """What the model expects of one product at a time, where the operands lie."""
    tiles = register_tiles(info, target)
    along = accumulator_cycles(info, target)
    if info.store.buffer.dtype.startswith("float"):
        along *= UPCAST_FACTOR
    return min(along, tiles[0].cycles if tiles else math.inf)


def column_axis(info: BlockInfo, left: int) -> int | None:
    """The axis that results lie along, of the right operand alone."""
    a, b = info.reads[left], info.reads[1 - left]
    along = [i for i in info.spatial if _lies_along(info, info.store, i) and b.varies(i) and not a.varies(i)]
    return along[0] if along else None


def _lies_along(info: BlockInfo, operand: Operand, axis: int) -> bool:
    """Whether neighbors along an axis are neighbors in memory, and their last indices follow one another: instructions
    are described with those."""
    return operand.strides[axis] == 1 and coefficient(operand.indices[-1], info.axes[axis].var) == 1


def dot_axis(info: BlockInfo, left: int) -> int | None:
    """The reduction along which the numbers of a group lie side by side in the left operand."""
    a, b, axis = info.reads[left], info.reads[1 - left], column_axis(info, left)
    if axis is None:
        return None
    for i in info.reduced:
        if _lies_along(info, a, i) and all(dimension_of(info, b.indices, j) is not None for j in (i, axis)):
            return i
    return None


class _Way:
    """Columns rounded up to so many whole vectors, and a reduction rounded up to whole groups: the tiles that fit."""

    def __init__(self, info: BlockInfo, left: int, intrin: str, group: int, vectors: int, target: _core.Target) -> None:
        self.intrin, self.group = intrin, group
        columns, reduction = column_axis(info, left), dot_axis(info, left)
        sizes = {columns: DOT_LANES * vectors, reduction: group}
        self.steps = [sizes.get(i, 1) for i in range(len(info.axes))]
        self.whole = padded(info, self.steps) if reduction is not None else None
        self.tiles = _fitting(self.whole, left, target) if self.whole is not None else []
        self.cycles = math.inf
        if self.whole is not None and self.tiles:
            # What is rounded up is copied before and after.
            steps = self.tiles[0].cycles / group * (1.0 if self.whole is info else DOT_PADDED_FACTOR)
            if "amx-bf16" in target.features and info.reads[left].buffer.dtype == "bfloat16":
                steps *= SLOW_PAIRS_FACTOR
            self.cycles = steps + cycles_of_packing(self.whole, 1 - left, reduction, self.whole is not info)


def cycles_of_packing(info: BlockInfo, right: int, reduction: int | None, is_rounded: bool) -> float:
    """Cycles that the right operand takes until its groups lie one after the other: what few rows use is not worth
    it."""
    operand = info.reads[right]
    size = math.prod(axis.extent for i, axis in enumerate(info.axes) if operand.varies(i))
    each = DOT_PACK_CYCLES
    if reduction is not None and operand.strides[reduction] == 1:
        each = DOT_TRANSPOSE_CYCLES * (DOT_PADDING_FACTOR if is_rounded else 1.0)
    return size * each * bits_of(operand.buffer.dtype) / 8


def padded(info: BlockInfo, steps: list[int]) -> BlockInfo | None:
    """With axes that are multiples of the steps; None where that cannot be."""
    rest = [i for i, step in enumerate(steps) if step > 1 and not info.divides(step, i)]
    if not rest:
        return info
    plain = all(isinstance(index, (ir.Var, ir.IntImm)) for index in info.store.indices) and all(
        not read.varies(i) or dimension_of(info, read.indices, i) is not None for read in info.reads for i in rest
    )
    # Of short axes most would be what is added.
    if not plain or any(not info.axes[i].is_fixed or 2 * info.extent(i) < steps[i] for i in rest):
        return None
    axes = tuple(
        replace(axis, extent=math.ceil(axis.extent / step) * step) for axis, step in zip(info.axes, steps, strict=True)
    )
    return replace(info, axes=axes)


def dimension_of(info: BlockInfo, indices: tuple[object, ...], axis: int) -> int | None:
    """The one index that an axis is."""
    own = [n for n, index in enumerate(indices) if isinstance(index, ir.Var) and index.same_as(info.axes[axis].var)]
    return own[0] if len(own) == 1 else None


def _fitting(info: BlockInfo, left: int, target: _core.Target) -> list[RegisterTile]:
    """Tiles of whole instructions, the one that the model expects most of first."""
    b, axis = info.reads[1 - left], column_axis(info, left)
    found: list[RegisterTile] = []
    for tile in sorted(register_tiles(info, target), key=lambda tile: _corrected(info, tile)):
        rows = dict(tile.rows)
        if (
            tile.axis == axis
            and tile.columns % DOT_LANES == 0
            and info.divides(tile.columns, tile.axis)
            and not any(b.varies(i) for i in info.spatial if i != tile.axis)
            and _has_registers(info, tile, target)
            and rows not in [dict(other.rows) for other in found if other.columns == tile.columns]
        ):
            found.append(tile)
    return found[:16]


def _corrected(info: BlockInfo, tile: RegisterTile) -> float:
    """Cycles, with those of one more sum for each vector of columns, which corrects bytes with signs on both sides."""
    if {read.buffer.dtype for read in info.reads} != {"int8"}:
        return tile.cycles
    return tile.cycles * (1 + 1 / math.prod(size for _, size in tile.rows))


def _has_registers(info: BlockInfo, tile: RegisterTile, target: _core.Target) -> bool:
    """Whether all sums stay in registers: those of bytes with signs on both sides are corrected by one more sum for
    each vector of columns."""
    if {read.buffer.dtype for read in info.reads} != {"int8"}:
        return True
    sums = tile.vectors * math.prod(size for _, size in tile.rows)
    return sums + 2 * tile.vectors + 2 <= target.vector_registers


class _DotProducts:
    def __init__(
        self, schedule: Schedule, info: BlockInfo, left: int, group: int, tile: RegisterTile, intrin: str
    ) -> None:
        self.schedule, self.info, self.left, self.tile, self.intrin = schedule, info, left, tile, intrin
        self.group = group

    def run(self) -> None:
        schedule, info, tile = self.schedule, self.info, self.tile
        group_axis = dot_axis(info, self.left)
        assert group_axis is not None
        pack_for_dot_products(schedule, info, 1 - self.left, tile.axis, group_axis, self.group)
        # Loops with a tail stay inside: fused with others, their tails cannot be told apart any more.
        head: list[LoopRV] = []
        with_tail: list[LoopRV] = []
        rows: list[LoopRV] = []
        for i in [tile.axis, *(i for i in info.spatial if i != tile.axis)]:
            loop = info.axes[i].loop
            if i == tile.axis:
                outer, vectors, lanes = schedule.split(loop, [None, tile.columns // DOT_LANES, DOT_LANES])
                head.append(outer)
            elif tile.size(i) > 1:
                outer, inner = schedule.split(loop, [None, tile.size(i)])
                (head if info.divides(tile.size(i), i) else with_tail).append(outer)
                rows.append(inner)
            else:
                head.append(loop)
        reduced = [info.axes[i].loop for i in info.reduced if i != group_axis]
        steps, group = schedule.split(info.axes[group_axis].loop, [None, self.group])
        every = [*head, *with_tail]
        schedule.reorder(*every, *reduced, steps, *rows, vectors, lanes, group)
        leaving = epilogue_or_copy(schedule, info, len(info.spatial))
        schedule.reverse_compute_at(leaving, every[-1])
        schedule.set_scope(info.block, 0, "local")
        begin = schedule.decompose_reduction(info.block, [*reduced, steps][0])
        schedule.tensorize(lanes, self.intrin)
        for block in (begin, leaving):
            own = schedule.get_loops(block)[len(every) :]
            if (constant(schedule.get(own[-1]).extent) or 0) > DOT_LANES:
                # Sums leave as the instruction has them, or their vectors would be taken apart in each step.
                own[-1:] = schedule.split(own[-1], [None, DOT_LANES])
            try_step(schedule.vectorize, own[-1])
            for loop in own[:-1]:
                try_step(schedule.unroll, loop)
        for loop in (*rows, vectors):
            schedule.unroll(loop)
        try_step(schedule.parallel, schedule.fuse(*head) if len(head) > 1 else head[0])


def pack_for_dot_products(
    schedule: Schedule,
    info: BlockInfo,
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
    operand = info.reads[right]
    number = next(n for n, region in enumerate(schedule.get(info.block).reads) if region.buffer.same_as(operand.buffer))
    indices = [ir.Var(f"i{n}", "int32") for n in range(len(operand.indices))]
    dimensions = [dimension_of(info, operand.indices, i) or 0 for i in (column_axis, group_axis)]
    turned = dimensions[1] == len(indices) - 1
    packed = _padding(schedule, info, operand.buffer)
    # Groups that lie in a line each are words, which vectors are made of where nothing decides between values.
    padded = packed if packed is not None and turned and is_conditional(schedule.get(packed)) else None
    if packed is None or padded is not None:
        packed = schedule.cache_read(info.block, number, "global", consumer_blocks=[info.block])
    j, k = (indices[dimension] for dimension in dimensions)
    others = [index for index in indices if index is not j and index is not k]
    layout = ir.IndexMap(indices, [j // DOT_LANES, *others, k // group, j % DOT_LANES, k % group])
    schedule.transform_layout(packed, ("write", 0), layout)
    if at is not None:
        schedule.compute_at(packed, at, preserve_unit_loops=True)
    own = schedule.get_loops(packed)[-len(indices) :]
    if at is None and len(own) != len(indices):
        return
    if not turned and dimensions[0] != len(indices) - 1:
        return
    columns = (constant(schedule.get(own[dimensions[0]]).extent) or 0) // DOT_LANES
    neighbors_in_line = 1 if turned else math.gcd(columns, DOT_PANELS) if at is not None else DOT_PANELS
    panels, neighbors, lanes = schedule.split(own[dimensions[0]], [None, neighbors_in_line, DOT_LANES])
    groups, each = schedule.split(own[dimensions[1]], [None, group])
    rest = [loop for n, loop in enumerate(own) if n not in dimensions]
    schedule.reorder(*rest, panels, groups, neighbors, lanes, each)
    try_step(schedule.vectorize, lanes)
    try_step(schedule.unroll, each)
    if at is None:
        try_step(schedule.parallel, panels)
    elif padded is not None:
        # While what is padded is near: a row after the other.
        try_step(schedule.compute_at, padded, at, preserve_unit_loops=True)
        last = schedule.get_loops(padded)[-1]
        pieces = try_step(schedule.split, last, [None, DOT_PADDED_BYTES // (bits_of(operand.buffer.dtype) // 8)])
        try_step(schedule.vectorize, pieces[1] if pieces else last)


def _padding(schedule: Schedule, info: BlockInfo, buffer: ir.Buffer) -> BlockRV | None:
    """The block that makes an operand for this contraction alone."""
    for block in schedule.get_producers(info.block):
        if schedule.get(block).writes[0].buffer.same_as(buffer) and is_plain(schedule, schedule.get_loops(block)):
            alone = len(schedule.get_consumers(block)) == 1 and not is_parameter(schedule, buffer)
            return block if alone else None
    return None
