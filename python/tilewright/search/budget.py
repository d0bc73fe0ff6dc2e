"""Seconds that several searches share."""

from __future__ import annotations


def share_of(seconds: float | None, spent: float, count: int, number: int) -> float | None:
    """What one of several searches gets of the seconds for all: what others did not need is left to those after them,
    and what they took too much leaves each at least half of its share.

    Args:
        seconds: for all; None for no limit.
        spent: of them until now.
        count: of searches.
        number: of this one, from 0.
    """
    if seconds is None:
        return None
    return max((seconds - spent) / (count - number), 0.5 * seconds / count) if count > 1 else seconds
