"""Bindings of loops to blocks and threads."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.heuristics.block_info import constant
from tilewright.heuristics.gpu.parameters import WARP_THREADS
from tilewright.heuristics.loops import fuse_all
from tilewright.schedule import BlockRV, LoopRV, Schedule


def bind_elements(schedule: Schedule, loops: Sequence[LoopRV], threads: int) -> None:
    """Fuse loops with independent iterations and bind them: one thread per iteration, `threads` per block."""
    loop = fuse_all(schedule, loops)
    extent = constant(schedule.get(loop).extent)
    if extent is not None:
        threads = min(threads, max(WARP_THREADS, 1 << max(extent - 1, 1).bit_length()))
    block, thread = schedule.split(loop, [None, threads])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(thread, "threadIdx.x")


def bind_blocks(schedule: Schedule, block: BlockRV, count: int) -> LoopRV:
    """Fuse the `count` outer loops of a block, bind them to blockIdx.x, and return the fused loop."""
    loops = schedule.get_loops(block)
    row = fuse_all(schedule, loops[:count]) if count else schedule.add_unit_loop(loops[0] if loops else block)
    schedule.bind(row, "blockIdx.x")
    return row


def share(schedule: Schedule, loops: Sequence[LoopRV], threads: int, axis: str = "threadIdx.x") -> None:
    """Distribute the iterations of loops over the threads of a block; adjacent threads run adjacent iterations."""
    loop = fuse_all(schedule, loops)
    _, thread = schedule.split(loop, [None, threads])
    schedule.bind(thread, axis)


def own_loops(schedule: Schedule, block: BlockRV, around: LoopRV) -> list[LoopRV]:
    """Return the loops of a block inside of another loop."""
    loops = schedule.get_loops(block)
    names = [schedule.get(loop).loop_var for loop in loops]
    outer = schedule.get(around).loop_var
    place = next(n for n, name in enumerate(names) if name.same_as(outer))
    return loops[place + 1 :]


def threads_for(steps: int, most: int) -> int:
    """Return how many threads share so many steps: a power of two, a warp at least."""
    return min(most, max(WARP_THREADS, 1 << int(math.log2(max(steps, 1)))))
