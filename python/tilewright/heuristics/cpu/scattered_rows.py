"""Scattered sums: data select the rows of a result to which a block adds, as in products over sparse matrix formats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.heuristics.block_info import constant
from tilewright.heuristics.cpu.ragged_rows import buffers_in, indexes_last_dimension
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.support.nodes import nodes_of, uses
from tilewright.support.numpy_dtype import numpy_dtype

#: bytes of a cache line: threads that share columns must write different lines
LINE = 64
#: maximum number of copies of a result, to each of which one thread adds
MOST_COPIES = 8
#: number of steps per element of a result from which on copies pay
STEPS_OF_COPIES = 2


def run_updates_in_parallel(schedule: Schedule, block: BlockRV, adds_copies: bool) -> None:
    """Run the outermost loop around a block in parallel, if the block adds to a buffer that another block has
    initialized and indices select what it reads, as in formats with fixed row lengths. Blocks that add up copies
    (:func:`sum_in_copies`) run in parallel, too."""
    # Checked before get_loops(), which would change other programs' traces.
    if not adds_copies and not _adds_to_selected(schedule.get(block)):
        return
    loops = schedule.get_loops(block)
    if loops and all(schedule.get(loop).kind != ir.ForKind.PARALLEL for loop in loops):
        try_step(schedule.parallel, loops[0])


def share_columns(schedule: Schedule, block: BlockRV, target: _core.Target) -> bool:
    """Give each thread a panel of the columns of a result to whose rows several steps add, as in CSC and COO: each
    thread processes all nonzeros, for its own columns.

    Returns:
        Whether there are panels; a result with few columns is not changed.
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
    """Let each thread add its part of the steps to its own copy of the result and then sum all copies, if data select
    the elements and there are no columns to divide among threads, as in SpMV over COO and CSC.

    Copies take time in proportion to the size of the result, which is smaller than the number of nonzeros.

    Returns:
        Whether there are copies. If so, `block` is now the block that sums the copies.
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
    """Return the loop over the columns of a result to whose rows several steps add, preceded by the blocks around it,
    `block` first; None if there is no such loop."""
    if not _selects_what_it_adds_to(schedule.get(block)):
        return None
    levels = [block]
    while inside := schedule.get_child_blocks(levels[-1]):
        if len(inside) != 1:
            return None
        levels += inside
    loops = schedule.get_loops(levels[-1])
    return (levels, loops[-1]) if loops and indexes_last_dimension(schedule, levels[-1], loops[-1]) else None


def move_outermost(schedule: Schedule, levels: Sequence[BlockRV], loop: LoopRV) -> None:
    """Move a loop of the last of these nested blocks out of all of them."""
    for level in reversed(levels):
        outer = schedule.get_loops(level)[0]
        if not schedule.get(outer).same_as(schedule.get(loop)):
            schedule.reorder(loop, outer)
        if level is not levels[0]:
            schedule.lift_loop(loop)


def serial_updates(function: ir.PrimFunc) -> list[str]:
    """Return notes on the blocks that run in one thread because several steps may add to the same row."""
    return [
        f"block '{block.name_hint}' runs in one thread: several of its steps may add to one row of "
        f"'{block.writes[0].buffer.name}'. Store the matrix in a format with each row once (CSR, DCSR, ELL, SELL, hyb "
        'with cut=False), or declare that no row occurs twice: T.assume_buffer_domain(rows, [0, m], order="distinct")'
        for block in _outermost_blocks(function)
        if _selects_what_it_adds_to(block)
    ]


def _outermost_blocks(function: ir.PrimFunc) -> Iterator[ir.Block]:
    """Yield the blocks in the root block that are not inside a parallel loop."""
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
    """Return whether a block adds to a buffer that another block has initialized, and data select what it reads or
    writes."""
    if node.init is not None or not _updated(node):
        return False
    return any(buffers_in(side.min) for region in [*node.reads, *node.writes] for side in region.region)


def _selects_what_it_adds_to(node: ir.Block) -> bool:
    """Return whether data select the elements to which the steps of a reduction add, so that several steps may add to
    one element."""
    if node.init is not None or len(_updated(node)) != 1:
        return False
    return any(
        axis.iter_type == ir.IterType.COMM_REDUCE and uses(side.min, axis.var)
        for inner in nodes_of(node, ir.Block)
        for axis in inner.iter_vars
        for region in inner.writes
        for side in region.region
    )


def _updated(node: ir.Block) -> list[ir.Buffer]:
    written = [region.buffer for region in node.writes]
    return [buffer for buffer in written if any(region.buffer.same_as(buffer) for region in node.reads)]
