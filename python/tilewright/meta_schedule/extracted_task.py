"""A program that is part of a larger one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright import ir
from tilewright.support.machine import TargetLike

__all__ = ["ExtractedTask"]


@dataclass(frozen=True)
class ExtractedTask:
    """What is to be tuned for the sake of a larger program.

    Attributes:
        task_name: what it is called in logs.
        mod: the part as the larger program has it.
        target: what it is for.
        dispatched: the programs that stand for it, of which one is tuned.
        weight: how often the larger program runs it.
    """

    task_name: str
    mod: ir.IRModule
    target: TargetLike
    dispatched: Sequence[ir.IRModule]
    weight: int
