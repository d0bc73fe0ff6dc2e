"""tvm.tir.schedule."""

from __future__ import annotations

from tilewright._core import (
    BlockRV,
    BlockScope,
    Dependency,
    ExprRV,
    LoopRV,
    StmtSRef,
    Trace,
)
from tilewright._core import BlockRV as SparseIterationRV
from tilewright.compat.tvm.tir.block_scope import DepKind
from tilewright.compat.tvm.tir.schedule import analysis, instruction, state
from tilewright.compat.tvm.tir.schedule.instruction import Instruction, InstructionKind
from tilewright.compat.tvm.tir.schedule.schedule import Schedule, ScheduleError
from tilewright.compat.tvm.tir.schedule.state import ScheduleDebugMask, ScheduleState

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
    "ScheduleDebugMask",
    "ScheduleError",
    "ScheduleState",
    "SparseIterationRV",
    "StmtSRef",
    "Trace",
    "analysis",
    "instruction",
    "state",
]
