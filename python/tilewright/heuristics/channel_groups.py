"""Axes along which an operand is read in channel groups (`co // 3` of a grouped convolution) whose size is not a
multiple of a vector: such an axis is split into the group and the steps within it, so that vectors and tiles end at
group boundaries."""

from __future__ import annotations

from tilewright import ir
from tilewright.heuristics.block_info import BlockInfo, coefficient
from tilewright.heuristics.loops import index_map
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import succeeds


def split_channel_groups(match: Match) -> BlockInfo:
    """Return the contraction with the axis of its channel groups split, the group first."""
    return split_groups(match, match.lanes)


def split_groups(match: Match, unless_multiple_of: int = 0) -> BlockInfo:
    """Return the contraction with the axis of its channel groups split, the group first.

    Args:
        match: the contraction.
        unless_multiple_of: groups whose size is a multiple of this number are not split; 0: all are.
    """
    info = match.info
    split = [
        i
        for i in info.spatial
        if 1 < info.periods[i] < info.extent(i)
        and (not unless_multiple_of or info.periods[i] % unless_multiple_of)
        and info.divides(info.periods[i], i)
        and i not in info.residue_axes
    ]
    if len(split) != 1:
        return info
    layout = group_index_map(len(info.axes), split[0], info.periods[split[0]])
    return match.again() if succeeds(match.schedule.transform_block_layout, info.block, layout) else info


def grouped_results(info: BlockInfo) -> tuple[int, int] | None:
    """Return the dimension of the result that consists of a group and a step within it, and the number of steps per
    group."""
    for dimension, index in enumerate(info.store.indices):
        steps = [coefficient(index, axis.var) for axis in info.axes]
        if steps.count(1) == 1 and len(set(steps) - {0}) == 2:
            period = info.axes[steps.index(1)].extent
            if period in steps:
                return dimension, period
    return None


def group_index_map(rank: int, axis: int, period: int) -> ir.IndexMap:
    """Return the index map that moves the group to the front; the other dimensions keep their order."""
    return index_map(
        rank, lambda v: [v[axis] // period, *(index % period if n == axis else index for n, index in enumerate(v))]
    )
