"""Chains of steps over rows (softmax, normalizations): all steps of a row while it lies in the nearest cache."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.cpu_space.draw import attempt
from tilewright.cpu_space.facts import Sizes, constant, facts_of, is_plain, is_spatial
from tilewright.cpu_space.plain import along_results, share, vectorize
from tilewright.schedule import BlockRV, Schedule


def schedule_rows(
    schedule: Schedule, blocks: list[BlockRV], output: BlockRV, target: _core.Target, sizes: Sizes
) -> None:
    """Computes the steps that lead to an output row by row, where a reduction is among them."""
    loops = schedule.get_loops(output)
    lanes = target.vector_bits // 32
    if len(loops) < 2 or not is_plain(schedule, loops) or not is_spatial(schedule.get(output)):
        return
    row = loops[0]
    if constant(schedule.get(row).extent) in (0, 1):
        return
    name = schedule.get(output).name_hint
    names = [schedule.get(block).name_hint for block in blocks]
    if name not in names:
        return
    earlier = [block for block in blocks[: names.index(name)] if is_plain(schedule, schedule.get_loops(block))]
    sums = [block for block in earlier if not is_spatial(schedule.get(block))]
    if not sums or any(_lies_along_results(schedule, block, target) for block in sums):
        return
    moved = []
    for block in reversed(earlier):
        attempt(schedule.compute_at, block, row)
        own = schedule.get_loops(block)
        if own and schedule.get(own[0]).loop_var.same_as(schedule.get(row).loop_var):
            moved.append(block)
    if not moved:
        return
    for block in [*moved, output]:
        own = schedule.get_loops(block)
        if len(own) > 1:
            vectorize(schedule, own[-1], lanes)
    work = math.prod(sizes.value(schedule.get(loop).extent) or 1 for loop in schedule.get_loops(output))
    share(schedule, [row], work * (1 + len(moved)))


def _lies_along_results(schedule: Schedule, block: BlockRV, target: _core.Target) -> bool:
    facts = facts_of(schedule, block)
    return facts is not None and along_results(facts, target) is not None
