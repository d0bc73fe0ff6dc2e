"""Schedules: transforming a program step by step, with a trace of the steps."""

from __future__ import annotations

from tilewright._core import (
    BlockRV,
    BlockScope,
    Dependency,
    DepKind,
    ExprRV,
    Instruction,
    InstructionKind,
    LoopRV,
    Module,
    PrimFunc,
    Schedule,
    ScheduleState,
    StmtSRef,
    Trace,
)

__all__ = [
    "BlockRV",
    "BlockScope",
    "DepKind",
    "Dependency",
    "ExprRV",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "Schedule",
    "ScheduleState",
    "StmtSRef",
    "Trace",
    "replayed",
    "trace_from_json",
]


def replayed(original: PrimFunc | Module, trace: str, error_render_level: str = "detail") -> Schedule:
    """The schedule that a recorded trace makes of a program; pickled schedules come back through it."""
    schedule = Schedule(original, error_render_level=error_render_level)
    Trace.from_json(trace).apply_to_schedule(schedule)
    return schedule


def trace_from_json(trace: str) -> Trace:
    """The trace that :meth:`Trace.as_json` wrote."""
    return Trace.from_json(trace)
