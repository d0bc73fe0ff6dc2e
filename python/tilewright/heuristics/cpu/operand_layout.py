"""Contractions whose results lie along a short axis (three channels): vectors run along another axis, which the operand
that depends on it is laid out along."""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import BlockInfo, block_info, coefficient, is_parameter
from tilewright.heuristics.cpu.parameters import RELAYOUT_CYCLES, RELAYOUT_RESULT_CYCLES
from tilewright.heuristics.cpu.register_tile import accumulator_cycles, bits_of
from tilewright.heuristics.cpu.sampling import try_step
from tilewright.schedule import BlockRV, Schedule


def transpose_for_vectors(schedule: Schedule, info: BlockInfo, target: _core.Target) -> BlockInfo:
    """Turns the operand of a contraction, or a copy of it, so that vectors of it lie side by side; returns what is so
    then, which is the same where the results lie along an axis that is long enough."""
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    # So few of the lanes would be used that results in another order than vectors are the lesser evil.
    if any(info.store.strides[i] == 1 and 2 * info.extent(i) >= lanes for i in info.spatial):
        return info
    wide = [i for i in info.spatial if info.extent(i) >= lanes and i not in info.residue_axes]
    for axis in sorted(wide, key=lambda i: (info.extent(i), i), reverse=True):
        varying = [number for number, read in enumerate(info.reads) if read.varies(axis)]
        if len(varying) != 1 or info.reads[varying[0]].strides[axis] == 1:
            continue
        read = info.reads[varying[0]]
        # What lies in memory that others know is packed group by group instead, where that can be.
        if None not in read.strides and not _is_intermediate(schedule, info.block, read.buffer):
            continue
        moved = [coefficient(index, info.axes[axis].var) for index in read.indices]
        if sorted(moved, key=str) == [*[0] * (len(moved) - 1), 1]:
            turned = try_step(_transpose, schedule, info.block, read.buffer, moved.index(1))
            return (block_info(schedule, info.block) or info) if turned else info
    return info


def transpose_along_reduction(schedule: Schedule, info: BlockInfo, target: _core.Target, below: float) -> bool:
    """Turns copies of operands that are small beside the work, so that all lie along the sums; nothing where partial
    sums in the lanes take as many cycles then as `below`."""
    last = info.reduced[-1]
    moved: list[tuple[ir.Buffer, int]] = []
    copying = 0.0
    straight = []
    for read in info.reads:
        strides = list(read.strides)
        if strides[last] not in (0, 1):
            steps = [coefficient(index, info.axes[last].var) for index in read.indices]
            if None in strides or sorted(steps, key=str) != [*[0] * (len(steps) - 1), 1]:
                return False
            known = [dimension for buffer, dimension in moved if buffer.same_as(read.buffer)]
            if known:  # one copy serves both, or none can
                if known != [steps.index(1)]:
                    return False
            else:
                moved.append((read.buffer, steps.index(1)))
            copying += RELAYOUT_CYCLES * math.prod(axis.extent for i, axis in enumerate(info.axes) if read.varies(i))
            strides[last] = 1
        straight.append(replace(read, strides=tuple(strides)))
    results = math.prod(info.extent(i) for i in info.spatial)
    cycles = (
        accumulator_cycles(replace(info, reads=tuple(straight)), target) + copying + RELAYOUT_RESULT_CYCLES * results
    )
    if not moved or cycles >= below:
        return False
    return all(try_step(_transpose, schedule, info.block, buffer, dimension) for buffer, dimension in moved)


def _transpose(schedule: Schedule, block: BlockRV, buffer: ir.Buffer, dimension: int) -> bool:
    number = next(n for n, region in enumerate(schedule.get(block).reads) if region.buffer.same_as(buffer))
    if not _is_intermediate(schedule, block, buffer):
        schedule.cache_read(block, number, "global", consumer_blocks=[block])
    indices = [ir.Var(f"i{n}", "int32") for n in range(len(buffer.shape))]
    last = indices.pop(dimension)
    order = ir.IndexMap([*indices[:dimension], last, *indices[dimension:]], [*indices, last])
    schedule.transform_layout(block, ("read", number), order)
    return True


def _is_intermediate(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> bool:
    producers = [schedule.get(producer) for producer in schedule.get_producers(block)]
    return not is_parameter(schedule, buffer) and any(
        region.buffer.same_as(buffer) for producer in producers for region in producer.writes
    )
