"""Contractions of numbers narrower than their sums: each element is converted once, and not for each result that needs
it."""

from __future__ import annotations

import math

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import BlockInfo, block_info, is_spatial
from tilewright.heuristics.cpu.parameters import UPCAST_USES
from tilewright.heuristics.cpu.register_tile import bits_of
from tilewright.heuristics.cpu.sampling import Sampler, try_step
from tilewright.heuristics.cpu.single_blocks import schedule_elementwise
from tilewright.schedule import BlockRV, Schedule


def upcast_operands(schedule: Schedule, info: BlockInfo) -> tuple[BlockInfo, list[BlockRV]]:
    """The contraction with copies of its operands as wide as its sums, and the blocks that make these; the same
    contraction, and none, where operands are as wide or used by few results."""
    to = info.store.buffer.dtype
    uses = [math.prod(info.extent(i) for i in info.spatial if not read.varies(i)) for read in info.reads]
    narrow = [read.buffer for read in info.reads if _has_lower_precision(read.buffer.dtype, to)]
    if not narrow or min(uses) < UPCAST_USES or len(set(narrow)) < len(narrow):
        return info, []
    if not _are_upcast_first(schedule, info, narrow):
        return info, []
    made = []
    for buffer in narrow:
        regions = schedule.get(info.block).reads
        number = next(n for n, region in enumerate(regions) if region.buffer.same_as(buffer))
        copy = schedule.cache_read(info.block, number, "global", consumer_blocks=[info.block])
        schedule.unsafe_set_dtype(copy, 0, to)
        made.append(copy)
    return block_info(schedule, info.block) or info, made


def schedule_upcasts(schedule: Schedule, made: list[BlockRV], target: _core.Target, sampler: Sampler) -> None:
    """Schedules the blocks that :func:`upcast_operands` made: what copies the copy converts instead."""
    for block in made:
        consumers = schedule.get_consumers(block)
        if len(consumers) == 1 and is_spatial(schedule.get(consumers[0])):
            try_step(schedule.compute_inline, block)
            continue
        info = try_step(block_info, schedule, block)
        if info is not None:
            try_step(schedule_elementwise, schedule, info, target, sampler)


def _has_lower_precision(dtype: str, than: str) -> bool:
    """Whether all its numbers are numbers of the other type, which takes twice as much memory or more."""
    known = dtype in ("float16", "bfloat16", "float32") or dtype.startswith(("int", "uint"))
    return known and than in ("float32", "float64") and 2 * bits_of(dtype) <= bits_of(than)


def _are_upcast_first(schedule: Schedule, info: BlockInfo, buffers: list[ir.Buffer]) -> bool:
    """Whether each element is converted before anything else is done with it, so that it may be so earlier."""
    loads: list[ir.BufferLoad] = []
    converted: list[ir.Expr] = []

    def look(node: object) -> None:
        if isinstance(node, ir.BufferLoad) and any(node.buffer.same_as(buffer) for buffer in buffers):
            loads.append(node)
        elif isinstance(node, ir.Cast) and node.dtype == info.store.buffer.dtype:
            converted.append(node.value)

    _core.visit(schedule.get(info.block).body, look)
    return all(any(load.same_as(value) for value in converted) for load in loads)
