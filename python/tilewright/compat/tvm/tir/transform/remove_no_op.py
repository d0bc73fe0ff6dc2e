"""tvm.tir.transform.RemoveNoOp: what changes nothing goes, and what is left empty by that.

Before                              After
for i in range(16):                 for i in range(16):
    if i < n:                           if not i < n:
        T.evaluate(A[i])                    A[i] = 1
    else:
        A[i] = 1
"""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.arith import Analyzer
from tilewright.compat.tvm.tir.transform.statements import in_a_row, is_no_op, with_parts
from tilewright.support.nodes import uses


def _evaluated(*values: Any) -> Any:
    """Return a statement that evaluates those values whose calls have an effect."""
    return in_a_row([ir.Evaluate(value) for value in values if _core.has_effect(value)])


class NoOps:
    """Removal of no-ops, bottom up. The ranges of loops show which stores write back the value that they loaded."""

    def __init__(self) -> None:
        self._analyzer = Analyzer()

    def statement(self, stmt: Any) -> Any:
        """Return the statement without no-ops; Evaluate(0) if nothing remains."""
        if isinstance(stmt, ir.SeqStmt):
            return in_a_row([self.statement(part) for part in stmt.seq])
        if isinstance(stmt, ir.For):
            if self._analyzer.can_prove(stmt.extent <= 0):
                return ir.Evaluate(0)
            self._analyzer.bind(stmt.loop_var, ir.Range(stmt.min, stmt.extent))
        stmt = with_parts(stmt, self.statement)
        match stmt:
            case ir.For() if is_no_op(stmt.body):
                return _evaluated(stmt.min, stmt.extent)
            case ir.IfThenElse():
                return self._branch(stmt)
            case ir.LetStmt() if is_no_op(stmt.body):
                return _evaluated(stmt.value)
            case ir.LetStmt() if not uses(stmt.body, stmt.var):
                return in_a_row([_evaluated(stmt.value), stmt.body])
            case ir.AttrStmt() if stmt.attr_key == "pragma_debug_skip_region":
                return ir.Evaluate(0)
            case ir.AttrStmt() if is_no_op(stmt.body):
                return _evaluated(stmt.value) if isinstance(stmt.value, _core.Expr) else ir.Evaluate(0)
            case ir.Allocate() if is_no_op(stmt.body):
                return _evaluated(*stmt.extents)
            case ir.DeclBuffer() if is_no_op(stmt.body):
                return ir.Evaluate(0)
            case ir.Evaluate() if not _core.has_effect(stmt.value):
                return ir.Evaluate(0)
            case ir.BufferStore() if self._is_redundant_store(stmt):
                return _evaluated(*stmt.indices)
        return stmt

    def _branch(self, stmt: Any) -> Any:
        if is_no_op(stmt.then_case) and is_no_op(stmt.else_case):
            return _evaluated(stmt.condition)
        if is_no_op(stmt.then_case):
            return ir.IfThenElse(_core.logical_not(stmt.condition), stmt.else_case, None)
        if stmt.else_case is not None and is_no_op(stmt.else_case):
            return ir.IfThenElse(stmt.condition, stmt.then_case, None)
        return stmt

    def _is_redundant_store(self, stmt: Any) -> bool:
        value = self._analyzer.simplify(stmt.value)
        if not isinstance(value, ir.BufferLoad) or not value.buffer.same_as(stmt.buffer):
            return False
        return all(self._analyzer.can_prove_equal(a, b) for a, b in zip(value.indices, stmt.indices, strict=True))


def without_no_ops(function: Any) -> Any:
    """Return the function without no-ops."""
    return function.with_body(NoOps().statement(function.body))
