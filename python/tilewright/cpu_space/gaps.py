"""Operands that neighboring results read with gaps between (`x * 2 + rx` of a convolution with stride 2, channels
first): elements that are as far apart as the gaps go are laid side by side, each remainder in a line of its own.

Vectors of results load vectors then, whatever the window does, and the copy is no larger than the operand: padding that
is made anyway is made in that order, other operands are copied once."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.cpu_space.draw import attempt
from tilewright.cpu_space.facts import Facts, Operand, coefficient, constant, facts_of, is_parameter, is_spatial
from tilewright.cpu_space.plain import share
from tilewright.cpu_space.register_tile import bits_of
from tilewright.schedule import BlockRV, Schedule

#: results that have to share an element, that laying it elsewhere is worth it
_LEAST_USES = 8
#: steps between neighbors that the copy loads as the vectors between
_MOST_STEPS = 4


def close_gaps(schedule: Schedule, facts: Facts, target: _core.Target) -> Facts:
    """The contraction with such an operand laid out so; the same where there is none."""
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    along = [i for i in facts.spatial if facts.store.strides[i] == 1 and 2 * facts.extent(i) >= lanes]
    if len(along) != 1 or facts.phases or facts.periods[along[0]]:
        return facts
    with_gaps = [read for read in facts.reads if read.strides[along[0]] not in (0, 1)]
    if len(with_gaps) != 1 or not _is_shared(facts, with_gaps[0]):
        return facts
    read = with_gaps[0]
    steps = read.strides[along[0]]
    moved = [coefficient(index, facts.axes[along[0]].var) for index in read.indices]
    # Of another dimension, the copy of a group of columns is turned round anyway.
    if steps is None or not 1 < steps <= _MOST_STEPS or moved != [0] * (len(moved) - 1) + [steps]:
        return facts
    if any(constant(extent) is None for extent in read.buffer.shape):
        return facts
    if not attempt(_lay_out, schedule, facts, read, steps, target):
        return facts
    return facts_of(schedule, facts.block) or facts


def _is_shared(facts: Facts, read: Operand) -> bool:
    return math.prod(facts.extent(i) for i in facts.spatial if not read.varies(i)) >= _LEAST_USES


def _lay_out(schedule: Schedule, facts: Facts, read: Operand, steps: int, target: _core.Target) -> bool:
    buffer = read.buffer
    number = next(n for n, each in enumerate(schedule.get(facts.block).reads) if each.buffer.same_as(buffer))
    made = _made_for_it(schedule, facts.block, buffer)
    is_copy = made is None
    if made is None:
        made = schedule.cache_read(facts.block, number, "global", consumer_blocks=[facts.block])
    # The last line of a remainder may be longer than what is read of it.
    layout = _apart(len(buffer.shape), steps)
    schedule.transform_layout(facts.block, ("read", number), layout, assume_injective_transform=True)
    in_lines = attempt(_run_in_lines, schedule, made, steps)
    # What is made for it anyway gets its vectors with the other blocks, unless its lines are cut off.
    if is_copy or not in_lines:
        attempt(_vectors, schedule, made, 1 if in_lines else steps, target)
    return True


def _run_in_lines(schedule: Schedule, made: BlockRV, steps: int) -> bool:
    """Over axes that are the dimensions of the operand as it lies now."""
    schedule.transform_block_layout(made, _apart(len(schedule.get_loops(made)), steps))
    return True


def _vectors(schedule: Schedule, made: BlockRV, steps: int, target: _core.Target) -> bool:
    """Along the lines in which the operand lies now: so many steps of the last loop."""
    *outer, line = schedule.get_loops(made)
    total = math.prod(constant(schedule.get(loop).extent) or 1 for loop in (*outer, line))
    if steps > 1:
        line, remainder = schedule.split(line, [None, steps])
        schedule.reorder(remainder, line)
    schedule.vectorize(line)
    share(schedule, outer, total, target)
    return True


def _made_for_it(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> BlockRV | None:
    """The block that makes an operand for this one alone, with one axis for each of its dimensions."""
    for producer in schedule.get_producers(block):
        node = schedule.get(producer)
        if not any(region.buffer.same_as(buffer) for region in node.writes):
            continue
        facts = facts_of(schedule, producer)
        alone = len(schedule.get_consumers(producer)) == 1 and is_spatial(node) and not is_parameter(schedule, buffer)
        in_order = facts is not None and len(facts.axes) == len(buffer.shape) and facts.store.strides[-1] == 1
        return producer if alone and in_order else None
    return None


def _apart(rank: int, steps: int) -> ir.IndexMap:
    """The remainders of the last index before its lines."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    *outer, last = indices
    return ir.IndexMap(indices, [*outer, last % steps, last // steps])
