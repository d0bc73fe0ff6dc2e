"""Heuristic schedules for GPUs.

Small blocks are inlined, products are tiled, chained blocks of a row share a kernel; then each block is scheduled by
the first matching pattern of a table (:mod:`tilewright.heuristics.gpu.patterns`). Each step is a schedule primitive,
which checks its preconditions. Only kernels can access device memory, so a block that no pattern matches is bound to
threads as well (:mod:`tilewright.heuristics.gpu.bind_blocks`): one thread for each element if iterations are
independent.
"""

from __future__ import annotations

from functools import partial

from tilewright import _core
from tilewright.heuristics.block_info import Sizes, block_info
from tilewright.heuristics.gpu.all_or_nothing import all_or_nothing
from tilewright.heuristics.gpu.atomic_updates import unordered_sums
from tilewright.heuristics.gpu.bind_blocks import bind_all_blocks
from tilewright.heuristics.gpu.fused_rows import fuse_rows
from tilewright.heuristics.gpu.limits import limits_of
from tilewright.heuristics.gpu.patterns import CONTRACTIONS, REDUCTIONS
from tilewright.heuristics.gpu.plain_loops import with_blocks
from tilewright.heuristics.inlining import inline_blocks
from tilewright.heuristics.loops import order_loops, root_of
from tilewright.heuristics.pattern import Match, apply_patterns
from tilewright.heuristics.sampling import Sampler, try_step
from tilewright.schedule import BlockRV, Schedule

__all__ = ["schedule_for_gpu", "schedule_simply", "unordered_sums", "with_blocks"]


def schedule_simply(schedule: Schedule, target: _core.Target) -> None:
    """Bind each block in place without other changes: one thread for each element if iterations are independent, and
    one thread for all of them otherwise."""
    bind_all_blocks(schedule, limits_of(target)._replace(atomic_bits=0))


def schedule_for_gpu(schedule: Schedule, target: _core.Target) -> None:
    """Schedule a program, in place.

    Args:
        schedule: a schedule whose current function (``work_on``) is scheduled.
        target: the target; its limits apply in addition to those of the device.

    Any exception is a defect of the heuristics; callers fall back to :func:`schedule_simply`.
    """
    root = root_of(schedule)
    if root is None:
        return
    limits = limits_of(target)
    blocks = inline_blocks(schedule, schedule.get_child_blocks(root), Sizes())
    for block in blocks:
        try_step(order_loops, schedule, block)
        all_or_nothing(schedule, partial(_schedule_contraction, block=block, target=target))
    for output in try_step(schedule.get_output_blocks, root) or ():
        all_or_nothing(schedule, partial(fuse_rows, output=output, limits=limits))
    for block in blocks:
        all_or_nothing(schedule, partial(_schedule_reduction, block=block, target=target))
    bind_all_blocks(schedule, limits)


def _schedule_contraction(schedule: Schedule, block: BlockRV, target: _core.Target) -> None:
    info = block_info(schedule, block)
    if info is not None and info.reduced and info.is_contraction():
        apply_patterns(CONTRACTIONS, Match(schedule, info, target, Sampler(schedule, best=True)))


def _schedule_reduction(schedule: Schedule, block: BlockRV, target: _core.Target) -> None:
    info = block_info(schedule, block, multiple_stores=True)
    if info is not None and info.reduced:
        apply_patterns(REDUCTIONS, Match(schedule, info, target, Sampler(schedule, best=True)))
