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
    """Return the schedule from a recorded trace of a program; pickled schedules are restored by this function."""
    schedule = Schedule(original, error_render_level=error_render_level)
    Trace.from_json(trace).apply_to_schedule(schedule)
    return schedule


def trace_from_json(trace: str) -> Trace:
    """Return the trace from text of :meth:`Trace.as_json`."""
    return Trace.from_json(trace)
