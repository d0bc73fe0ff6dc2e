"""Axes that an operand goes through group by group (`co // 3` of a convolution in groups), where a group is no multiple
of a vector: taken apart into the group and the steps within it, so that vectors and tiles end where groups do."""

from __future__ import annotations

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import BlockInfo, block_info, coefficient
from tilewright.heuristics.cpu.register_tile import bits_of
from tilewright.heuristics.cpu.sampling import try_step
from tilewright.schedule import Schedule


def split_channel_groups(schedule: Schedule, info: BlockInfo, target: _core.Target) -> BlockInfo:
    """The contraction with such an axis taken apart, the group first; the same where there is none."""
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    apart = [
        i
        for i in info.spatial
        if 1 < info.periods[i] < info.extent(i)
        and info.periods[i] % lanes
        and info.divides(info.periods[i], i)
        and i not in info.residue_axes
    ]
    if len(apart) != 1:
        return info
    layout = group_index_map(len(info.axes), apart[0], info.periods[apart[0]])
    if not try_step(_transform, schedule, info, layout):
        return info
    return block_info(schedule, info.block) or info


def grouped_results(info: BlockInfo) -> tuple[int, int] | None:
    """The dimension of the result that is a group and a step within it, and how many steps a group has."""
    for dimension, index in enumerate(info.store.indices):
        steps = [coefficient(index, axis.var) for axis in info.axes]
        if steps.count(1) == 1 and len(set(steps) - {0}) == 2:
            period = info.axes[steps.index(1)].extent
            if period in steps:
                return dimension, period
    return None


def group_index_map(rank: int, place: int, period: int) -> ir.IndexMap:
    """The group first, then all axes in their order."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    within = [index % period if n == place else index for n, index in enumerate(indices)]
    return ir.IndexMap(indices, [indices[place] // period, *within])


def _transform(schedule: Schedule, info: BlockInfo, layout: ir.IndexMap) -> bool:
    schedule.transform_block_layout(info.block, layout)
    return True
