"""Low-precision products by dot-product instructions, which add a few products to each of sixteen accumulators at once:
four of bytes, two of bfloat16."""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright import _core, ir
from tilewright.heuristics.block_info import (
    BlockInfo,
    Operand,
    block_info,
    coefficient,
    constant,
    epilogue_or_copy,
    is_conditional,
    is_plain,
)
from tilewright.heuristics.cpu.accumulators import accumulator_cycles
from tilewright.heuristics.cpu.execution import vectorize_last
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
from tilewright.heuristics.cpu.register_tile import RegisterTile, register_tiles
from tilewright.heuristics.loops import copy_operand, fuse_all, index_map, is_private
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def is_low_precision_product(match: Match) -> bool:
    """Return whether products of two numbers of at most 16 bits are added to 32 bits."""
    info = match.info
    low_precision = len(info.reads) == 2 and info.store.width == 4 and all(read.width <= 2 for read in info.reads)
    return low_precision and info.adds_products


def schedule_dot_products(match: Match) -> bool:
    """Schedule a contraction with the dot-product instruction of the target, if that is faster; sizes that leave a
    remainder are padded."""
    schedule, info, target = match.schedule, match.info, match.target
    for left in range(2):
        way = _best_way(info, left, target)
        if way is None or way.cycles >= _cycles_without(info, target):
            continue
        tile = way.tiles[match.sampler.choose(len(way.tiles))]
        if way.whole is not info:
            schedule.pad_einsum(info.block, way.steps)
            for copy in schedule.get_producers(info.block):
                for source in schedule.get_producers(copy):
                    try_step(schedule.compute_inline, source)  # the padding then includes the zeros that `source` adds
            again = block_info(schedule, info.block)
            if again is None:
                return True
            info = again
        # Return True even if a step is refused: the block has changed, so that `match.info` no longer describes it.
        try_step(_schedule, schedule, info, left, way.group, tile, way.intrin)
        return True
    return False


def dot_product_cycles(info: BlockInfo, target: _core.Target) -> float:
    """Return the estimated cycles of the fastest variant, with dot-product instructions or without."""
    ways = [_best_way(info, left, target) for left in range(2)]
    return min([_cycles_without(info, target), *(way.cycles for way in ways if way is not None)])


def _best_way(info: BlockInfo, left: int, target: _core.Target) -> _Way | None:
    # The instructions are scripts; parsing them, once per process, takes longer than a hundred schedules.
    from tilewright.tensor_intrin.x86 import best_dot

    types = info.reads[left].buffer.dtype, info.reads[1 - left].buffer.dtype, info.store.buffer.dtype
    found = best_dot(target, types)
    if found is None:
        return None
    ways = [_Way(info, left, *found, vectors, target) for vectors in range(1, DOT_VECTORS + 1)]
    return min((way for way in ways if way.tiles), key=lambda way: way.cycles, default=None)


def _cycles_without(info: BlockInfo, target: _core.Target) -> float:
    tiles = register_tiles(info, target)
    along = accumulator_cycles(info, target)
    if info.store.buffer.dtype.startswith("float"):
        along *= UPCAST_FACTOR
    return min(along, tiles[0].cycles if tiles else math.inf)


def column_axis(info: BlockInfo, left: int) -> int | None:
    """Return the axis along which results are contiguous, if the right operand alone varies with it."""
    a, b = info.reads[left], info.reads[1 - left]
    along = [i for i in info.spatial if _is_contiguous(info, info.store, i) and b.varies(i) and not a.varies(i)]
    return along[0] if along else None


def _is_contiguous(info: BlockInfo, operand: Operand, axis: int) -> bool:
    """Return whether an operand is contiguous along an axis that moves its last index, as the instructions'
    descriptions require."""
    return operand.strides[axis] == 1 and coefficient(operand.indices[-1], info.axes[axis].var) == 1


def dot_axis(info: BlockInfo, left: int) -> int | None:
    """Return the axis of the reduction along which the left operand is contiguous."""
    a, b, axis = info.reads[left], info.reads[1 - left], column_axis(info, left)
    for i in info.reduced if axis is not None else ():
        if _is_contiguous(info, a, i) and all(dimension_of(info, b.indices, j) is not None for j in (i, axis or 0)):
            return i
    return None


