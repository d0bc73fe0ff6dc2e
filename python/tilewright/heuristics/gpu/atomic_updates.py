"""Updates of elements that data choose, as histograms and scattered sums, by atomic operations: all steps run at once.

for p in range(n):                      for block in T.thread_binding(..., "blockIdx.x"):
    H[A[p]] = H[A[p]] + 1          =>     for thread in T.thread_binding(256, "threadIdx.x"):
                                            T.atomic_add(T.address_of(H[A[block * 256 + thread]]), 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tilewright import ir
from tilewright.heuristics.gpu.all_or_nothing import all_or_nothing
from tilewright.heuristics.gpu.bind_loops import bind_elements
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.support.nodes import nodes_of
from tilewright.support.numpy_dtype import numpy_dtype

#: the annotation of blocks whose updates become atomic operations
ATOMIC = "atomic"


def is_exact(node: ir.Block) -> bool:
    """Return whether updates in any order leave the same values: those of integers do, sums of floats are rounded."""
    return all(numpy_dtype(region.buffer.dtype).kind in "iu" for region in node.writes)


def bind_updates(schedule: Schedule, block: BlockRV, loops: Sequence[LoopRV], threads: int, bits: int) -> bool:
    """Bind as many outer loops of a block as possible, and make atomic operations of its updates.

    Args:
        schedule: the schedule.
        block: the block, whose steps may meet in an element.
        loops: the loops around the block whose extents the host knows.
        threads: the maximum number of threads per block of threads.
        bits: the maximum size of an element that every device of the target updates atomically.

    Returns:
        Whether there are such loops. Otherwise nothing changes.
    """
    node = schedule.get(block)
    if any(numpy_dtype(each.buffer.dtype).itemsize * 8 > bits for each in node.writes):
        return False
    return any(
        all_or_nothing(schedule, partial(_bind, block=block, loops=loops[:count], threads=threads))
        for count in range(len(loops), 0, -1)
    )


def _bind(schedule: Schedule, block: BlockRV, loops: Sequence[LoopRV], threads: int) -> None:
    for update in _innermost(schedule, block):
        schedule.annotate(update, ATOMIC, True)
    bind_elements(schedule, loops, threads)


def _innermost(schedule: Schedule, block: BlockRV) -> list[BlockRV]:
    """Return the block, or those inside of it that hold its statements: of a column of a matrix in CSC, its updates."""
    children = schedule.get_child_blocks(block)
    return [found for child in children for found in _innermost(schedule, child)] if children else [block]


def unordered_sums(function: ir.PrimFunc) -> list[str]:
    """Return a note for each block whose sums of floats depend on the order in which threads run."""
    return [
        f"block '{block.name_hint}' adds to '{block.writes[0].buffer.name}' by atomic operations, in the order of "
        "execution: the last digits of its sums may differ between calls. Schedule it yourself to get a fixed order"
        for block in nodes_of(function.body, ir.Block)
        if ATOMIC in block.annotations and not is_exact(block)
    ]
