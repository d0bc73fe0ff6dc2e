"""Sums that are added to rows of a result which data select: products over formats of sparse matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.heuristics.block_info import constant
from tilewright.heuristics.cpu.ragged_rows import buffers_in, lies_along
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.support.numpy_dtype import numpy_dtype

#: bytes of a cache line: threads that share columns write lines of their own
LINE = 64
#: copies of a result at most, into which threads sum
MOST_COPIES = 8
#: steps for each element of a result from which on copies of it pay
STEPS_OF_COPIES = 2


def run_updates_in_parallel(schedule: Schedule, block: BlockRV, adds_copies: bool) -> None:
    """Run the outermost loop around a block in parallel, where the block adds to what another one has initialized and
    what it reads is selected by indices: products over formats with rows of fixed lengths. So does a block that adds
    copies (:func:`sum_in_copies`)."""
    # Asked before the loops: other programs' traces stay as they are.
    if not adds_copies and not _adds_to_selected(schedule.get(block)):
        return
    loops = schedule.get_loops(block)
    if loops and all(schedule.get(loop).kind != ir.ForKind.PARALLEL for loop in loops):
        try_step(schedule.parallel, loops[0])


def share_columns(schedule: Schedule, block: BlockRV, target: _core.Target) -> bool:
    """Give threads panels of the columns of a result to whose rows several steps add, as those of CSC and COO do: each
    thread runs through all nonzeros, for columns of its own.

    Returns:
        Whether there are panels: a result of few columns stays as it is.
    """
    if (found := columns_of(schedule, block)) is None:
        return False
    levels, columns = found
    written = schedule.get(levels[-1]).writes[0].buffer
    line = LINE // numpy_dtype(written.dtype).itemsize
    count, width = constant(schedule.get(columns).extent), line
    if count is not None:
        width = -(-count // (target.num_cores * line)) * line
        if count <= width:
            return False
    panel, _ = schedule.split(columns, [None, width])
    move_outermost(schedule, levels, panel)
    schedule.parallel(panel)
    return True


def sum_in_copies(schedule: Schedule, block: BlockRV, target: _core.Target) -> bool:
    """Let each thread add its part of the steps to a copy of the result, where data select the elements and no columns
    keep threads apart, as in SpMV over COO and CSC; then all add up the copies.

    Copies take time in proportion to the result, which formats of sparse matrices have less of than of nonzeros.

    Returns:
        Whether there are copies. The block itself is what adds them up then.
    """
    if not _selects_what_it_adds_to(schedule.get(block)):
        return False
    loops = schedule.get_loops(block)
    if not loops or any(schedule.get(loop).kind != ir.ForKind.SERIAL for loop in loops):
        return False
    count = min(target.num_cores, MOST_COPIES)
    written = schedule.get(block).writes[0].buffer
    steps = math.prod(constant(schedule.get(loop).extent) or math.inf for loop in loops)
    if steps < STEPS_OF_COPIES * math.prod(constant(extent) or 1 for extent in written.shape):
        return False
    if try_step(_factored, schedule.copy(), block, count) is None:
        return False
    partial = _factored(schedule, block, count)
    copies = schedule.get(partial).writes[0].buffer
    for each in (*schedule.get_producers(partial), partial):
        if copies.same_as(schedule.get(each).writes[0].buffer):
            schedule.parallel(schedule.get_loops(each)[0])
    return True


def _factored(schedule: Schedule, block: BlockRV, count: int) -> BlockRV:
    """Divide the steps of a block into `count` parts, each with a copy of the result."""
    part, _ = schedule.split(schedule.get_loops(block)[0], [count, None])
    return schedule.rfactor(part, 0)


def columns_of(schedule: Schedule, block: BlockRV) -> tuple[list[BlockRV], LoopRV] | None:
    """Return the loop over the columns of a result to whose rows several steps add, and the blocks around it, `block`
    first; None where there is no such loop."""
    if not _selects_what_it_adds_to(schedule.get(block)):
        return None
    levels = [block]
    while inside := schedule.get_child_blocks(levels[-1]):
        if len(inside) != 1:
            return None
        levels += inside
    loops = schedule.get_loops(levels[-1])
    return (levels, loops[-1]) if loops and lies_along(schedule, levels[-1], loops[-1]) else None


def move_outermost(schedule: Schedule, levels: Sequence[BlockRV], loop: LoopRV) -> None:
    """Move a loop of the last one of these blocks, each of which is inside of the one before, out of all of them."""
    for level in reversed(levels):
        outer = schedule.get_loops(level)[0]
        if not schedule.get(outer).same_as(schedule.get(loop)):
            schedule.reorder(loop, outer)
        if level is not levels[0]:
            schedule.lift_loop(loop)


def serial_updates(function: ir.PrimFunc) -> list[str]:
    """Return what to say of blocks that run in one thread since their steps may add to the same rows."""
    return [
        f"block '{block.name_hint}' runs in one thread: several of its steps may add to one row of "
        f"'{block.writes[0].buffer.name}'. Store the matrix in a format with each row once (CSR, DCSR, ELL, SELL, hyb "
        'with cut=False), or declare that no row occurs twice: T.assume_buffer_domain(rows, [0, m], order="distinct")'
        for block in _outermost_blocks(function)
        if _selects_what_it_adds_to(block)
    ]


def _outermost_blocks(function: ir.PrimFunc) -> Iterator[ir.Block]:
    """The blocks of the root block around which no loop is parallel."""
    root = getattr(function.body, "block", None)
    pending: list[Any] = [] if root is None else [root.body]
    while pending:
        node = pending.pop(0)
        if isinstance(node, ir.SeqStmt):
            pending[:0] = node.seq
        elif isinstance(node, ir.For) and node.kind != ir.ForKind.PARALLEL:
            pending.insert(0, node.body)
        elif isinstance(node, ir.BlockRealize):
            yield node.block


def _adds_to_selected(node: ir.Block) -> bool:
    """Whether a block adds to what another one has initialized, and data select what it reads or writes."""
    if node.init is not None or not _updated(node):
        return False
    return any(buffers_in(side.min) for region in [*node.reads, *node.writes] for side in region.region)


def _selects_what_it_adds_to(node: ir.Block) -> bool:
    """Whether steps of a reduction select the elements that they add to: several of them the same one, perhaps."""
    if node.init is not None or len(_updated(node)) != 1:
        return False
    found = False

    def look(inner: object) -> None:
        nonlocal found
        if isinstance(inner, ir.Block):
            steps = [axis.var for axis in inner.iter_vars if axis.iter_type == ir.IterType.COMM_REDUCE]
            starts = [side.min for region in inner.writes for side in region.region]
            found |= any(_uses(start, steps) for start in starts)

    _core.visit(node, look)
    return found


def _uses(expression: Any, variables: list[Any]) -> bool:
    found = False

    def look(node: object) -> None:
        nonlocal found
        found |= isinstance(node, ir.Var) and any(node.same_as(each) for each in variables)

    _core.visit(expression, look)
    return found


def _updated(node: ir.Block) -> list[ir.Buffer]:
    written = [region.buffer for region in node.writes]
    return [buffer for buffer in written if any(region.buffer.same_as(buffer) for region in node.reads)]
