"""Contractions of numbers narrower than their sums: each element is converted once, and not for each result that needs
it."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.cpu_space.draw import Draw, attempt
from tilewright.cpu_space.facts import Facts, facts_of, is_spatial
from tilewright.cpu_space.plain import schedule_elementwise
from tilewright.cpu_space.register_tile import bits_of
from tilewright.schedule import BlockRV, Schedule

#: results that need an element, where writing and reading it once more, twice as wide, is worth it
_LEAST_USES = 48


def widen(schedule: Schedule, facts: Facts) -> tuple[Facts, list[BlockRV]]:
    """The contraction with copies of its operands as wide as its sums, and the blocks that make these; the same
    contraction, and none, where operands are as wide or used by few results."""
    to = facts.store.buffer.dtype
    uses = [math.prod(facts.extent(i) for i in facts.spatial if not read.varies(i)) for read in facts.reads]
    narrow = [read.buffer for read in facts.reads if _is_narrower(read.buffer.dtype, to)]
    if not narrow or min(uses) < _LEAST_USES or len(set(narrow)) < len(narrow):
        return facts, []
    if not _are_converted(schedule, facts, narrow):
        return facts, []
    made = []
    for buffer in narrow:
        regions = schedule.get(facts.block).reads
        number = next(n for n, region in enumerate(regions) if region.buffer.same_as(buffer))
        copy = schedule.cache_read(facts.block, number, "global", consumer_blocks=[facts.block])
        schedule.unsafe_set_dtype(copy, 0, to)
        made.append(copy)
    return facts_of(schedule, facts.block) or facts, made


def convert(schedule: Schedule, made: list[BlockRV], target: _core.Target, draw: Draw) -> None:
    """Schedules the blocks that :func:`widen` made: what copies the copy converts instead."""
    for block in made:
        consumers = schedule.get_consumers(block)
        if len(consumers) == 1 and is_spatial(schedule.get(consumers[0])):
            attempt(schedule.compute_inline, block)
            continue
        facts = attempt(facts_of, schedule, block)
        if facts is not None:
            attempt(schedule_elementwise, schedule, facts, target, draw)


def _is_narrower(dtype: str, than: str) -> bool:
    """Whether all its numbers are numbers of the other type, which takes twice as much memory or more."""
    known = dtype in ("float16", "bfloat16", "float32") or dtype.startswith(("int", "uint"))
    return known and than in ("float32", "float64") and 2 * bits_of(dtype) <= bits_of(than)


def _are_converted(schedule: Schedule, facts: Facts, buffers: list[ir.Buffer]) -> bool:
    """Whether each element is converted before anything else is done with it, so that it may be so earlier."""
    loads: list[ir.BufferLoad] = []
    converted: list[ir.Expr] = []

    def look(node: object) -> None:
        if isinstance(node, ir.BufferLoad) and any(node.buffer.same_as(buffer) for buffer in buffers):
            loads.append(node)
        elif isinstance(node, ir.Cast) and node.dtype == facts.store.buffer.dtype:
            converted.append(node.value)

    _core.visit(schedule.get(facts.block).body, look)
    return all(any(load.same_as(value) for value in converted) for load in loads)
