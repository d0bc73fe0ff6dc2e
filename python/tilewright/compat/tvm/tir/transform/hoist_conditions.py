"""tvm.tir.transform.HoistIfThenElse: conditions that all iterations of a loop share are asked before it.

Before                              After
for i in range(16):                 for i in range(16):
    for j in range(4):                  if i < n:
        if i < n:                           for j in range(4):
            A[i * 4 + j] = 1.0                  A[i * 4 + j] = 1.0

The condition is all that the loop does: what stands beside it would be doubled.
"""

from __future__ import annotations

from typing import Any

from tilewright import ir
from tilewright.compat.tvm.tir.transform.simplify import reads
from tilewright.compat.tvm.tir.transform.statements import with_parts
from tilewright.support.nodes import uses


def hoisted(stmt: Any) -> Any:
    """Return the statement with conditions before the loops that do not change them."""
    stmt = with_parts(stmt, hoisted)
    return _before_loop(stmt) if isinstance(stmt, ir.For) else stmt


def _before_loop(loop: Any) -> Any:
    def again(body: Any) -> Any:
        return ir.For(loop.loop_var, loop.min, loop.extent, loop.kind, loop.thread_binding, loop.annotations, body)

    inside: list[Any] = []
    outside: list[Any] = []
    body = loop.body
    while isinstance(body, ir.IfThenElse):
        shared = _is_shared(body.condition, loop.loop_var)
        if body.else_case is not None:
            if not shared or inside or outside:
                break
            return ir.IfThenElse(body.condition, again(body.then_case), again(body.else_case))
        (outside if shared else inside).append(body.condition)
        body = body.then_case
    if not outside:
        return loop
    made = again(_below(inside, body))
    return _below(outside, made)


def _below(conditions: list[Any], body: Any) -> Any:
    for condition in reversed(conditions):
        body = ir.IfThenElse(condition, body, None)
    return body


def _is_shared(condition: Any, var: Any) -> bool:
    """Return whether a condition neither uses the variable nor reads memory, which the loop may change."""
    return not reads(condition) and not uses(condition, var)
