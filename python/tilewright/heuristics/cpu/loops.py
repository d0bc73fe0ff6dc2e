"""Steps of a schedule that several patterns share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import (
    constant,
    is_parameter,
    is_plain,
    loops_of_axes,
    number_of_read,
)
from tilewright.heuristics.cpu.nested_schedule import NestedSchedule
from tilewright.heuristics.cpu.parameters import CHUNKS_PER_CORE, PARALLEL_ELEMENTS
from tilewright.heuristics.cpu.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def fuse_all(schedule: Schedule, loops: Sequence[LoopRV]) -> LoopRV:
    """Return one loop for several."""
    return schedule.fuse(*loops) if len(loops) > 1 else loops[0]


def order_loops(schedule: Schedule, block: BlockRV) -> None:
    """Order the loops as the axes, in which patterns look for them: a product may be written in any order."""
    wanted, loops = loops_of_axes(schedule, block), schedule.get_loops(block)
    in_order = all(schedule.get(a).same_as(schedule.get(b)) for a, b in zip(wanted, loops, strict=False))
    if wanted and not in_order and is_plain(schedule, loops):
        schedule.reorder(*wanted)


def vectorize_last(schedule: Schedule, loops: Sequence[LoopRV]) -> None:
    """Vectorize the innermost of the loops of a tile, and unroll the others."""
    for loop in loops[-1:]:
        try_step(schedule.vectorize, loop)
    for loop in loops[:-1]:
        try_step(schedule.unroll, loop)


def innermost(schedule: Schedule, *blocks: BlockRV | None) -> list[LoopRV]:
    """Return the innermost loops of blocks; None is a block that a refused step would have made."""
    return [schedule.get_loops(block)[-1] for block in blocks if block is not None]


def starts_with(schedule: Schedule, block: BlockRV, loop: LoopRV) -> bool:
    """Whether a loop is the outermost one of a block."""
    own = schedule.get_loops(block)
    return bool(own) and schedule.get(own[0]).loop_var.same_as(schedule.get(loop).loop_var)


def copy_operand(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> BlockRV:
    """Return a block that copies what a block reads, for this block alone."""
    number = number_of_read(schedule, block, buffer)
    return schedule.cache_read(block, number, "global", consumer_blocks=[block])


def is_private(schedule: Schedule, block: BlockRV) -> bool:
    """Whether a block writes a buffer that one other block reads, and no caller."""
    return len(schedule.get_consumers(block)) == 1 and not is_parameter(schedule, schedule.get(block).writes[0].buffer)


def producer_of(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> BlockRV | None:
    """Return the block that writes an operand of another one."""
    for producer in schedule.get_producers(block):
        if any(region.buffer.same_as(buffer) for region in schedule.get(producer).writes):
            return producer
    return None


def index_map(rank: int, order: Callable[[list[Any]], Iterable[Any]]) -> ir.IndexMap:
    """Return a map from so many indices to what `order` makes of them."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    return ir.IndexMap(indices, [*order(indices)])


def largest_divisor(size: int | None, most: int, fewest: int = 1) -> int | None:
    """Return the largest divisor between two bounds, None if there is none or the size is not known."""
    return next((each for each in range(most, fewest - 1, -1) if size and size % each == 0), None)


def split_vectors(schedule: Schedule, loop: LoopRV, lanes: int) -> None:
    """Vectorize a loop: whole if its extent is constant, else a few vectors at a time."""
    if constant(schedule.get(loop).extent) is None:
        tiles = try_step(schedule.split, loop, [None, 4 * lanes])
        loop = tiles[1] if tiles else loop
    try_step(schedule.vectorize, loop)


def parallelize(schedule: Schedule, loops: Sequence[LoopRV], work: int, target: _core.Target) -> None:
    """Fuse outer loops into one parallel loop, if there is enough work.

    As few loops are fused as give enough chunks, and no more of the last one: indices of fused loops are divided again
    in each step. Behind a loop of symbolic extent only one more: the remaining indices are affine, and tails can be
    peeled.

    Args:
        work: elements that are computed.
    """
    if not loops or work < PARALLEL_ELEMENTS or isinstance(schedule, NestedSchedule):
        return
    enough = CHUNKS_PER_CORE * target.num_cores if target.num_cores > 1 else 2
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
    fused = try_step(fuse_all, schedule, taken)
    if fused is not None:
        try_step(schedule.parallel, fused)
