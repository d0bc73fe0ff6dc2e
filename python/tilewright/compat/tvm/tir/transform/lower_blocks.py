"""tvm.tir.transform.LowerInitBlock and LowerOpaqueBlock: blocks become plain statements.

Before                              After LowerInitBlock
with T.block("C"):                  with T.block("C"):
    vi, vk = ...                        vi, vk = ...
    with T.init():                      if vk == 0:
        C[vi] = 0.0                         C[vi] = 0.0
    C[vi] = C[vi] + A[vi, vk]           C[vi] = C[vi] + A[vi, vk]
"""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.alias import as_expr
from tilewright.compat.tvm.tir.transform.statements import with_parts
from tilewright.support.changed_nodes import with_fields


def lower_init(stmt: Any) -> Any:
    """Return the statement with each init moved into the body, under the condition of the first reduction step."""
    stmt = with_parts(stmt, lower_init)
    if not isinstance(stmt, ir.Block) or stmt.init is None:
        return stmt
    first: Any = None
    for axis in stmt.iter_vars:
        if axis.iter_type == _core.IterType.COMM_REDUCE:
            start: Any = axis.dom
            at_start = axis.var == start.min
            first = at_start if first is None else _core.logical_and(first, at_start)
    init = stmt.init if first is None else ir.IfThenElse(first, stmt.init, None)
    return with_fields(stmt, init=None, body=_core.seq([init, stmt.body]))


class OpaqueBlocks:
    """Removal of blocks without axes: loops of one iteration are replaced by their bodies, and thread loops by
    launches."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    def _expression(self, expr: Any) -> Any:
        return _core.substitute(expr, self._values) if self._values else expr

    def statement(self, stmt: Any) -> Any:
        """Return the statement without blocks."""
        if isinstance(stmt, ir.BlockRealize):
            return self._realize(stmt)
        if isinstance(stmt, ir.For):
            return self._loop(stmt)
        return with_parts(stmt, self.statement, self._expression)

    def _realize(self, stmt: Any) -> Any:
        if stmt.block.iter_vars:
            raise ValueError(f"block {stmt.block.name_hint!r} still has axes: run ConvertBlocksToOpaque before")
        block = stmt.block
        body = self.statement(block.body)
        predicate = _core.Analyzer().simplify(self._expression(stmt.predicate))
        if not (isinstance(predicate, ir.IntImm) and predicate.value):
            body = ir.IfThenElse(predicate, body, None)
        for buffer in reversed(block.alloc_buffers):
            shape = _allocated_shape(buffer)
            body = ir.DeclBuffer(buffer, body)
            body = ir.Allocate(buffer.data, buffer.dtype, shape, _core.const(True), body, {})
        return _with_pragmas(block.annotations, body)

    def _loop(self, loop: Any) -> Any:
        analyzer = _core.Analyzer()
        first, extent = (analyzer.simplify(self._expression(end)) for end in (loop.min, loop.extent))
        kept = {key: value for key, value in loop.annotations.items() if not key.startswith("pragma_")}
        body: Any
        unit = isinstance(extent, ir.IntImm) and extent.value == 1
        if loop.kind == ir.ForKind.THREAD_BINDING:
            tag = loop.thread_binding.thread_tag
            axis = ir.IterVar(ir.Range(first, extent), loop.loop_var, _core.IterType.THREAD_INDEX, tag)
            key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
            body = ir.AttrStmt(axis, key, extent, self.statement(loop.body))
        elif unit and not kept:
            self._values[loop.loop_var] = first
            body = self.statement(loop.body)
        else:
            inside = self.statement(loop.body)
            body = ir.For(loop.loop_var, first, extent, loop.kind, loop.thread_binding, kept, inside)
        return _with_pragmas(loop.annotations, body, loop.loop_var)


def _with_pragmas(annotations: Any, body: Any, var: Any = None) -> Any:
    """Return the statement inside attributes that pass annotations on to later passes."""
    for key, value in sorted(annotations.items(), reverse=True):
        if key.startswith("pragma_"):
            given = ir.StringImm(value) if isinstance(value, str) else as_expr(value)
            body = ir.AttrStmt(var if var is not None else _core.const(0), key, given, body)
    return body


def _allocated_shape(buffer: Any) -> list[Any]:
    """Return the allocated extents: strides imply the padding of all dimensions but the first."""
    shape = list(buffer.shape)
    if buffer.strides:
        analyzer = _core.Analyzer()
        for d in range(1, len(shape)):
            shape[d] = analyzer.simplify(_core.floordiv(buffer.strides[d - 1], buffer.strides[d]))
    return shape
