"""Axes that an operand goes through group by group (`co // 3` of a convolution in groups), where a group is no multiple
of a vector: taken apart into the group and the steps within it, so that vectors and tiles end where groups do."""

from __future__ import annotations

from tilewright import _core, ir
from tilewright.cpu_space.draw import attempt
from tilewright.cpu_space.facts import Facts, facts_of
from tilewright.cpu_space.register_tile import bits_of
from tilewright.schedule import Schedule


def apart_by_groups(schedule: Schedule, facts: Facts, target: _core.Target) -> Facts:
    """The contraction with such an axis taken apart, the group first; the same where there is none."""
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    apart = [
        i
        for i in facts.spatial
        if 1 < facts.periods[i] < facts.extent(i)
        and facts.periods[i] % lanes
        and facts.divides(facts.periods[i], i)
        and i not in facts.phases
    ]
    if len(apart) != 1:
        return facts
    indices = [ir.Var(f"i{n}", "int32") for n in range(len(facts.axes))]
    split, period = indices[apart[0]], facts.periods[apart[0]]
    within = [index % period if index is split else index for index in indices]
    layout = ir.IndexMap(indices, [split // period, *within])
    if not attempt(_transforms, schedule, facts, layout):
        return facts
    return facts_of(schedule, facts.block) or facts


def _transforms(schedule: Schedule, facts: Facts, layout: ir.IndexMap) -> bool:
    schedule.transform_block_layout(facts.block, layout)
    return True
