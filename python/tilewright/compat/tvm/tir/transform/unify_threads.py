"""tvm.tir.transform.UnifyThreadBinding: one loop for each axis of threads, around all that the outermost one holds.

Before                                              After
for b in T.thread_binding(4, "blockIdx.x"):         for b in T.thread_binding(4, "blockIdx.x"):
    for j in T.thread_binding(16, "threadIdx.x"):       for t in T.thread_binding(16, "threadIdx.x"):
        A[b * 16 + j] = 1.0                                 A[b * 16 + t] = 1.0
    for k in T.thread_binding(16, "threadIdx.x"):           B[b * 16 + t] = 1.0
        B[b * 16 + k] = 1.0
"""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.tir.transform.statements import with_parts

_KEYS = ("thread_extent", "virtual_thread")


class Threads:
    """Axes of one launch; each has the variable of the first loop that is bound to it."""

    def __init__(self) -> None:
        self._axes: dict[str, tuple[Any, Any]] = {}
        self._values: dict[Any, Any] = {}
        self._launched = False

    def statement(self, stmt: Any) -> Any:
        """Return the statement with one loop for each axis of each launch."""
        bound = _bound(stmt)
        if bound is None:
            return with_parts(stmt, self.statement, self._expression)
        tag, var, dom = bound
        outermost, self._launched = not self._launched, True
        self._unify(tag, var, ir.Range(self._expression(dom.min), self._expression(dom.extent)))
        body = self.statement(stmt.body)
        notes = stmt.annotations if isinstance(stmt, ir.For) else {}
        if notes:
            zero, one = _core.const(0, var.dtype), _core.const(1, var.dtype)
            body = ir.For(_core.Var("var", var.dtype), zero, one, ir.ForKind.SERIAL, None, notes, body)
        if outermost:
            for axis_tag, (axis, domain) in reversed(self._axes.items()):
                thread = ir.IterVar(None, _core.Var("", axis.dtype), _core.IterType.THREAD_INDEX, axis_tag)
                body = ir.For(axis, domain.min, domain.extent, ir.ForKind.THREAD_BINDING, thread, {}, body)
            self._axes, self._launched = {}, False
        return body

    def _expression(self, expr: Any) -> Any:
        return _core.substitute(expr, self._values) if self._values else expr

    def _unify(self, tag: str, var: Any, dom: Any) -> None:
        if tag not in self._axes:
            self._axes[tag] = (_core.Var(tag, var.dtype), dom)
        axis, known = self._axes[tag]
        analyzer = _core.Analyzer()
        if not analyzer.can_prove_equal(dom.extent, known.extent) or not analyzer.can_prove_equal(dom.min, known.min):
            raise ValueError(
                f"ValueError: All loops that are bound to `{tag}` should have the same extent. However, there are two "
                f"loops with extent {known.extent} and {dom.extent}, which are not equal"
            )
        self._values[var] = axis


def _bound(stmt: Any) -> tuple[str, Any, Any] | None:
    """Return (axis, variable, domain) of a loop bound to a thread axis, or of the equivalent attribute; None for
    others."""
    if isinstance(stmt, ir.For) and stmt.kind == ir.ForKind.THREAD_BINDING and stmt.thread_binding is not None:
        return stmt.thread_binding.thread_tag, stmt.loop_var, ir.Range(stmt.min, stmt.extent)
    if isinstance(stmt, ir.AttrStmt) and stmt.attr_key in _KEYS and isinstance(stmt.node, ir.IterVar):
        extent: Any = stmt.value
        axis = stmt.node
        return axis.thread_tag, axis.var, axis.dom or ir.Range(_core.const(0, extent.dtype), extent)
    return None
