"""Apply the schedule of one program to another one with the same block of most work."""

from __future__ import annotations

from tilewright._core import schedule_using_anchor_trace

__all__ = ["schedule_using_anchor_trace"]
