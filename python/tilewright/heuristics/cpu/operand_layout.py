"""Contractions whose results are contiguous along an axis with a small trip count (three channels): vectors run along
another axis, and operands are transposed accordingly."""

from __future__ import annotations

from dataclasses import replace

from tilewright import ir
from tilewright.heuristics.block_info import BlockInfo, coefficient, is_parameter, number_of_read
from tilewright.heuristics.cpu.accumulators import accumulator_cycles
from tilewright.heuristics.cpu.parameters import RELAYOUT_CYCLES, RELAYOUT_RESULT_CYCLES
from tilewright.heuristics.cpu.register_tile import register_tiles
from tilewright.heuristics.loops import copy_operand, index_map, producer_of
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import succeeds


def transpose_for_vectors(match: Match) -> BlockInfo:
    """Transpose the operand of a contraction, or a copy of it, so that its vectors are contiguous."""
    info = match.info
    wide = [i for i in info.spatial if info.extent(i) >= match.lanes and i not in info.residue_axes]
    for axis in sorted(wide, key=lambda i: (info.extent(i), i), reverse=True):
        varying = [read for read in info.reads if read.varies(axis)]
        if len(varying) != 1 or varying[0].strides[axis] == 1:
            continue
        read = varying[0]
        # An operand that other blocks or callers use is packed in panels instead, if its strides are known.
        if None not in read.strides and not _is_intermediate(match, read.buffer):
            continue
        dimension = _dimension(info, read.indices, axis)
        if dimension is not None:
            return match.again() if succeeds(_transpose, match, read.buffer, dimension) else info
    return info


def transpose_along_reduction(match: Match) -> bool:
    """Transpose copies of operands so that all operands are contiguous along the reduction; return whether this is
    done, which requires vector accumulators, with the copies, to take less than half of the time of the best register
    tile."""
    info = match.info
    last = info.reduced[-1]
    moved: dict[ir.Buffer, int] = {}
    copying = 0.0
    reads = []
    for read in info.reads:
        if read.strides[last] not in (0, 1):
            dimension = _dimension(info, read.indices, last)
            if None in read.strides or dimension is None or moved.setdefault(read.buffer, dimension) != dimension:
                return False
            copying += RELAYOUT_CYCLES * info.size(info.varying(read))
            read = replace(read, strides=tuple(1 if i == last else stride for i, stride in enumerate(read.strides)))
        reads.append(read)
    cycles = accumulator_cycles(replace(info, reads=tuple(reads)), match.target) + copying
    cycles += RELAYOUT_RESULT_CYCLES * info.size(info.spatial)
    if not moved or cycles >= register_tiles(info, match.target)[0].cycles / 2:
        return False
    return all(succeeds(_transpose, match, *each) for each in moved.items())


def _dimension(info: BlockInfo, indices: tuple[object, ...], axis: int) -> int | None:
    """Return the position of the only index that an axis moves, if it moves by 1."""
    steps = [coefficient(index, info.axes[axis].var) for index in indices]
    return steps.index(1) if sorted(steps, key=str) == [*[0] * (len(steps) - 1), 1] else None


def _transpose(match: Match, buffer: ir.Buffer, dimension: int) -> None:
    """Make a dimension of an operand the innermost one."""
    schedule, block = match.schedule, match.info.block
    number = number_of_read(schedule, block, buffer)
    if not _is_intermediate(match, buffer):
        copy_operand(schedule, block, buffer)
    order = index_map(len(buffer.shape), lambda v: [*v[:dimension], *v[dimension + 1 :], v[dimension]])
    schedule.transform_layout(block, ("read", number), order)


def _is_intermediate(match: Match, buffer: ir.Buffer) -> bool:
    is_made = producer_of(match.schedule, match.info.block, buffer) is not None
    return is_made and not is_parameter(match.schedule, buffer)
