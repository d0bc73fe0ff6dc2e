"""When two programs count as the same for a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tilewright import _core, ir
from tilewright.errors import ArgumentError
from tilewright.machine import TargetLike
from tilewright.schedule import Schedule

if TYPE_CHECKING:
    from tilewright.meta_schedule.database import TuningRecord

__all__ = ["ModuleEquality", "module_equality_of"]


class ModuleEquality(ABC):
    """One of the ways to compare programs. Equal ones have equal hashes."""

    name: str

    @abstractmethod
    def hash(self, mod: ir.IRModule) -> str:
        """Of the program."""

    @abstractmethod
    def equal(self, lhs: ir.IRModule, rhs: ir.IRModule) -> bool:
        """Whether they count as the same."""

    def schedule(self, mod: ir.IRModule, record: TuningRecord, target: TargetLike | None) -> Schedule:
        """The program with the schedule of an equal one."""
        schedule = Schedule(mod)
        record.trace.apply_to_schedule(schedule)
        return schedule


class Structural(ModuleEquality):
    """All but names."""

    name = "structural"

    def hash(self, mod: ir.IRModule) -> str:
        """The structural hash."""
        return _core.structural_hash(mod)

    def equal(self, lhs: ir.IRModule, rhs: ir.IRModule) -> bool:
        """Structural equality."""
        return _core.structural_equal(lhs, rhs)


class IgnoreConstants(ModuleEquality):
    """Constant tensors by type and shape alone."""

    name = "ignore-ndarray"

    def hash(self, mod: ir.IRModule) -> str:
        """That of the program with all constants zero."""
        return _core.structural_hash(_without_constants(mod))

    def equal(self, lhs: ir.IRModule, rhs: ir.IRModule) -> bool:
        """Equality of the programs with all constants zero."""
        return _core.structural_equal(_without_constants(lhs), _without_constants(rhs))


def _without_constants(mod: ir.IRModule) -> Any:
    found: list[Any] = []
    _core.visit(mod, lambda node: found.append(node) if isinstance(node, ir.AllocateConst) else None)
    if not found:
        return mod

    def zeros(node: Any) -> Any:
        if not isinstance(node, ir.AllocateConst):
            return node
        data = ir.TensorData(node.data.dtype, node.data.shape, bytes(len(node.data.bytes)))
        return ir.AllocateConst(node.buffer_var, data, node.dtype, node.extents, node.body, node.annotations)

    return _core.rewrite(mod, zeros)


class AnchorBlock(ModuleEquality):
    """By the block with the most work alone: what goes before and after it may differ. Programs without a reduction are
    compared whole, but for constants."""

    name = "anchor-block"

    def hash(self, mod: ir.IRModule) -> str:
        """Of what is seen of the block without looking at its body."""
        block = anchor_block(mod)
        if block is None:
            return IgnoreConstants().hash(mod)
        domains = [(str(axis.dom.extent), str(axis.iter_type)) for axis in block.iter_vars]
        regions = [(region.buffer.dtype, len(region.region)) for region in (*block.reads, *block.writes)]
        return repr((domains, regions, len(block.reads)))

    def equal(self, lhs: ir.IRModule, rhs: ir.IRModule) -> bool:
        """Equality of the blocks."""
        first, second = anchor_block(lhs), anchor_block(rhs)
        if first is None or second is None:
            return first is second and IgnoreConstants().equal(lhs, rhs)
        return _core.structural_equal(first, second, True)


def anchor_block(mod: ir.IRModule) -> Any:
    """The reduction with the most operations; None without one."""
    best: tuple[float, Any] | None = None
    for function in mod.functions.values():
        if isinstance(function, ir.PrimFunc):
            for block, times in _reductions(function.body, 1.0):
                work = times * _operations(block)
                if best is None or work > best[0]:
                    best = work, block
    return None if best is None else best[1]


def _operations(block: Any) -> int:
    count = 0

    def see(node: Any) -> None:
        nonlocal count
        count += isinstance(node, (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Max, ir.Min, ir.Call))

    _core.visit(block.body, see)
    return count + 1


def _reductions(root: Any, times: float) -> list[tuple[Any, float]]:
    """The blocks that begin a reduction, each with how often it runs; loops of unknown length count once."""
    found: list[tuple[Any, float]] = []
    todo = [(root, times)]
    while todo:
        node, often = todo.pop()
        if isinstance(node, ir.For):
            extent = float(node.extent.value) if isinstance(node.extent, ir.IntImm) else 1.0
            todo.append((node.body, often * extent))
        elif isinstance(node, ir.SeqStmt):
            todo += [(each, often) for each in reversed(node.seq)]
        elif isinstance(node, ir.BlockRealize):
            if node.block.init is not None:
                found.append((node.block, often))
            todo.append((node.block.body, often))
        elif isinstance(node, ir.IfThenElse):
            todo += [(each, often) for each in (node.else_case, node.then_case) if each is not None]
        elif isinstance(node, (ir.LetStmt, ir.AttrStmt, ir.Allocate, ir.AllocateConst, ir.DeclBuffer, ir.While)):
            todo.append((node.body, often))
    return found


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
