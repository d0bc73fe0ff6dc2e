"""Heuristic schedules for CPUs: decisions by a model of one core, the best expected one or sampled ones.

Small blocks are inlined, blocks of a row are fused, chained products are blocked by rows; then each block is scheduled
by the first pattern of a table that matches (:mod:`tilewright.heuristics.cpu.patterns`). Each step is a primitive,
which proves what it does or refuses; refused steps are omitted.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright import _core, ir
from tilewright.heuristics.block_info import (
    BlockInfo,
    Sizes,
    block_info,
    constant,
)
from tilewright.heuristics.cpu.parameters import ESTIMATE_TOLERANCE
from tilewright.heuristics.cpu.patterns import schedule_contraction, schedule_single_block
from tilewright.heuristics.cpu.ragged_rows import schedule_ragged_rows
from tilewright.heuristics.cpu.row_blocking import block_rows
from tilewright.heuristics.cpu.row_fusion import fuse_rows
from tilewright.heuristics.cpu.scattered_rows import (
    run_updates_in_parallel,
    serial_updates,
    share_columns,
    sum_in_copies,
)
from tilewright.heuristics.cpu.strided_subproblems import split_strided_subproblems
from tilewright.heuristics.inlining import inline_blocks
from tilewright.heuristics.loops import function_of, order_loops, root_of
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import Sampler, try_step
from tilewright.heuristics.unscheduled import SKIPS_ZERO_TERMS
from tilewright.schedule import Schedule
from tilewright.support.nodes import nodes_of

#: Version of the heuristics. Increase it if any trace changes: searches of earlier versions are then not continued, but
#: their measurements are kept. tests/heuristics/cpu/versions.txt has the traces of each version.
VERSION = 10

__all__ = ["VERSION", "schedule_for_cpu", "seems_slower", "serial_updates"]


def seems_slower(after: ir.PrimFunc, before: ir.PrimFunc, target: _core.Target) -> bool:
    """Return whether the scheduled function `after` is estimated to be slower than `before`, by more than the error
    of the estimate. False if a size is symbolic, or if `after` omits terms or calls instructions that the estimate does
    not model."""
    extents = [extent for buffer in before.buffer_map.values() for extent in buffer.shape]
    if any(constant(extent) is None for extent in extents) or _is_beyond_the_estimate(after):
        return False
    ruled, written = (
        _core.estimate_cost(ir.Module({"main": each}), str(target))["seconds"] for each in (after, before)
    )
    return bool(ruled > ESTIMATE_TOLERANCE * written)


def _is_beyond_the_estimate(function: ir.PrimFunc) -> bool:
    return any(SKIPS_ZERO_TERMS in block.annotations for block in nodes_of(function.body, ir.Block)) or any(
        getattr(call.op, "name", "") in ("tir.call_llvm_intrin", "tir.call_llvm_pure_intrin")
        for call in nodes_of(function.body, ir.Call)
    )


def schedule_for_cpu(
    schedule: Schedule, target: _core.Target, *, best: bool, sizes: Mapping[str, float] | None = None
) -> None:
    """Schedule a program in place.

    Args:
        schedule: schedule of the program; the function that it works on is scheduled.
        target: the processor, with its vectors, registers and caches.
        best: take the alternatives that the model expects to be best; otherwise sample them, as
            :class:`tilewright.Space` requires.
        sizes: typical values of symbolic sizes, by name.

        If a step is refused, the block keeps the steps before, which is a correct program too. Any exception is a
        defect of the heuristics; callers continue with the unscheduled program (:mod:`tilewright.heuristics.failures`).
    """
    sampler = Sampler(schedule, best)
    typical = Sizes(sizes, function_of(schedule) if sizes else None)
    root = root_of(schedule)
    if root is None:
        return
    blocks = inline_blocks(schedule, schedule.get_child_blocks(root), typical)
    for block in blocks:
        try_step(order_loops, schedule, block)
    split_strided_subproblems(schedule, blocks)
    row_blocks = try_step(block_rows, schedule, blocks, target, typical, sampler)
    nested = row_blocks or schedule

    def match(info: BlockInfo) -> Match:
        return Match(nested if info.parts else schedule, info, target, sampler)

    for block in blocks:
        info = try_step(block_info, nested, block, typical)
        # An earlier step may have removed reduction axes that have only one step.
        if info is not None and info.reduced and info.is_contraction():
            try_step(schedule_contraction, match(info))
    for output in try_step(schedule.get_output_blocks, root) or []:
        if row_blocks is None:
            try_step(fuse_rows, schedule, blocks, output, target, typical)
    for block in blocks:
        adds_copies = False
        if target.num_cores > 1 and not try_step(share_columns, schedule, block, target):
            adds_copies = bool(try_step(sum_in_copies, schedule, block, target))
        info = try_step(block_info, nested, block, typical, multiple_stores=True)
        if info is not None:
            try_step(schedule_single_block, match(info))
        else:
            try_step(schedule_ragged_rows, schedule, block, target, typical)
        if target.num_cores > 1:
            try_step(run_updates_in_parallel, schedule, block, adds_copies)
    if row_blocks is not None:
        try_step(row_blocks.parallelize)
