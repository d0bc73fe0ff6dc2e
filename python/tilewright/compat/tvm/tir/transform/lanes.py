"""Branches in vectorized loops, which TVM goes through lane by lane.

Before                              After
for i in T.vectorized(4):           for i in T.vectorized(4):
    A[i] = 1.0                          A[i] = 1.0
    if i < n:                       for i_s in range(4):
        B[i] = 2.0                      if i_s < n:
                                            B[i_s] = 2.0
"""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.tir.transform.statements import with_parts
from tilewright.support.nodes import nodes_of


def branches_lane_by_lane(stmt: Any) -> Any:
    """Return the statement with vectorized loops distributed over the parts without branches on their variables."""
    stmt = with_parts(stmt, branches_lane_by_lane)
    if isinstance(stmt, ir.For) and stmt.kind == ir.ForKind.VECTORIZED and _branches(stmt.body, stmt.loop_var):
        return _distributed(stmt, stmt.body)
    return stmt


def _distributed(loop: Any, stmt: Any) -> Any:
    """Distribute the loop over the parts of the statement; its iterations are independent."""
    var = loop.loop_var
    if not _branches(stmt, var):
        return ir.For(var, loop.min, loop.extent, loop.kind, None, loop.annotations, stmt)
    if isinstance(stmt, ir.SeqStmt) or (isinstance(stmt, ir.For) and not _uses(stmt, var)):
        return with_parts(stmt, lambda part: _distributed(loop, part))
    each = _core.Var(f"{var.name}_s", var.dtype)
    made: Any = _core.substitute(stmt, {var: each})
    return ir.For(each, loop.min, loop.extent, ir.ForKind.SERIAL, None, {}, made)


def _uses(loop: Any, var: Any) -> bool:
    """Return whether the bounds of a loop use the variable."""
    return any(var in _core.undefined_vars(ir.Evaluate(end)) for end in (loop.min, loop.extent))


def _branches(stmt: Any, var: Any) -> bool:
    """Return whether a branch inside the statement depends on the variable."""
    branches = nodes_of(stmt, ir.IfThenElse)
    return any(var in _core.undefined_vars(ir.Evaluate(branch.condition)) for branch in branches)
