"""When two programs count as the same for a search and its database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright import _core, ir
from tilewright._core import find_anchor_block, module_hash, modules_equal
from tilewright.errors import ArgumentError
from tilewright.machine import TargetLike
from tilewright.schedule import Schedule

if TYPE_CHECKING:
    from tilewright.meta_schedule.database import TuningRecord

__all__ = ["ModuleEquality", "find_anchor_block", "module_equality_of", "module_hash", "modules_equal"]


class ModuleEquality:
    """One of the ways to compare programs. Equal ones have equal hashes."""

    name: str

    def hash(self, mod: ir.IRModule) -> str:
        """Of the program."""
        return module_hash(mod, self.name)

    def equal(self, lhs: ir.IRModule, rhs: ir.IRModule) -> bool:
        """Whether they count as the same."""
        return modules_equal(lhs, rhs, self.name)

    def schedule(self, mod: ir.IRModule, record: TuningRecord, target: TargetLike | None) -> Schedule:
        """The program with the schedule of an equal one."""
        schedule = Schedule(mod)
        record.trace.apply_to_schedule(schedule)
        return schedule


class Structural(ModuleEquality):
    """All but names."""

    name = "structural"


class IgnoreConstants(ModuleEquality):
    """Constant tensors by type and shape alone."""

    name = "ignore-ndarray"


class AnchorBlock(ModuleEquality):
    """By the block with the most work alone: what goes before and after it may differ. Programs without a reduction are
    compared whole, but for constants."""

    name = "anchor-block"

    def schedule(self, mod: ir.IRModule, record: TuningRecord, target: TargetLike | None) -> Schedule:
        """The steps on the block, and what they leave scheduled by itself."""
        if modules_equal(mod, record.workload.mod, "structural"):
            return super().schedule(mod, record, target)
        schedule = Schedule(mod)
        _core.schedule_using_anchor_trace(schedule, record.trace, _core.Target(target or record.target or "native"))
        return schedule


_MODES: dict[str, type[ModuleEquality]] = {mode.name: mode for mode in (Structural, IgnoreConstants, AnchorBlock)}


def module_equality_of(mode: str) -> ModuleEquality:
    """The way of that name.

    Raises:
        tilewright.ArgumentError: there is none.
    """
    if mode not in _MODES:
        raise ArgumentError.of(
            "database/module-equality",
            f"programs cannot be compared by {mode!r}",
            f"there are {', '.join(map(repr, _MODES))}",
        )
    return _MODES[mode]()
