"""Blocks that need no memory of their own: computed where they are used."""

from __future__ import annotations

from tilewright import ir
from tilewright.cpu_space.draw import attempt
from tilewright.cpu_space.facts import facts_of, is_conditional, is_heavy, is_spatial
from tilewright.errors import ScheduleError
from tilewright.schedule import BlockRV, Schedule


def inline_blocks(schedule: Schedule, blocks: list[BlockRV]) -> list[BlockRV]:
    """Inlines what costs little to compute again, and returns the blocks that are left.

    What a reduction reads many times stays in memory, unless it is cheap and without a condition; a contraction takes
    its operands from memory, but from where they were, when somebody only moved them.
    """
    left = []
    for block in blocks:
        if not attempt(_inlines, schedule, block):
            left.append(block)
    return left


def _inlines(schedule: Schedule, block: BlockRV) -> bool:
    node = schedule.get(block)
    consumers = schedule.get_consumers(block)
    if not consumers or not is_spatial(node):
        return False
    reductions = [consumer for consumer in consumers if not is_spatial(schedule.get(consumer))]
    if is_heavy(node) and (reductions or len(consumers) > 1):
        return False
    if reductions and is_conditional(node):
        return False
    for consumer in reductions:
        facts = facts_of(schedule, consumer)
        moves = isinstance(node.body, ir.BufferStore) and isinstance(node.body.value, ir.BufferLoad)
        if facts is None or (facts.is_contraction() and not moves):
            return False
    try:
        schedule.compute_inline(block)
    except ScheduleError:
        return False
    return True
