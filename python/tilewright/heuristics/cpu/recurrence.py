"""Recurrences, as scans of several sequences, linear recurrences and filters: elements depend on earlier ones along
some axes and are independent along the axes outside of these.

Before, of `S[t, c] = S[t - 1, c] * A[t, c] + X[t, c]`:
    for c, t:
        S[t, c] = ...

After; inside is a block for one sequence, and the primitives may run these blocks in any order:
    for c_0: (parallel)
        for c_1: (vectorized)
            for t:
                S[t, c] = ...
"""

from __future__ import annotations

import math

from tilewright import ir
from tilewright.heuristics.block_info import BlockInfo
from tilewright.heuristics.cpu.execution import parallelize
from tilewright.heuristics.cpu.parameters import RECURRENCE_FEWEST_VECTORS, RECURRENCE_VECTORS
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import Schedule
from tilewright.support.nodes import nodes_of, uses


def _carried_axes(schedule: Schedule, info: BlockInfo) -> set[int]:
    """Return the axes along which an element may depend on another one: axes of the dimensions in which a load's index
    differs from the store's."""
    accesses = nodes_of(schedule.get(info.block).body, ir.BufferLoad, ir.BufferStore)
    own = (access.indices for access in accesses if access.buffer.same_as(info.store.buffer))
    dimensions = zip(*own, strict=True)
    moved = [indices for indices in dimensions if not all(ir.structural_equal(each, indices[0]) for each in indices)]
    return {i for i, axis in enumerate(info.axes) if any(uses(each, axis.var) for indices in moved for each in indices)}


def is_recurrence(match: Match) -> bool:
    """Return whether elements depend on other elements of the same buffer."""
    return not match.info.parts and bool(_carried_axes(match.schedule, match.info))


def _independent_axes(match: Match) -> list[int]:
    """Return the axes of the loops outside the outermost one that carries a dependence, outermost first."""
    schedule, info = match.schedule, match.info
    carried = _carried_axes(schedule, info)
    loops = [schedule.get(loop) for loop in schedule.get_loops(info.block)]
    of_axes = [schedule.get(axis.loop) for axis in info.axes]
    order = [next(i for i, each in enumerate(of_axes) if each.same_as(loop)) for loop in loops]
    return order[: min(order.index(i) for i in carried)]


def schedule_recurrence(match: Match) -> bool:
    """Schedule the sequences of a recurrence; return whether the steps of one sequence could become a block."""
    schedule, info, independent = match.schedule, match.info, _independent_axes(match)
    steps = schedule.get_loops(info.block)[len(independent)]
    sequence = try_step(schedule.blockize, steps) if independent else None
    if sequence is None:
        return False
    outer = schedule.get_loops(sequence)
    row = next((n for n, i in enumerate(independent) if info.store.strides[i] == 1), None)
    if row is not None and 2 * info.extent(independent[row]) >= match.lanes:
        width = _columns_together(match, independent)
        vector = outer.pop(row)
        if row < len(outer):
            schedule.reorder(*outer, vector)
        if not info.axes[independent[row]].is_fixed or info.extent(independent[row]) > width:
            panel, vector = schedule.split(vector, [None, width])
            outer.append(panel)
        try_step(schedule.vectorize, vector)
    parallelize(schedule, outer, info.work, match.target)
    return True


def _columns_together(match: Match, independent: list[int]) -> int:
    """Return how many adjacent sequences one thread processes together: enough for whole cache lines in each step, but
    no more than the thread's share."""
    info, lanes, cores = match.info, match.lanes, match.target.num_cores
    share = math.ceil(info.size(independent) / cores / lanes)
    vectors = min(max(share, RECURRENCE_FEWEST_VECTORS), RECURRENCE_VECTORS)
    return lanes * (vectors, RECURRENCE_FEWEST_VECTORS)[match.sampler.choose(2)]
