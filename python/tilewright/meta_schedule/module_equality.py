"""Criteria by which programs count as the same in a search and its database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright import _core, ir
from tilewright._core import find_anchor_block, module_hash, modules_equal
from tilewright.database.records import as_named_in
from tilewright.errors import ArgumentError
from tilewright.schedule import Schedule
from tilewright.support import limits
from tilewright.support.machine import TargetLike
from tilewright.task.task import one_program

if TYPE_CHECKING:
    from tilewright.meta_schedule.database.tuning_record import TuningRecord

__all__ = ["ModuleEquality", "find_anchor_block", "module_equality_of", "module_hash", "modules_equal"]


def check_module(mod: Any) -> ir.IRModule:
    """Return the argument if it is a module.

    Raises:
        tilewright.ArgumentError: it is not a module.
    """
    hint = "normalize_module(function) is the module of a function; compile_tir(database, function, target) takes both"
    limits.kind("mod", mod, ir.IRModule, "a module", hint)
    return mod  # type: ignore[no-any-return]


class ModuleEquality:
    """A criterion for equal programs. Equal programs have equal hashes. A function and a module of only that function
    are one program, whether or not it declares that its buffers do not overlap."""

    name: str

    def hash(self, mod: ir.IRModule) -> str:
        """Return the hash of a program."""
        return module_hash(one_program(check_module(mod)), self.name)

    def equal(self, lhs: ir.IRModule, rhs: ir.IRModule) -> bool:
        """Return whether two programs count as the same."""
        return modules_equal(one_program(lhs), one_program(rhs), self.name)

    def schedule(self, mod: ir.IRModule, record: TuningRecord, target: TargetLike | None) -> Schedule:
        """Return a schedule of the program with the steps of an equal one, whose blocks may have other names."""
        schedule = Schedule(mod)
        as_named_in(mod, record.workload.mod, record.trace).apply_to_schedule(schedule)
        return schedule


class Structural(ModuleEquality):
    """Compares everything except names."""

    name = "structural"


class IgnoreConstants(ModuleEquality):
    """Compares constant tensors only by data type and shape."""

    name = "ignore-ndarray"


class AnchorBlock(ModuleEquality):
    """Compares only the block with the most work; the blocks before and after it may differ. Programs without a
    reduction are compared completely, except for constants."""

    name = "anchor-block"

    def schedule(self, mod: ir.IRModule, record: TuningRecord, target: TargetLike | None) -> Schedule:
        """Apply the steps on the block, and schedule the remaining blocks heuristically."""
        if Structural().equal(mod, record.workload.mod):
            return super().schedule(mod, record, target)
        schedule = Schedule(mod)
        _core.schedule_using_anchor_trace(schedule, record.trace, _core.Target(target or record.target or "native"))
        return schedule


_MODES: dict[str, type[ModuleEquality]] = {mode.name: mode for mode in (Structural, IgnoreConstants, AnchorBlock)}


def module_equality_of(mode: str) -> ModuleEquality:
    """Return the criterion with a name.

    Raises:
        tilewright.ArgumentError: there is no such criterion.
    """
    if not isinstance(mode, str) or mode not in _MODES:
        raise ArgumentError.of(
            "database/module-equality",
            f"programs cannot be compared by {mode!r:.80}",
            f"there are {', '.join(map(repr, _MODES))}",
        )
    return _MODES[mode]()
