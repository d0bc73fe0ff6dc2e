"""tvm.tir.transform.Simplify: simplify expressions, and remove decided conditions; loops stay.

Before                              After
for i in range(16):                 for i in range(16):
    if i < 20:                          A[i] = 1
        A[i * 4 // 4] = 1
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.arith import Analyzer, conjuncts
from tilewright.compat.tvm.tir.transform.statements import in_a_row, is_no_op, with_parts
from tilewright.support.nodes import nodes_of


class Simplifier:
    """Simplify a program top down, assuming inside loops and branches what they imply."""

    def __init__(self) -> None:
        # The second one assumes no equalities, so that variables keep their names below `if i == 5`.
        self._analyzer, self._without_equalities = Analyzer(), Analyzer()
        self._inlined: dict[Any, Any] = {}

    def expression(self, expr: Any) -> Any:
        """Return the simplified expression."""
        if self._inlined:
            expr = _core.substitute(expr, self._inlined)
        return (self._analyzer if expr.dtype == "bool" else self._without_equalities).simplify(expr)

    def statement(self, stmt: Any) -> Any:
        """Return the simplified statement."""
        match stmt:
            case ir.For():
                return self._loop(stmt)
            case ir.IfThenElse():
                return self._branch(stmt)
            case ir.LetStmt():
                return self._let(stmt)
            case ir.AssertStmt():
                return self._assertion(stmt)
            case ir.While():
                condition = self.expression(stmt.condition)
                with self._known(condition):
                    return ir.While(condition, self.statement(stmt.body))
            case ir.BufferStore():
                return self._store(stmt)
            case ir.SeqStmt():
                return in_a_row([self.statement(part) for part in stmt.seq])
            case ir.BlockRealize():
                values = [self.expression(value) for value in stmt.iter_values]
                predicate = self.expression(stmt.predicate)
                with self._known(predicate):
                    return ir.BlockRealize(values, predicate, self._block(stmt.block))
            case ir.AttrStmt() if stmt.attr_key in ("thread_extent", "virtual_thread"):
                axis: Any = stmt.node
                extent: Any = stmt.value
                self._bind(axis.var, axis.dom or ir.Range(0, extent))
        return with_parts(stmt, self.statement, self.expression)

    def _known(self, condition: Any) -> Any:
        """Assume the condition inside a ``with`` statement, if it does not read memory, which may change."""
        scopes = ExitStack()
        for part in conjuncts(condition):
            if not reads(part):
                scopes.enter_context(self._analyzer.constraint_scope(part))
                if not isinstance(part, ir.EQ):
                    scopes.enter_context(self._without_equalities.constraint_scope(part))
        return scopes

    def _bind(self, var: Any, value: Any) -> None:
        self._analyzer.bind(var, value)
        self._without_equalities.bind(var, value)

    def _loop(self, loop: Any) -> Any:
        first, extent = self.expression(loop.min), self.expression(loop.extent)
        self._bind(loop.loop_var, ir.Range(first, extent))
        with self._known(extent > 0):
            body = self.statement(loop.body)
        return ir.For(loop.loop_var, first, extent, loop.kind, loop.thread_binding, loop.annotations, body)

    def _branch(self, stmt: Any) -> Any:
        condition = self.expression(stmt.condition)
        if isinstance(condition, ir.IntImm):
            taken = stmt.then_case if condition.value else stmt.else_case
            return ir.Evaluate(0) if taken is None else self.statement(taken)
        with self._known(condition):
            then_case = self.statement(stmt.then_case)
        else_case = None
        if stmt.else_case is not None:
            with self._known(self._analyzer.simplify(_core.logical_not(condition))):
                else_case = self.statement(stmt.else_case)
        if is_no_op(else_case):
            else_case = None
        return ir.IfThenElse(condition, then_case, else_case)

    def _let(self, stmt: Any) -> Any:
        value = self.expression(stmt.value)
        if value.dtype.startswith(("int", "uint", "bool")) and not reads(value):
            self._inlined[stmt.var] = value
            if not _is_used_by_buffers(stmt.body, stmt.var):
                return self.statement(stmt.body)
        return ir.LetStmt(stmt.var, value, self.statement(stmt.body))

    def _assertion(self, stmt: Any) -> Any:
        condition = self.expression(stmt.condition)
        with self._known(condition):
            body = self.statement(stmt.body)
        return ir.AssertStmt(condition, stmt.message, body)

    def _store(self, stmt: Any) -> Any:
        made = with_parts(stmt, self.statement, self.expression)
        value = made.value
        if isinstance(value, ir.BufferLoad) and value.buffer.same_as(made.buffer):
            pairs = zip(value.indices, made.indices, strict=True)
            if all(self._analyzer.can_prove_equal(a, b) for a, b in pairs):
                return ir.Evaluate(0)
        return made

    def _block(self, block: Any) -> Any:
        for axis in block.iter_vars:
            self._bind(axis.var, axis.dom)
        return with_parts(block, self.statement)


def reads(expr: Any) -> bool:
    """Return whether an expression reads memory, or calls a function that may."""
    return bool(nodes_of(expr, ir.BufferLoad)) or any(_core.has_effect(call) for call in nodes_of(expr, ir.Call))


def _is_used_by_buffers(body: Any, var: Any) -> bool:
    """Return whether the shape, the strides or the offset of a buffer in the statement uses the variable."""
    buffers = nodes_of(body, ir.Buffer)
    parts = (part for buffer in buffers for part in (*buffer.shape, *buffer.strides, buffer.elem_offset))
    return any(part is not None and var in _core.undefined_vars(ir.Evaluate(part)) for part in parts)


def simplified(function: Any) -> Any:
    """Return the function with its body simplified."""
    return function.with_body(Simplifier().statement(function.body))
