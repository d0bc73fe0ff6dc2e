"""Contractions whose results lie along a short axis (three channels): vectors run along another axis, which the operand
that depends on it is laid out along."""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright import _core, ir
from tilewright.cpu_space.draw import attempt
from tilewright.cpu_space.facts import Facts, coefficient, facts_of, is_parameter
from tilewright.cpu_space.register_tile import bits_of, cycles_of_lanes_along
from tilewright.schedule import BlockRV, Schedule

#: of an element that is copied to another place, and of lanes that are added up
_TURN_CYCLES, _END_CYCLES = 2.0, 12.0


def lay_out_along_vectors(schedule: Schedule, facts: Facts, target: _core.Target) -> Facts:
    """Turns the operand of a contraction, or a copy of it, so that vectors of it lie side by side; returns what is so
    then, which is the same where the results lie along an axis that is long enough."""
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    # So few of the lanes would be used that results in another order than vectors are the lesser evil.
    if any(facts.store.strides[i] == 1 and 2 * facts.extent(i) >= lanes for i in facts.spatial):
        return facts
    wide = [i for i in facts.spatial if facts.extent(i) >= lanes and i not in facts.phases]
    for axis in sorted(wide, key=lambda i: (facts.extent(i), i), reverse=True):
        varying = [number for number, read in enumerate(facts.reads) if read.varies(axis)]
        if len(varying) != 1 or facts.reads[varying[0]].strides[axis] == 1:
            continue
        read = facts.reads[varying[0]]
        # What lies in memory that others know is packed group by group instead, where that can be.
        if None not in read.strides and not _is_made_here(schedule, facts.block, read.buffer):
            continue
        moved = [coefficient(index, facts.axes[axis].var) for index in read.indices]
        if sorted(moved, key=str) == [*[0] * (len(moved) - 1), 1]:
            turned = attempt(_turn, schedule, facts.block, read.buffer, moved.index(1))
            return (facts_of(schedule, facts.block) or facts) if turned else facts
    return facts


def turn_along_sums(schedule: Schedule, facts: Facts, target: _core.Target, below: float) -> bool:
    """Turns copies of operands that are small beside the work, so that all lie along the sums; nothing where partial
    sums in the lanes take as many cycles then as `below`."""
    last = facts.reduced[-1]
    moved: list[tuple[ir.Buffer, int]] = []
    copying = 0.0
    straight = []
    for read in facts.reads:
        strides = list(read.strides)
        if strides[last] not in (0, 1):
            steps = [coefficient(index, facts.axes[last].var) for index in read.indices]
            if None in strides or sorted(steps, key=str) != [*[0] * (len(steps) - 1), 1]:
                return False
            known = [dimension for buffer, dimension in moved if buffer.same_as(read.buffer)]
            if known:  # one copy serves both, or none can
                if known != [steps.index(1)]:
                    return False
            else:
                moved.append((read.buffer, steps.index(1)))
            copying += _TURN_CYCLES * math.prod(axis.extent for i, axis in enumerate(facts.axes) if read.varies(i))
            strides[last] = 1
        straight.append(replace(read, strides=tuple(strides)))
    results = math.prod(facts.extent(i) for i in facts.spatial)
    cycles = cycles_of_lanes_along(replace(facts, reads=tuple(straight)), target) + copying + _END_CYCLES * results
    if not moved or cycles >= below:
        return False
    return all(attempt(_turn, schedule, facts.block, buffer, dimension) for buffer, dimension in moved)


def _turn(schedule: Schedule, block: BlockRV, buffer: ir.Buffer, dimension: int) -> bool:
    number = next(n for n, region in enumerate(schedule.get(block).reads) if region.buffer.same_as(buffer))
    if not _is_made_here(schedule, block, buffer):
        schedule.cache_read(block, number, "global", consumer_blocks=[block])
    indices = [ir.Var(f"i{n}", "int32") for n in range(len(buffer.shape))]
    last = indices.pop(dimension)
    order = ir.IndexMap([*indices[:dimension], last, *indices[dimension:]], [*indices, last])
    schedule.transform_layout(block, ("read", number), order)
    return True


def _is_made_here(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> bool:
    producers = [schedule.get(producer) for producer in schedule.get_producers(block)]
    return not is_parameter(schedule, buffer) and any(
        region.buffer.same_as(buffer) for producer in producers for region in producer.writes
    )
