"""rfactor as TVM v0.20 has it: not where a condition leaves steps of the reduction out."""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.errors import ScheduleError
from tilewright.support.nodes import nodes_of


def _limited(loop: Any) -> Any:
    """Return a block inside the loop whose condition uses a loop of its reduction; None if there is none."""
    for realize in nodes_of(loop.body, ir.BlockRealize):
        steps = [
            variable
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type == ir.IterType.COMM_REDUCE
            for variable in nodes_of(value, ir.Var)
        ]
        if any(variable.same_as(step) for variable in nodes_of(realize.predicate, ir.Var) for step in steps):
            return realize.block
    return None


def rfactor(self: _core.Schedule, loop: _core.LoopRV, factor_axis: int) -> _core.BlockRV:
    """Factor a reduction; refuse what TVM refuses."""
    if not isinstance(loop, _core.LoopRV):
        return _core.Schedule.rfactor(self, loop, factor_axis)
    node = _core.Schedule.get(self, loop)
    if (block := _limited(node)) is not None:
        error = ScheduleError(f"the condition of block '{block.name_hint}' leaves steps of its reduction out")
        error.code, error.nodes = "rfactor/P8", (node, block)
        raise error
    functions: list[Any] = list(self.mod.functions.values())
    is_sparse = any("sparse_tir_level" in func.attrs for func in functions)
    if is_sparse and isinstance(factor_axis, int):
        factor_axis = min(factor_axis, _rank(node))
    return _core.Schedule.rfactor(self, loop, factor_axis)


def _rank(loop: Any) -> int:
    """Return the number of dimensions of what the block in a loop writes. A sparse buffer has had one for each axis,
    and lowering has made one of a chain of axes: a position behind its dimensions is the last one."""
    return max((len(block.writes[0].region) for block in nodes_of(loop, ir.Block) if block.writes), default=0)
