"""Blocks that need no memory of their own: computed where they are used."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.cpu_space.draw import attempt
from tilewright.cpu_space.facts import Sizes, facts_of, is_conditional, is_heavy, is_spatial, work_of
from tilewright.errors import ScheduleError
from tilewright.schedule import BlockRV, Schedule

#: cycles of a vector that computing it again may take: as many as it takes to store it, and to load it from the second
#: level each time
_WORTH_A_TRIP = 4.0


def inline_blocks(schedule: Schedule, blocks: list[BlockRV], sizes: Sizes) -> list[BlockRV]:
    """Inlines what costs little to compute as often as it is read, and returns the blocks that are left.

    What a reduction reads many times stays in memory, unless it is cheap and without a condition; a contraction takes
    its operands from memory, but from where they were, when somebody only moved them.
    """
    left = []
    for block in blocks:
        if not attempt(_inlines, schedule, block, sizes):
            left.append(block)
    return left


def _inlines(schedule: Schedule, block: BlockRV, sizes: Sizes) -> bool:
    node = schedule.get(block)
    consumers = schedule.get_consumers(block)
    if not consumers or not is_spatial(node):
        return False
    reductions = [consumer for consumer in consumers if not is_spatial(schedule.get(consumer))]
    if is_heavy(node) and (reductions or len(consumers) > 1):
        return False
    if reductions and is_conditional(node):
        return False
    moves = isinstance(node.body, ir.BufferStore) and isinstance(node.body.value, ir.BufferLoad)
    again = times_read(schedule, block, consumers, sizes) - 1
    for consumer in reductions:
        facts = facts_of(schedule, consumer)
        if facts is None or (facts.is_contraction() and not moves and again > 0):
            return False
    if not moves and again > 0 and again * work_of(node) > _WORTH_A_TRIP:
        return False
    try:
        schedule.compute_inline(block)
    except ScheduleError:
        return False
    return True


def times_read(schedule: Schedule, block: BlockRV, consumers: list[BlockRV], sizes: Sizes) -> float:
    """How often each element that a block makes is computed when it is computed wherever it is read: places that read
    one element count once."""
    written = schedule.get(block).writes[0].buffer
    elements = math.prod(sizes.value(extent) or 1 for extent in written.shape)
    reads = 0.0
    for consumer in consumers:
        node = schedule.get(consumer)
        places: list[tuple[ir.Expr, ...]] = []

        def look(inner: object, places: list[tuple[ir.Expr, ...]] = places) -> None:
            if isinstance(inner, ir.BufferLoad) and inner.buffer.same_as(written):
                indices = tuple(inner.indices)
                if not any(
                    all(ir.structural_equal(*pair) for pair in zip(indices, place, strict=True)) for place in places
                ):
                    places.append(indices)

        _core.visit(node.body, look)
        steps = math.prod(sizes.value(axis.dom.extent) or 1 for axis in node.iter_vars if axis.dom is not None)
        reads += len(places) * steps
    return reads / max(elements, 1)
