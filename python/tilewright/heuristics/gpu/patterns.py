"""The patterns for GPUs, in the order in which they are tried.

The first pattern that matches and that the schedule accepts is used. A rewrite changes the block for the patterns below
it.
"""

from __future__ import annotations

from tilewright.heuristics.channel_groups import split_groups
from tilewright.heuristics.gpu.reduction import (
    has_few_results,
    is_argreduce_block,
    is_column_reduction,
    is_long,
    requires_serial_order,
    schedule_columns,
    schedule_results,
    schedule_row,
    split_among_blocks,
)
from tilewright.heuristics.gpu.shared_tiles import has_two_sides, schedule_shared_tiles
from tilewright.heuristics.pattern import Pattern, Rewrite

CONTRACTIONS: tuple[Pattern | Rewrite, ...] = (
    Rewrite("channel groups", (), split_groups),
    Pattern("shared tiles", (has_two_sides,), schedule_shared_tiles),
)

REDUCTIONS: tuple[Pattern | Rewrite, ...] = (
    Pattern("argmin or argmax", (is_argreduce_block,), schedule_results),
    Pattern("steps in order", (requires_serial_order,), schedule_results),
    Rewrite("parts of a long reduction", (has_few_results,), split_among_blocks),
    Pattern("columns", (is_long, is_column_reduction), schedule_columns),
    Pattern("row", (is_long,), schedule_row),
    Pattern("one thread for each result", (), schedule_results),
)
