"""Profiler of a session: seconds by part."""

from __future__ import annotations

from tilewright.report.profiler import Profiler

__all__ = ["Profiler"]
