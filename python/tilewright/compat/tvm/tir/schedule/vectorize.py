"""vectorize as TVM v0.20 has it: not for loops of reductions, where Tilewright gives each lane a partial result."""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.errors import ScheduleError
from tilewright.support.nodes import nodes_of, uses


def _reduced_by(loop: Any) -> Any:
    """Return a block inside the loop with a reduction axis that the loop drives; None if there is none."""
    for realize in nodes_of(loop.body, ir.BlockRealize):
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            if axis.iter_type == ir.IterType.COMM_REDUCE and uses(value, loop.loop_var):
                return realize.block
    return None


def vectorize(self: _core.Schedule, loop: _core.LoopRV) -> None:
    """Vectorize a loop; refuse what TVM refuses."""
    node = _core.Schedule.get(self, loop) if isinstance(loop, _core.LoopRV) else None
    if node is not None and (block := _reduced_by(node)) is not None:
        error = ScheduleError(f"loop '{node.loop_var.name}' drives a reduction axis of block '{block.name_hint}'")
        error.code, error.nodes = "vectorize/P3", (node, block)
        raise error
    _core.Schedule.vectorize(self, loop)
