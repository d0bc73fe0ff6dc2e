"""Long sums of a contraction in parts, so that what the tiles of one part share stays in the second level: the parts
are an axis of results, added up at the end."""

from __future__ import annotations

import math

from tilewright.cpu_space.draw import Draw
from tilewright.cpu_space.facts import Facts, facts_of
from tilewright.schedule import Schedule

#: what is used less often need not stay anywhere
_FEWEST_USES = 8
#: steps of one part
_FEWEST, _MOST = 256, 1024


def in_parts(schedule: Schedule, facts: Facts, draw: Draw) -> Facts:
    """The contraction that makes the parts, where a sum is long and can be taken apart evenly; else the same as before.

    The block that adds the parts up takes its place, and is found as the block that it was.
    """
    if len(facts.reduced) != 1 or facts.phases or not facts.store.buffer.dtype.startswith("float"):
        return facts
    last = facts.reduced[0]
    steps = _steps(facts.extent(last)) if facts.axes[last].is_fixed else None
    uses = [math.prod(facts.extent(i) for i in facts.spatial if not read.varies(i)) for read in facts.reads]
    if steps is None or min(uses) < _FEWEST_USES or draw.choose(2):
        return facts
    spatial = [facts.axes[i].loop for i in facts.spatial]
    parts, _ = schedule.split(facts.axes[last].loop, [None, steps])
    partial = schedule.rfactor(parts, 0)
    # Loops in the order of the axes: the parts come first.
    for block in (partial, facts.block):
        own = schedule.get_loops(block)
        schedule.reorder(own[len(spatial)], *own[: len(spatial)])
    made = facts_of(schedule, partial)
    # What has a loop for each axis before has so after, too.
    assert made is not None
    return made


def _steps(length: int) -> int | None:
    """Of a part, that leave no rest."""
    if length < 2 * _MOST:
        return None
    return next((steps for steps in range(_MOST, _FEWEST - 1, -1) if length % steps == 0), None)
