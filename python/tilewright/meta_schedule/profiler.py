"""Where the time of a session goes."""

from __future__ import annotations

from tilewright.report.spending import Profiler

__all__ = ["Profiler"]
