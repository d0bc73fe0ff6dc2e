"""Contractions of operands with a lower precision than the accumulators: each element is upcast once instead of once
for each result that needs it."""

from __future__ import annotations

from tilewright import ir
from tilewright.heuristics.block_info import BlockInfo, width_of
from tilewright.heuristics.cpu.parameters import UPCAST_USES
from tilewright.heuristics.loops import copy_operand
from tilewright.heuristics.pattern import Match
from tilewright.support.nodes import nodes_of


def upcast_operands(match: Match) -> BlockInfo:
    """Return the contraction with copies of its operands in the data type of the accumulators."""
    info, schedule = match.info, match.schedule
    to = info.store.buffer.dtype
    buffers = [read.buffer for read in info.reads if _has_lower_precision(read.buffer.dtype, to)]
    if not buffers or min(map(info.uses, info.reads)) < UPCAST_USES or len(set(buffers)) < len(buffers):
        return info
    if not _are_upcast_first(match, buffers):
        return info
    for buffer in buffers:
        match.copies.append(copy_operand(schedule, info.block, buffer))
        schedule.unsafe_set_dtype(match.copies[-1], 0, to)
    return match.again()


def _has_lower_precision(dtype: str, than: str) -> bool:
    """Return whether another data type represents all numbers of `dtype` and takes at least twice as much memory."""
    known = dtype in ("float16", "bfloat16", "float32") or dtype.startswith(("int", "uint"))
    return known and than in ("float32", "float64") and 2 * width_of(dtype) <= width_of(than)


def _are_upcast_first(match: Match, buffers: list[ir.Buffer]) -> bool:
    """Return whether each loaded element is upcast before any other operation."""
    body, wide = match.schedule.get(match.info.block).body, match.info.store.buffer.dtype
    upcast = [cast.value for cast in nodes_of(body, ir.Cast) if cast.dtype == wide]
    loads = [load for load in nodes_of(body, ir.BufferLoad) if any(load.buffer.same_as(buffer) for buffer in buffers)]
    return all(any(load.same_as(value) for value in upcast) for load in loads)
