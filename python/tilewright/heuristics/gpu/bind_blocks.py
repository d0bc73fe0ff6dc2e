"""Bindings for blocks that no pattern matches: only kernels can access device memory, so each block is bound."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

from tilewright import ir
from tilewright.heuristics.cpu.ragged_rows import buffers_in
from tilewright.heuristics.cpu.scattered_rows import columns_of, move_outermost
from tilewright.heuristics.gpu.all_or_nothing import all_or_nothing
from tilewright.heuristics.gpu.atomic_updates import bind_updates, is_exact
from tilewright.heuristics.gpu.bind_loops import bind_elements
from tilewright.heuristics.gpu.limits import Limits
from tilewright.heuristics.gpu.parameters import BLOCK_THREADS
from tilewright.heuristics.loops import root_of
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.support.nodes import nodes_of


def bind_all_blocks(schedule: Schedule, limits: Limits) -> None:
    """Bind the outer loops of each block that is not bound yet."""
    root = root_of(schedule)
    for block in schedule.get_child_blocks(root) if root is not None else ():
        if not is_bound(schedule, block):
            bind_block(schedule, block, limits)


def is_bound(schedule: Schedule, block: BlockRV) -> bool:
    """Return whether a loop around a block, or inside of it, is bound to blocks or threads."""
    if any(schedule.get(loop).thread_binding is not None for loop in schedule.get_loops(block)):
        return True
    return any(loop.thread_binding is not None for loop in nodes_of(schedule.get(block), ir.For))


def bind_block(schedule: Schedule, block: BlockRV, limits: Limits) -> None:
    """Bind as many outer loops of a block as have independent iterations. If several steps update one element, use
    atomic operations, or bind the loop over columns, which keeps the order of sums. If neither is possible, use one
    thread."""
    threads = min(limits.threads, BLOCK_THREADS)
    loops = schedule.get_loops(block)
    # The host launches the threads and cannot read data of the device.
    launched = list(itertools.takewhile(lambda loop: not buffers_in(schedule.get(loop).extent), loops))
    for count in range(len(launched), 0, -1):
        if all_or_nothing(schedule, partial(bind_elements, loops=loops[:count], threads=threads)):
            return
    bind_atomically = partial(bind_updates, schedule, block, launched, threads, limits.atomic_bits)
    if is_exact(schedule.get(block)) and bind_atomically():
        return
    if (found := columns_of(schedule, block)) is not None:
        levels, columns = found
        is_known = not buffers_in(schedule.get(columns).extent)
        if is_known and all_or_nothing(
            schedule, partial(_bind_columns, levels=levels, columns=columns, threads=threads)
        ):
            return
    if bind_atomically():
        return
    alone = schedule.add_unit_loop(loops[0] if loops else block)
    schedule.bind(alone, "blockIdx.x")


def _bind_columns(schedule: Schedule, levels: Sequence[BlockRV], columns: LoopRV, threads: int) -> None:
    """Give each thread a column of a result to whose rows several steps add."""
    move_outermost(schedule, levels, columns)
    bind_elements(schedule, [columns], threads)
