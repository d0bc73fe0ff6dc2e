"""Using what was found for one program on another that does the same work in its heaviest block."""

from __future__ import annotations

from tilewright._core import schedule_using_anchor_trace

__all__ = ["schedule_using_anchor_trace"]
