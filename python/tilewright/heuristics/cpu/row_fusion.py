"""Row fusion of chained blocks (softmax, normalizations): all blocks process a row while the row is in L1."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.heuristics.block_info import Sizes, block_info, constant, is_plain, is_spatial
from tilewright.heuristics.cpu.execution import parallelize, split_vectors
from tilewright.heuristics.cpu.reduction import vectorized_result_axis
from tilewright.heuristics.loops import starts_with
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def fuse_rows(schedule: Schedule, blocks: list[BlockRV], output: BlockRV, target: _core.Target, sizes: Sizes) -> None:
    """Compute the producers of an output row by row, if there is a reduction among them."""
    loops = schedule.get_loops(output)
    lanes = target.vector_bits // 32
    if len(loops) < 2 or not is_plain(schedule, loops) or not is_spatial(schedule.get(output)):
        return
    row = loops[0]
    if constant(schedule.get(row).extent) in (0, 1):
        return
    name = schedule.get(output).name_hint
    names = [schedule.get(block).name_hint for block in blocks]
    if name not in names:
        return
    earlier = [
        block
        for block in blocks[: names.index(name)]
        if schedule.get(block).writes and is_plain(schedule, schedule.get_loops(block))
    ]
    sums = [block for block in earlier if not is_spatial(schedule.get(block))]
    if not sums or all(_is_short(schedule, block, lanes) for block in sums):
        return
    if any(_vectorizes_results(schedule, block, target) for block in sums):
        return
    moved: list[BlockRV] = []
    for block in reversed(earlier):
        if not _depends_on_row(schedule, block, row):
            continue
        try_step(schedule.compute_at, block, row)
        if starts_with(schedule, block, row):
            moved.append(block)
    if not moved:
        return
    for block in [*moved, output]:
        own = schedule.get_loops(block)
        if len(own) > 1:
            split_vectors(schedule, own[-1], lanes)
    work = math.prod(sizes.value(schedule.get(loop).extent) or 1 for loop in schedule.get_loops(output))
    parallelize(schedule, [row], work * (1 + len(moved)), target)


def _is_short(schedule: Schedule, block: BlockRV, lanes: int) -> bool:
    info = block_info(schedule, block)
    return info is not None and info.size(info.reduced) < lanes


def _depends_on_row(schedule: Schedule, block: BlockRV, row: LoopRV) -> bool:
    """Return whether different rows read different results of a block; results that all rows share are computed once,
    before the rows."""
    written, of_rows = schedule.get(block).writes[0].buffer, schedule.get(row).loop_var
    for consumer in schedule.get_consumers(block):
        info = block_info(schedule, consumer)
        if info is None:
            return True
        reads = [read for read in info.reads if read.buffer.same_as(written)]
        for i, axis in enumerate(info.axes):
            if schedule.get(axis.loop).loop_var.same_as(of_rows) and any(read.varies(i) for read in reads):
                return True
    return False


def _vectorizes_results(schedule: Schedule, block: BlockRV, target: _core.Target) -> bool:
    info = block_info(schedule, block)
    return info is not None and vectorized_result_axis(info, target) is not None
