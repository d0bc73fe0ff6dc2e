"""Axes that an operand goes through group by group (`co // 3` of a convolution in groups), where a group is no multiple
of a vector: taken apart into the group and the steps within it, so that vectors and tiles end where groups do."""

from __future__ import annotations

from tilewright import _core, ir
from tilewright.cpu_space.draw import attempt
from tilewright.cpu_space.facts import Facts, coefficient, facts_of
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
    layout = by_groups(len(facts.axes), apart[0], facts.periods[apart[0]])
    if not attempt(_transforms, schedule, facts, layout):
        return facts
    return facts_of(schedule, facts.block) or facts


def groups_of_results(facts: Facts) -> tuple[int, int] | None:
    """The dimension of the result that is a group and a step within it, and how many steps a group has."""
    for dimension, index in enumerate(facts.store.indices):
        steps = [coefficient(index, axis.var) for axis in facts.axes]
        if steps.count(1) == 1 and len(set(steps) - {0}) == 2:
            period = facts.axes[steps.index(1)].extent
            if period in steps:
                return dimension, period
    return None


def by_groups(rank: int, place: int, period: int) -> ir.IndexMap:
    """The group first, then all axes in their order."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    within = [index % period if n == place else index for n, index in enumerate(indices)]
    return ir.IndexMap(indices, [indices[place] // period, *within])


def _transforms(schedule: Schedule, facts: Facts, layout: ir.IndexMap) -> bool:
    schedule.transform_block_layout(facts.block, layout)
    return True
