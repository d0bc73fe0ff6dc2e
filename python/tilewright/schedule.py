"""Schedules: transforming a program step by step, with a trace of the steps."""

from __future__ import annotations

from tilewright._core import BlockRV, ExprRV, LoopRV, Schedule, Trace

__all__ = ["BlockRV", "ExprRV", "LoopRV", "Schedule", "Trace"]
