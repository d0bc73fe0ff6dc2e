"""Softmax and normalizations as one kernel, with one block of threads for each row.

for row in T.thread_binding(..., "blockIdx.x"):
  for j in T.thread_binding(256, "threadIdx.x"): the maximum of the row, by all threads
  for j in T.thread_binding(256, "threadIdx.x"): exponentials, kept in shared memory
  for j in T.thread_binding(256, "threadIdx.x"): their sum
  for j in T.thread_binding(256, "threadIdx.x"): the results
"""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.heuristics.block_info import (
    block_info,
    constant,
    is_argreduce,
    is_parameter,
    is_plain,
    is_spatial,
    width_of,
)
from tilewright.heuristics.gpu.bind_loops import bind_blocks, own_loops, share, threads_for
from tilewright.heuristics.gpu.limits import Limits
from tilewright.heuristics.gpu.parameters import BLOCK_THREADS, SHARED_SHARE, SHARED_STEPS
from tilewright.heuristics.gpu.reduction import needs_split
from tilewright.heuristics.sampling import succeeds
from tilewright.schedule import BlockRV, LoopRV, Schedule


def fuse_rows(schedule: Schedule, output: BlockRV, limits: Limits) -> None:
    """Fuse an output and its producers into one kernel per row, if long reductions are among them."""
    info = block_info(schedule, output)
    if info is None or info.reduced:
        return
    chain = _chain(schedule, output)
    steps, axes = 0, len(info.axes)
    for block in chain:
        own = block_info(schedule, block)
        if own is None or not own.reduced:
            continue
        # The reduction with the fewest spatial axes determines the rows. Loops are in the order of the axes.
        axes = min(axes, len(own.spatial))
        if own.spatial[:axes] != list(range(axes)):
            return
        if any(own.extent(i) != info.extent(i) for i in range(axes)):
            return
        node = schedule.get(block)
        if own.size(own.reduced) < SHARED_STEPS or is_argreduce(node) or not _core.threads_may_reduce(node):
            return
        steps = max(steps, own.size(own.reduced))
    if not steps or needs_split(info.size(range(axes)), steps):
        return
    row = bind_blocks(schedule, output, axes)
    moved = [block for block in reversed(chain) if succeeds(schedule.compute_at, block, row)]
    threads = threads_for(steps, min(limits.threads, BLOCK_THREADS))
    left = int(SHARED_SHARE * limits.shared_bytes)
    for block in moved:
        left -= _keep_in_shared_memory(schedule, block, row, left)
    for block in [*moved, output]:
        loops = own_loops(schedule, block, row)
        if loops:
            share(schedule, loops, threads)


def _chain(schedule: Schedule, output: BlockRV) -> list[BlockRV]:
    """Return the producers of an output that are not in other kernels, in program order."""
    chain: list[BlockRV] = []
    names: set[str] = set()

    def look(block: BlockRV) -> None:
        for producer in schedule.get_producers(block):
            node = schedule.get(producer)
            if node.name_hint in names or not is_plain(schedule, schedule.get_loops(producer)):
                continue
            names.add(node.name_hint)
            look(producer)
            chain.append(producer)

    look(output)
    return chain


def _keep_in_shared_memory(schedule: Schedule, block: BlockRV, row: LoopRV, most: int) -> int:
    """Keep the row that a block writes in shared memory if it needs at most `most` bytes; return its bytes."""
    node = schedule.get(block)
    if len(node.writes) != 1 or is_parameter(schedule, node.writes[0].buffer):
        return 0
    extents = [constant(schedule.get(loop).extent) for loop in own_loops(schedule, block, row)]
    if not is_spatial(node):
        extents = [1]
    if None in extents:
        return 0
    size = math.prod(extent or 1 for extent in extents) * width_of(node.writes[0].buffer.dtype)
    if size > most or not succeeds(schedule.set_scope, block, 0, "shared"):
        return 0
    return size
