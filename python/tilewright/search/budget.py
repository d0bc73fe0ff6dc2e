"""Seconds that several searches share."""

from __future__ import annotations


def share_of(seconds: float | None, spent: float, count: int, number: int) -> float | None:
    """Return the share of the total seconds for one of several searches. Time that earlier searches did not use is
    divided among the later ones; after an overrun, each still gets at least half of an equal share.

    Args:
        seconds: seconds for all searches; None for no limit.
        spent: seconds spent so far.
        count: number of searches.
        number: number of this search, from 0.
    """
    if seconds is None:
        return None
    return max((seconds - spent) / (count - number), 0.5 * seconds / count) if count > 1 else seconds
