"""@Title@: <which loops these are, and what their schedule makes of them>.

Before:
    <loops>

After:
    <loops>
"""

from __future__ import annotations

from tilewright.heuristics.pattern import Match


def is_@name@(match: Match) -> bool:
    """Return whether <what the block does>."""
    return <a condition on match.info>


def schedule_@name@(match: Match) -> bool:
    """Schedule <what>; return whether <what the block must have for that>."""
    schedule, info = match.schedule, match.info
    (row, *_), lanes = info.loops(info.spatial), match.lanes
    _, vector = schedule.split(row, [None, lanes << match.sampler.choose(2)])
    schedule.vectorize(vector)
    return True
