"""reorder as TVM v0.20 has it: only above blocks whose axes are sums of splits of the loops."""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.errors import ScheduleError
from tilewright.support.nodes import nodes_of


def _outermost(loops: list[Any]) -> Any:
    """Return the loop that contains all the others; None if there is none."""
    for loop in loops:
        inside = nodes_of(loop, ir.For)
        if all(any(node.same_as(other) for node in inside) for other in loops):
            return loop
    return None


def _skips_values(total: Any) -> bool:
    """Return whether a sum of splits skips values between its minimum and its maximum; True if constants do not show
    it."""
    steps = [(term.scale, term.extent) for term in total.args]
    if len(steps) == 1:
        return not _core.structural_equal(steps[0][0], ir.IntImm(steps[0][0].dtype, 1))
    if not all(isinstance(n, ir.IntImm) for step in steps for n in step):
        return True
    reached = 1
    for scale, extent in sorted((abs(scale.value), extent.value) for scale, extent in steps):
        if scale > reached:
            return True
        reached += scale * (extent - 1)
    return False


def _about(condition: Any, loops: dict[Any, Any]) -> Any:
    """Return the part of a condition that depends only on these loops; outer loops do not change its result."""
    if isinstance(condition, ir.And):
        a, b = _about(condition.a, loops), _about(condition.b, loops)
        return a if b is None else b if a is None else ir.And(a, b)
    return condition if all(any(v.same_as(loop) for loop in loops) for v in nodes_of(condition, ir.Var)) else None


def _is_affine(realize: Any, loops: dict[Any, Any]) -> bool:
    """Return whether the axes are sums of splits of the loops without skipped values; like TVM, overlaps are
    accepted."""
    predicate = _about(realize.predicate, loops)
    predicate = ir.IntImm("bool", 1) if predicate is None else predicate
    for level in (_core.IterMapLevel.Surjective, _core.IterMapLevel.NoCheck):
        found = _core.detect_iter_map(list(realize.iter_values), loops, predicate, level)
        if not found.errors:
            return not any(_skips_values(total) for total in found.indices)
        if not isinstance(predicate, ir.IntImm):
            return False
    return False


def _not_affine(statement: Any, loops: dict[Any, Any]) -> Any:
    """Return a block inside `statement` whose axes are not sums of splits of the loops, without blocks inside blocks;
    None if there is none."""
    if isinstance(statement, ir.For):
        return _not_affine(statement.body, {**loops, statement.loop_var: ir.Range(statement.min, statement.extent)})
    if isinstance(statement, ir.SeqStmt):
        return next((found for s in statement.seq if (found := _not_affine(s, loops)) is not None), None)
    if isinstance(statement, ir.BlockRealize):
        return None if _is_affine(statement, loops) else statement.block
    return None


def reorder(self: _core.Schedule, *ordered_loops: _core.LoopRV) -> None:
    """Reorder loops; refuse what TVM refuses."""
    loops = [_core.Schedule.get(self, loop) for loop in ordered_loops if isinstance(loop, _core.LoopRV)]
    top = _outermost(loops) if len(loops) == len(ordered_loops) else None
    if top is not None and (block := _not_affine(top, {})) is not None:
        error = ScheduleError(f"the axes of block '{block.name_hint}' are not an affine function of the loops")
        error.code, error.nodes = "reorder/P4", (block, top)
        raise error
    _core.Schedule.reorder(self, *ordered_loops)
