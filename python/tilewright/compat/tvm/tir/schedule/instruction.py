"""tvm.tir.schedule.instruction."""

from __future__ import annotations

from tilewright._core import Instruction, InstructionKind
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.tir.schedule.instruction")

__all__ = ["Instruction", "InstructionKind"]