class _Way:
    """A way to use dot-product instructions: padded columns and reduction, and the tiles that fit."""

    def __init__(self, info: BlockInfo, left: int, intrin: str, group: int, vectors: int, target: _core.Target) -> None:
        self.intrin, self.group = intrin, group
        columns, reduction = column_axis(info, left), dot_axis(info, left)
        sizes = {columns: DOT_LANES * vectors, reduction: group}
        self.steps = [sizes.get(i, 1) for i in range(len(info.axes))]
        self.whole = padded(info, self.steps) if reduction is not None else None
        self.tiles = _fitting(self.whole, left, target) if self.whole is not None else []
        self.cycles = math.inf
        if self.whole is not None and self.tiles:
            is_padded = self.whole is not info
            steps = self.tiles[0].cycles / group * (DOT_PADDED_FACTOR if is_padded else 1.0)
            if "amx-bf16" in target.features and info.reads[left].buffer.dtype == "bfloat16":
                steps *= SLOW_PAIRS_FACTOR
            self.cycles = steps + packing_cycles(self.whole, 1 - left, reduction, is_padded)


def packing_cycles(info: BlockInfo, right: int, reduction: int | None, is_padded: bool) -> float:
    """Return the cycles of packing the right operand; a skinny left operand does not amortize them."""
    operand = info.reads[right]
    each = DOT_PACK_CYCLES
    if reduction is not None and operand.strides[reduction] == 1:
        each = DOT_TRANSPOSE_CYCLES * (DOT_PADDING_FACTOR if is_padded else 1.0)
    return info.size(info.varying(operand)) * each * operand.width


def padded(info: BlockInfo, steps: list[int]) -> BlockInfo | None:
    """Return the contraction with axes padded to multiples of the steps; None if it cannot be padded."""
    rest = [i for i, step in enumerate(steps) if step > 1 and not info.divides(step, i)]
    if not rest:
        return info
    plain = all(isinstance(index, (ir.Var, ir.IntImm)) for index in info.store.indices) and all(
        not read.varies(i) or dimension_of(info, read.indices, i) is not None for read in info.reads for i in rest
    )
    # Short axes would be padding for the most part.
    if not plain or any(not info.axes[i].is_fixed or 2 * info.extent(i) < steps[i] for i in rest):
        return None
    axes = tuple(
        replace(axis, extent=math.ceil(axis.extent / step) * step) for axis, step in zip(info.axes, steps, strict=True)
    )
    return replace(info, axes=axes)


def dimension_of(info: BlockInfo, indices: tuple[object, ...], axis: int) -> int | None:
    """Return the position of the only index that is an axis."""
    own = [n for n, index in enumerate(indices) if isinstance(index, ir.Var) and index.same_as(info.axes[axis].var)]
    return own[0] if len(own) == 1 else None


def _fitting(info: BlockInfo, left: int, target: _core.Target) -> list[RegisterTile]:
    """Return tiles of whole instructions, the best estimate first. Products of two signed bytes need one more
    accumulator for each vector of columns, which corrects their signs."""
    b, axis = info.reads[1 - left], column_axis(info, left)
    corrected = {read.buffer.dtype for read in info.reads} == {"int8"}
    found: list[RegisterTile] = []

    def cycles(tile: RegisterTile) -> float:
        return tile.cycles * (1 + 1 / tile.height) if corrected else tile.cycles

    for tile in sorted(register_tiles(info, target), key=cycles):
        rows, registers = dict(tile.rows), tile.vectors * tile.height + 2 * tile.vectors + 2
        if (
            tile.axis == axis
            and tile.columns % DOT_LANES == 0
            and info.divides(tile.columns, tile.axis)
            and not any(b.varies(i) for i in info.spatial if i != tile.axis)
            and (not corrected or registers <= target.vector_registers)
            and rows not in [dict(other.rows) for other in found if other.columns == tile.columns]
        ):
            found.append(tile)
    return found[:16]


