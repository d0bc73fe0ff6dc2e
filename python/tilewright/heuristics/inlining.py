"""Blocks that need no memory of their own: computed where they are used."""

from __future__ import annotations

import math

from tilewright import _core, ir
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
    uses,
    vector_cycles,
)
from tilewright.heuristics.parameters import INLINED_CYCLES, WINDOW_TERMS
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, Schedule


def inline_blocks(schedule: Schedule, blocks: list[BlockRV], sizes: Sizes) -> list[BlockRV]:
    """Inlines what costs little to compute as often as it is read, and returns the blocks that are left.

    What a reduction reads many times stays in memory, unless it is cheap and without a condition, or the padding of
    short windows; a contraction takes its operands from memory, but from where they were, when somebody only moved
    them.
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
    """Whether a block moves elements of images of known sizes, with a constant around them, for short reductions that
    read nothing else and do not slide along the lanes: lowering takes the condition out of what is between the edges
    (src/lower/loops/peel_edges.cc), so no copy is worth its way to memory. Along the lanes, what is between the edges
    fills no vectors."""
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
        if not info.reads[0].buffer.same_as(body.buffer):  # only an init reads what the block makes
            return False
        lanes = next((i for i in info.spatial if info.store.strides[i] == 1), None)
        if lanes is None or not _is_unconditional_along(node, info.reads[0], info.axes[lanes].var):
            return False
        if info.size(info.reduced) > WINDOW_TERMS:
            return False
    return True


def _needs_boundary_copy(schedule: Schedule, node: ir.Block, reductions: list[BlockRV]) -> bool:
    """Whether a block that moves elements stays in memory because of its row index: a consumer loads vectors from the
    copy, and would gather from the source. Lowering removes the boundary from the loops of spatial consumers if the
    index is clamped or wraps, and from those of a reduction if it is clamped and nothing else is read
    (src/lower/loops/peel_edges.cc)."""
    body = node.body
    row = body.indices[-1] if isinstance(body, ir.BufferStore) and body.indices else None
    if not isinstance(body, ir.BufferStore) or not isinstance(row, ir.Var):
        return False
    found: set[str] = set()

    def look(inner: object) -> None:
        if isinstance(inner, ir.BufferLoad):
            found.update(*(boundary_handling(index, row) for index in inner.indices))

    _core.visit(body.value, look)
    if "reflect" in found or (reductions and "wrap" in found):
        return True
    return "clamp" in found and any(
        (info := block_info(schedule, each)) is None or len(info.reads) > 1 for each in reductions
    )


def _is_unconditional_along(node: ir.Block, read: Operand, lane: ir.Var) -> bool:
    """Whether a block that makes an operand asks nothing about the place that lanes read along."""
    assert isinstance(node.body, ir.BufferStore) and isinstance(node.body.value, ir.Call)
    places = [own for own, index in zip(node.body.indices, read.indices, strict=True) if uses(index, lane)]
    condition = node.body.value.args[0]
    return bool(places) and all(isinstance(own, ir.Var) and not uses(condition, own) for own in places)


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
