"""Where the time of a session goes."""

from __future__ import annotations

from tilewright.report.profiler import Profiler

__all__ = ["Profiler"]
