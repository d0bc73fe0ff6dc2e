"""Inline blocks that are cheaper to compute again at each use than to store."""

from __future__ import annotations

import math

from tilewright import ir
from tilewright.errors import ScheduleError
from tilewright.heuristics.block_info import (
    Operand,
    Sizes,
    block_info,
    boundary_handling,
    constant,
    is_conditional,
    is_elementary,
    is_spatial,
    vector_cycles,
)
from tilewright.heuristics.parameters import INLINED_CYCLES, WINDOW_TERMS
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.nodes import nodes_of, uses


def inline_blocks(schedule: Schedule, blocks: list[BlockRV], sizes: Sizes) -> list[BlockRV]:
    """Inline blocks that cost little to compute each time they are read; return the remaining blocks.

    A block that a reduction reads many times stays in memory unless it is cheap and unconditional, or is the padding of
    short windows. A contraction reads its operands from memory, but a block that only moves elements is inlined, so
    that the contraction reads the original buffer.
    """
    left = []
    for block in blocks:
        if not try_step(_inlines, schedule, block, sizes):
            left.append(block)
    return left


def _inlines(schedule: Schedule, block: BlockRV, sizes: Sizes) -> bool:
    node = schedule.get(block)
    consumers = schedule.get_consumers(block)
    if not consumers or not is_spatial(node):
        return False
    reductions = [consumer for consumer in consumers if not is_spatial(schedule.get(consumer))]
    if is_elementary(node) and (reductions or len(consumers) > 1):
        return False
    is_padding = bool(reductions) and _is_padding_of_windows(schedule, node, reductions)
    if reductions and is_conditional(node) and not is_padding:
        return False
    moves = is_padding or (isinstance(node.body, ir.BufferStore) and isinstance(node.body.value, ir.BufferLoad))
    again = times_read(schedule, block, consumers, sizes) - 1
    for consumer in reductions:
        info = block_info(schedule, consumer)
        if info is None or (info.is_contraction() and not moves and again > 0):
            return False
    if not moves and again > 0 and again * vector_cycles(node) > INLINED_CYCLES:
        return False
    if moves and again > 0 and _needs_boundary_copy(schedule, node, reductions):
        return False
    try:
        schedule.compute_inline(block)
    except ScheduleError:
        return False
    return True


def _is_padding_of_windows(schedule: Schedule, node: ir.Block, reductions: list[BlockRV]) -> bool:
    """Return whether a block pads images of constant sizes with a constant, for short reductions that read nothing else
    and do not slide along the lanes.

    Lowering removes the condition from the interior (src/lower/loops/peel_edges.cc), so that a copy in memory does not
    pay. Along the lanes, the interior does not consist of whole vectors.
    """
    body = node.body
    if not isinstance(body, ir.BufferStore) or any(constant(extent) is None for extent in body.buffer.shape):
        return False
    value = body.value
    chosen = value.args[1:] if is_conditional(node) and isinstance(value, ir.Call) else []
    if sorted(isinstance(each, ir.BufferLoad) for each in chosen) != [False, True]:
        return False
    if not all(isinstance(each, (ir.BufferLoad, ir.IntImm, ir.FloatImm)) for each in chosen):
        return False
    for consumer in reductions:
        info = block_info(schedule, consumer)
        if info is None or len(info.reads) != 1 or info.is_contraction():
            return False
        if not info.reads[0].buffer.same_as(body.buffer):  # only the init reads the block's buffer
            return False
        lanes = next((i for i in info.spatial if info.store.strides[i] == 1), None)
        if lanes is None or not _is_unconditional_along(node, info.reads[0], info.axes[lanes].var):
            return False
        if info.size(info.reduced) > WINDOW_TERMS:
            return False
    return True


def _needs_boundary_copy(schedule: Schedule, node: ir.Block, reductions: list[BlockRV]) -> bool:
    """Return whether a block that moves elements stays in memory because of its index along the lanes: a consumer loads
    vectors from the copy but would gather from the source.

    If the index is clamped or wraps, lowering removes the boundary from loops of spatial consumers; if it is clamped
    and nothing else is read, also from those of a reduction (src/lower/loops/peel_edges.cc).
    """
    body = node.body
    row = body.indices[-1] if isinstance(body, ir.BufferStore) and body.indices else None
    if not isinstance(body, ir.BufferStore) or not isinstance(row, ir.Var):
        return False
    found: set[str] = set()
    for load in nodes_of(body.value, ir.BufferLoad):
        found.update(*(boundary_handling(index, row) for index in load.indices))
    if "reflect" in found or (reductions and "wrap" in found):
        return True
    return "clamp" in found and any(
        (info := block_info(schedule, each)) is None or len(info.reads) > 1 for each in reductions
    )


def _is_unconditional_along(node: ir.Block, read: Operand, lane: ir.Var) -> bool:
    """Return whether the condition of a producer does not depend on the index along which the lanes read."""
    assert isinstance(node.body, ir.BufferStore) and isinstance(node.body.value, ir.Call)
    places = [own for own, index in zip(node.body.indices, read.indices, strict=True) if uses(index, lane)]
    condition = node.body.value.args[0]
    return bool(places) and all(isinstance(own, ir.Var) and not uses(condition, own) for own in places)


def times_read(schedule: Schedule, block: BlockRV, consumers: list[BlockRV], sizes: Sizes) -> float:
    """Return how often each element of a block would be computed if the block were inlined. Several loads of one
    element in a consumer count once."""
    written = schedule.get(block).writes[0].buffer
    elements = math.prod(sizes.value(extent) or 1 for extent in written.shape)
    reads = 0.0
    for consumer in consumers:
        node = schedule.get(consumer)
        places: list[tuple[ir.Expr, ...]] = []
        for load in nodes_of(node.body, ir.BufferLoad):
            if load.buffer.same_as(written) and not any(
                all(ir.structural_equal(*pair) for pair in zip(load.indices, place, strict=True)) for place in places
            ):
                places.append(load.indices)
        steps = math.prod(sizes.value(axis.dom.extent) or 1 for axis in node.iter_vars if axis.dom is not None)
        reads += len(places) * steps
    return reads / max(elements, 1)
