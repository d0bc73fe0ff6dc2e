"""The patterns, in the order in which they are tried. A block is scheduled by the first pattern that matches and can be
built; the patterns below are then skipped. A rewrite changes the block that the patterns below match.

Requirements that several rows share are in this file, others in the file of their pattern.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.heuristics.block_info import block_info, is_spatial
from tilewright.heuristics.channel_groups import split_channel_groups
from tilewright.heuristics.cpu.accumulators import accumulator_cycles
from tilewright.heuristics.cpu.contraction import schedule_register_tile, schedule_window
from tilewright.heuristics.cpu.deinterleave import deinterleave
from tilewright.heuristics.cpu.dot_products import is_low_precision_product, schedule_dot_products
from tilewright.heuristics.cpu.elementwise import (
    has_short_rows,
    is_contiguous,
    is_transposed,
    reverses_or_clamps,
    schedule_boundary,
    schedule_contiguous,
    schedule_rows,
    schedule_short_rows,
    schedule_transposed,
)
from tilewright.heuristics.cpu.matrix_tiles import has_matrix_tiles, schedule_matrix_tiles, starts_at_zero
from tilewright.heuristics.cpu.operand_layout import transpose_along_reduction, transpose_for_vectors
from tilewright.heuristics.cpu.operand_upcast import upcast_operands
from tilewright.heuristics.cpu.parameters import ACCUMULATORS_BETTER, ESTIMATES_CLOSE
from tilewright.heuristics.cpu.recurrence import is_recurrence, schedule_recurrence
from tilewright.heuristics.cpu.reduction import (
    accumulate_rows,
    is_argreduce_block,
    is_matrix_vector,
    schedule_accumulators,
    schedule_argreduce,
    schedule_boundary_window,
    schedule_columns,
    slides_over_boundary,
    vectorizes_results,
)
from tilewright.heuristics.cpu.register_tile import register_tiles
from tilewright.heuristics.cpu.skinny_gemm import schedule_skinny_gemm
from tilewright.heuristics.cpu.split_k import split_accumulators, split_reduction
from tilewright.heuristics.pattern import Match, Pattern, Rewrite, apply_patterns
from tilewright.heuristics.sampling import try_step


def is_outermost(match: Match) -> bool:
    """Return whether no loops are shared with other blocks."""
    return not match.info.parts


def is_fixed(match: Match) -> bool:
    """Return whether all extents are constant."""
    return match.info.is_fixed


def has_no_residue_axes(match: Match) -> bool:
    """Return whether every reduction term counts. Not so with a residue axis (transposed convolution), where all but
    every stride-th term are zero."""
    return not match.info.residue_axes


def is_float(match: Match) -> bool:
    """Return whether results are floats: reassociated sums may then round differently."""
    return match.info.store.buffer.dtype.startswith("float")


def is_reduced(match: Match) -> bool:
    """Return whether the block still has a reduction axis; a rewrite removes axes of extent 1."""
    return bool(match.info.reduced)


def lacks_contiguous_results(match: Match) -> bool:
    """Return whether fewer than half a vector of results is contiguous. Then results are stored in another order."""
    return not match.info.contiguous_axes(match.lanes)


def has_register_tile(match: Match) -> bool:
    """Return whether a tile of results fits in registers."""
    return bool(register_tiles(match.info, match.target))


def schedule_vector_accumulators(match: Match) -> bool:
    """Schedule a contraction as a reduction, if vector accumulators of one result are estimated faster than a register
    tile, or nearly so and sampled."""
    tile = register_tiles(match.info, match.target)[0].cycles
    accumulators = accumulator_cycles(match.info, match.target)
    better = tile > ACCUMULATORS_BETTER * accumulators
    is_close = tile < ESTIMATES_CLOSE * accumulators and accumulators < ESTIMATES_CLOSE * tile
    chosen = better != (is_close and match.sampler.choose(2) == 1)
    return chosen and bool(apply_patterns(REDUCTIONS, match))


CONTRACTIONS: tuple[Pattern | Rewrite, ...] = (
    Pattern(
        "matrix tiles",
        (is_outermost, has_no_residue_axes, is_low_precision_product, has_matrix_tiles, is_fixed, starts_at_zero),
        schedule_matrix_tiles,
    ),
    Pattern("dot products", (is_outermost, has_no_residue_axes, is_low_precision_product), schedule_dot_products),
    Rewrite("operand upcast", (is_outermost,), upcast_operands),
    Rewrite("channel groups", (is_outermost,), split_channel_groups),
    Pattern("sliding window", (is_outermost, has_no_residue_axes), schedule_window),
    Pattern("matrix-vector product", (is_outermost, is_matrix_vector), accumulate_rows),
    Rewrite("transposed operand", (is_outermost, lacks_contiguous_results), transpose_for_vectors),
    Rewrite("de-interleaved operand", (is_outermost, has_no_residue_axes, is_reduced), deinterleave),
    Pattern("skinny GEMM", (is_outermost, has_no_residue_axes, is_float, is_fixed, is_reduced), schedule_skinny_gemm),
    Rewrite("split-K", (is_outermost, has_no_residue_axes, is_float, is_reduced, has_register_tile), split_reduction),
    Rewrite(
        "several accumulators",
        (is_outermost, has_no_residue_axes, is_float, is_reduced, has_register_tile),
        split_accumulators,
    ),
    # After split-K, because the partial sums form a new block that only this table schedules.
    Pattern("reduction", (is_reduced, has_register_tile), schedule_vector_accumulators),
    Pattern("transposed reduction", (is_outermost, is_reduced, has_register_tile), transpose_along_reduction),
    Pattern("register tile", (is_reduced,), schedule_register_tile),
)

REDUCTIONS: tuple[Pattern | Rewrite, ...] = (
    Pattern("argmin or argmax", (is_argreduce_block,), schedule_argreduce),
    Pattern("window over a boundary", (slides_over_boundary,), schedule_boundary_window),
    Pattern("columns", (vectorizes_results,), schedule_columns),
    Pattern("vector accumulators", (), schedule_accumulators),
)

ELEMENTWISE: tuple[Pattern | Rewrite, ...] = (
    # First, because those below split and vectorize loops whose order a recurrence fixes.
    Pattern("recurrence", (is_recurrence,), schedule_recurrence),
    Pattern("contiguous", (is_contiguous,), schedule_contiguous),
    Pattern("transposed copy", (is_transposed,), schedule_transposed),
    Pattern("boundary", (reverses_or_clamps,), schedule_boundary),
    Pattern("short rows", (has_short_rows,), schedule_short_rows),
    Pattern("rows", (), schedule_rows),
)


def schedule_contraction(match: Match) -> None:
    """Schedule a contraction, then the copies of its operands that were made for it."""
    apply_patterns(CONTRACTIONS, match)
    schedule = match.schedule
    for copy in match.copies:
        consumers = schedule.get_consumers(copy)
        if len(consumers) == 1 and is_spatial(schedule.get(consumers[0])):
            try_step(schedule.compute_inline, copy)  # blocks that copy this copy upcast instead
            continue
        info = try_step(block_info, schedule, copy)
        if info is not None:
            try_step(apply_patterns, ELEMENTWISE, replace(match, info=info))


def schedule_single_block(match: Match) -> None:
    """Schedule a block that no contraction pattern has scheduled."""
    apply_patterns(REDUCTIONS if match.info.reduced else ELEMENTWISE, match)
