"""A program that is part of a larger one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright import ir
from tilewright.support.machine import TargetLike

__all__ = ["ExtractedTask"]


@dataclass(frozen=True)
class ExtractedTask:
    """A part of a larger program that is tuned.

    Attributes:
        task_name: name in logs.
        mod: the part, as in the larger program.
        target: target of the part.
        dispatched: the programs that can replace it, of which one is tuned.
        weight: how often the larger program runs it.
    """

    task_name: str
    mod: ir.IRModule
    target: TargetLike
    dispatched: Sequence[ir.IRModule]
    weight: int