def _schedule(schedule: Schedule, info: BlockInfo, left: int, group: int, tile: RegisterTile, intrin: str) -> None:
    axis = dot_axis(info, left)
    assert axis is not None
    pack_for_dot_products(schedule, info, 1 - left, tile.axis, axis, group)
    # Loops with a remainder stay innermost: the remainder of a fused loop cannot be peeled.
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
    reduced = info.loops(i for i in info.reduced if i != axis)
    steps, each = schedule.split(info.axes[axis].loop, [None, group])
    every = [*head, *with_tail]
    schedule.reorder(*every, *reduced, steps, *rows, vectors, lanes, each)
    epilogue = epilogue_or_copy(schedule, info, len(info.spatial))
    schedule.reverse_compute_at(epilogue, every[-1])
    schedule.set_scope(info.block, 0, "local")
    begin = schedule.decompose_reduction(info.block, [*reduced, steps][0])
    schedule.tensorize(lanes, intrin)
    for block in (begin, epilogue):
        vectorize_last(schedule, result_loops(schedule, block, len(every)))
    for loop in (*rows, vectors):
        schedule.unroll(loop)
    try_step(schedule.parallel, fuse_all(schedule, head))


def result_loops(schedule: Schedule, block: BlockRV, outside: int) -> list[LoopRV]:
    """Return the loops of a block without so many outer ones; the last one is split into vectors of the instruction's
    width, in which results are stored: otherwise each step would split the vectors."""
    own = schedule.get_loops(block)[outside:]
    if (constant(schedule.get(own[-1]).extent) or 0) > DOT_LANES:
        own[-1:] = schedule.split(own[-1], [None, DOT_LANES])
    return own


def pack_for_dot_products(
    schedule: Schedule,
    info: BlockInfo,
    right: int,
    columns: int,
    reduction: int,
    group: int,
    at: LoopRV | None = None,
) -> None:
    """Pack the right operand in panels of sixteen columns, in which the elements of a group are contiguous.

    Args:
        schedule: schedule of the contraction.
        info: access summary of the contraction.
        right: number of the right operand among the reads.
        columns: the axis along which results are contiguous.
        reduction: the axis whose steps are taken in groups.
        group: number of elements in a group.
        at: loop inside which its panels are packed; None: all panels are packed before the first loop.
    """
    operand = info.reads[right]
    rank = len(operand.indices)
    column, step = (dimension_of(info, operand.indices, i) or 0 for i in (columns, reduction))
    is_transposed = step == rank - 1
    packed = _sole_producer(schedule, info, operand.buffer)
    # Contiguous groups are loaded as words, which become vectors if no condition selects values.
    with_padding = packed if packed is not None and is_transposed and is_conditional(schedule.get(packed)) else None
    if packed is None or with_padding is not None:
        packed = copy_operand(schedule, info.block, operand.buffer)
    layout = index_map(
        rank,
        lambda v: [
            v[column] // DOT_LANES,
            *(index for n, index in enumerate(v) if n not in (column, step)),
            v[step] // group,
            v[column] % DOT_LANES,
            v[step] % group,
        ],
    )
    schedule.transform_layout(packed, ("write", 0), layout)
    if at is not None:
        schedule.compute_at(packed, at, preserve_unit_loops=True)
    own = schedule.get_loops(packed)[-rank:]
    if (at is None and len(own) != rank) or (not is_transposed and column != rank - 1):
        return
    extent = (constant(schedule.get(own[column]).extent) or 0) // DOT_LANES
    in_line = 1 if is_transposed else math.gcd(extent, DOT_PANELS) if at is not None else DOT_PANELS
    panels, neighbors, lanes = schedule.split(own[column], [None, in_line, DOT_LANES])
    groups, each = schedule.split(own[step], [None, group])
    rest = [loop for n, loop in enumerate(own) if n not in (column, step)]
    schedule.reorder(*rest, panels, groups, neighbors, lanes, each)
    try_step(schedule.vectorize, lanes)
    try_step(schedule.unroll, each)
    if at is None:
        try_step(schedule.parallel, panels)
    elif with_padding is not None:
        # The padded operand stays in a cache: one row after the other.
        try_step(schedule.compute_at, with_padding, at, preserve_unit_loops=True)
        last = schedule.get_loops(with_padding)[-1]
        tiles = try_step(schedule.split, last, [None, DOT_PADDED_BYTES // operand.width])
        try_step(schedule.vectorize, tiles[1] if tiles else last)


def _sole_producer(schedule: Schedule, info: BlockInfo, buffer: ir.Buffer) -> BlockRV | None:
    """Return the block that produces an operand only for this contraction."""
    for block in schedule.get_producers(info.block):
        if schedule.get(block).writes[0].buffer.same_as(buffer) and is_plain(schedule, schedule.get_loops(block)):
            return block if is_private(schedule, block) else None
    return None
