"""Operands that neighboring results read with gaps between (`x * 2 + rx` of a convolution with stride 2, channels
first): elements that are as far apart as the gaps go are laid side by side, each remainder in a line of its own.

Vectors of results load vectors then, whatever the window does, and the copy is no larger than the operand: padding that
is made anyway is made in that order, other operands are copied once."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import (
    BlockInfo,
    Operand,
    block_info,
    coefficient,
    constant,
    is_parameter,
    is_spatial,
)
from tilewright.heuristics.cpu.parameters import DEINTERLEAVE_STRIDE, DEINTERLEAVE_USES
from tilewright.heuristics.cpu.register_tile import bits_of
from tilewright.heuristics.cpu.sampling import try_step
from tilewright.heuristics.cpu.single_blocks import parallelize
from tilewright.schedule import BlockRV, Schedule


def deinterleave(schedule: Schedule, info: BlockInfo, target: _core.Target) -> BlockInfo:
    """The contraction with such an operand laid out so; the same where there is none."""
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    along = [i for i in info.spatial if info.store.strides[i] == 1 and 2 * info.extent(i) >= lanes]
    if len(along) != 1 or info.residue_axes or info.periods[along[0]]:
        return info
    with_gaps = [read for read in info.reads if read.strides[along[0]] not in (0, 1)]
    if len(with_gaps) != 1 or not _is_parallel(info, with_gaps[0]):
        return info
    read = with_gaps[0]
    steps = read.strides[along[0]]
    moved = [coefficient(index, info.axes[along[0]].var) for index in read.indices]
    # Of another dimension, the copy of a group of columns is turned round anyway.
    if steps is None or not 1 < steps <= DEINTERLEAVE_STRIDE or moved != [0] * (len(moved) - 1) + [steps]:
        return info
    if any(constant(extent) is None for extent in read.buffer.shape):
        return info
    if not try_step(_rearrange, schedule, info, read, steps, target):
        return info
    return block_info(schedule, info.block) or info


def _is_parallel(info: BlockInfo, read: Operand) -> bool:
    return math.prod(info.extent(i) for i in info.spatial if not read.varies(i)) >= DEINTERLEAVE_USES


def _rearrange(schedule: Schedule, info: BlockInfo, read: Operand, steps: int, target: _core.Target) -> bool:
    buffer = read.buffer
    number = next(n for n, each in enumerate(schedule.get(info.block).reads) if each.buffer.same_as(buffer))
    made = _sole_producer(schedule, info.block, buffer)
    is_copy = made is None
    if made is None:
        made = schedule.cache_read(info.block, number, "global", consumer_blocks=[info.block])
    # The last line of a remainder may be longer than what is read of it.
    layout = _remainders_first(len(buffer.shape), steps)
    schedule.transform_layout(info.block, ("read", number), layout, assume_injective_transform=True)
    in_lines = try_step(_follow_layout, schedule, made, steps)
    # What is made for it anyway gets its vectors with the other blocks, unless its lines are cut off.
    if is_copy or not in_lines:
        try_step(_vectors, schedule, made, 1 if in_lines else steps, target)
    return True


def _follow_layout(schedule: Schedule, made: BlockRV, steps: int) -> bool:
    """Over axes that are the dimensions of the operand as it lies now."""
    schedule.transform_block_layout(made, _remainders_first(len(schedule.get_loops(made)), steps))
    return True


def _vectors(schedule: Schedule, made: BlockRV, steps: int, target: _core.Target) -> bool:
    """Along the lines in which the operand lies now: so many steps of the last loop."""
    *outer, line = schedule.get_loops(made)
    total = math.prod(constant(schedule.get(loop).extent) or 1 for loop in (*outer, line))
    if steps > 1:
        line, remainder = schedule.split(line, [None, steps])
        schedule.reorder(remainder, line)
    schedule.vectorize(line)
    parallelize(schedule, outer, total, target)
    return True


def _sole_producer(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> BlockRV | None:
    """The block that makes an operand for this one alone, with one axis for each of its dimensions."""
    for producer in schedule.get_producers(block):
        node = schedule.get(producer)
        if not any(region.buffer.same_as(buffer) for region in node.writes):
            continue
        info = block_info(schedule, producer)
        alone = len(schedule.get_consumers(producer)) == 1 and is_spatial(node) and not is_parameter(schedule, buffer)
        in_order = info is not None and len(info.axes) == len(buffer.shape) and info.store.strides[-1] == 1
        return producer if alone and in_order else None
    return None


def _remainders_first(rank: int, steps: int) -> ir.IndexMap:
    """The remainders of the last index before its lines."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    *outer, last = indices
    return ir.IndexMap(indices, [*outer, last % steps, last // steps])
