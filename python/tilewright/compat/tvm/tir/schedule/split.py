"""split as TVM v0.20 has it: what T.vscale() may be is known for targets with SVE only."""

from __future__ import annotations

import sys
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.target import current
from tilewright.errors import ScheduleError
from tilewright.support.nodes import nodes_of


def _scalable(factor: Any) -> bool:
    return isinstance(factor, _core.Expr) and any(op.name == "tir.vscale" for op in nodes_of(factor, ir.Op))


def split(
    self: _core.Schedule,
    loop: _core.LoopRV,
    factors: Any,
    preserve_unit_iters: bool = True,
    disable_predication: bool = False,
) -> list[_core.LoopRV]:
    """Split a loop; refuse what TVM refuses."""
    target = current()
    listed = factors if isinstance(factors, list | tuple) else []
    if any(_scalable(factor) for factor in listed) and (target is None or "sve" not in target.features):
        print(
            "Warning: The expression contains scalable values. An attempt to prove by substituting with known values "
            "of vscale was not performed. This proof currently only supports AArch64 SVE targets, but the target was "
            f"{target}",
            file=sys.stderr,
        )
        error = ScheduleError("The product of factors is not larger than or equal to the extent of loop tir.For#0")
        error.code, error.nodes = "split/P5", (_core.Schedule.get(self, loop),)
        raise error
    return _core.Schedule.split(self, loop, factors, preserve_unit_iters, disable_predication)
