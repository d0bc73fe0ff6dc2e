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
]
