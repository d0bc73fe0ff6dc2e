"""De-interleave operands that adjacent results read with a stride (`x * 2 + rx` of a convolution with stride 2 and
channels first): elements with equal residue modulo the stride become contiguous.

Results then load whole vectors for each step of the window. The copy is no larger than the operand: padding is computed
in that layout, other operands are copied once."""

from __future__ import annotations

import math

from tilewright import ir
from tilewright.heuristics.block_info import (
    BlockInfo,
    Operand,
    block_info,
    coefficient,
    constant,
    number_of_read,
    size_of,
)
from tilewright.heuristics.cpu.execution import parallelize
from tilewright.heuristics.cpu.parameters import DEINTERLEAVE_STRIDE, DEINTERLEAVE_USES
from tilewright.heuristics.loops import copy_operand, index_map, is_private, producer_of
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import succeeds, try_step
from tilewright.schedule import BlockRV, Schedule


def deinterleave(match: Match) -> BlockInfo:
    """Return the contraction with its strided operand de-interleaved, or unchanged."""
    info = match.info
    along = info.contiguous_axes(match.lanes)
    if len(along) != 1 or info.periods[along[0]]:
        return info
    strided = [read for read in info.reads if read.strides[along[0]] not in (0, 1)]
    if len(strided) != 1 or info.uses(strided[0]) < DEINTERLEAVE_USES:
        return info
    read = strided[0]
    stride = read.strides[along[0]]
    steps = [coefficient(index, info.axes[along[0]].var) for index in read.indices]
    # An operand that is contiguous along another dimension is transposed while it is packed.
    if stride is None or not 1 < stride <= DEINTERLEAVE_STRIDE or steps != [0] * (len(steps) - 1) + [stride]:
        return info
    if size_of(read.buffer) is None or not succeeds(_rearrange, match, read, stride):
        return info
    return match.again()


def _rearrange(match: Match, read: Operand, stride: int) -> None:
    schedule, block = match.schedule, match.info.block
    number = number_of_read(schedule, block, read.buffer)
    producer = _producer_in_order(schedule, block, read)
    made = producer or copy_operand(schedule, block, read.buffer)
    # The last row of a residue may have more elements than the block reads.
    layout = _residues_first(len(read.buffer.shape), stride)
    schedule.transform_layout(block, ("read", number), layout, assume_injective_transform=True)
    in_lines = succeeds(_follow_layout, schedule, made, stride)
    # A producer is vectorized with the other blocks, unless its loops do not follow the new layout.
    if producer is None or not in_lines:
        try_step(_vectorize, match, made, 1 if in_lines else stride)


def _follow_layout(schedule: Schedule, made: BlockRV, stride: int) -> None:
    """Make the loops of a block follow the dimensions of the new layout."""
    schedule.transform_block_layout(made, _residues_first(len(schedule.get_loops(made)), stride))


def _vectorize(match: Match, made: BlockRV, steps: int) -> None:
    """Vectorize the last loop of a block; if `steps` > 1, each residue of that loop modulo `steps` has its own
    vectors."""
    schedule = match.schedule
    *outer, line = schedule.get_loops(made)
    work = math.prod(constant(schedule.get(loop).extent) or 1 for loop in (*outer, line))
    if steps > 1:
        line, remainder = schedule.split(line, [None, steps])
        schedule.reorder(remainder, line)
    schedule.vectorize(line)
    parallelize(schedule, outer, work, match.target)


def _producer_in_order(schedule: Schedule, block: BlockRV, read: Operand) -> BlockRV | None:
    """Return the block that produces an operand only for this contraction, with one axis for each dimension of the
    operand."""
    producer = producer_of(schedule, block, read.buffer)
    info = None if producer is None else block_info(schedule, producer)
    if producer is None or info is None or not is_private(schedule, producer) or info.reduced:
        return None
    return producer if len(info.axes) == len(read.buffer.shape) and info.store.strides[-1] == 1 else None


def _residues_first(rank: int, stride: int) -> ir.IndexMap:
    return index_map(rank, lambda v: [*v[:-1], v[-1] % stride, v[-1] // stride])
