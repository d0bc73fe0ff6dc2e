"""tvm.tir.ir_builder: programs statement by statement, without TVMScript."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import as_expr
from tilewright.compat.tvm.tir.buffer import decl_buffer
from tilewright.script.tir import intrinsics

__all__ = ["BufferVar", "IRBuilder", "create"]

_KINDS = {
    "serial": _core.ForKind.SERIAL,
    "parallel": _core.ForKind.PARALLEL,
    "vectorize": _core.ForKind.VECTORIZED,
    "unroll": _core.ForKind.UNROLLED,
}


class BufferVar:
    """A buffer of a program that is being built: reading it gives an expression, writing to it adds a statement."""

    def __init__(self, builder: IRBuilder, buffer: Any, content_type: str) -> None:
        self._builder, self._buffer, self._content_type = builder, buffer, content_type

    def asobject(self) -> Any:
        """Return the pointer to the memory."""
        return self._buffer.data

    def __as_expr__(self) -> Any:
        return self._buffer.data

    @property
    def dtype(self) -> str:
        """Return the type of an element."""
        return self._content_type

    def _indices(self, index: Any) -> list[Any]:
        """Return an index for each dimension; one index into several dimensions counts elements, the last one
        fastest."""
        indices = list(index) if isinstance(index, list | tuple) else [index]
        shape = self._buffer.shape
        if len(indices) == len(shape):
            return [as_expr(i) for i in indices]
        if len(indices) != 1:
            raise IndexError(f"{self._buffer.name} has {len(shape)} dimensions, and is indexed by {len(indices)}")
        rest, split = as_expr(indices[0]), []
        for extent in reversed(shape[1:]):
            split.append(_core.floormod(rest, extent))
            rest = _core.floordiv(rest, extent)
        return [rest, *reversed(split)]

    def __getitem__(self, index: Any) -> Any:
        return _core.BufferLoad(self._buffer, self._indices(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        value = as_expr(value, None if isinstance(value, _core.Expr) else self._content_type)
        element = value.dtype.split("x")[0]
        if element != self._content_type:
            raise ValueError(f"a {value.dtype} is stored to {self._buffer.name}, which holds {self._content_type}")
        self._builder.emit(_core.BufferStore(self._buffer, value, self._indices(index)))


class IRBuilder:
    """Builder of statements in order; a ``with`` statement encloses the body of a loop or scope."""

    def __init__(self) -> None:
        self._open: list[list[Any]] = [[]]
        self.nidx = 0

    def emit(self, stmt: Any) -> None:
        """Add a statement, an expression to be evaluated, or a function that wraps all following statements."""
        self._open[-1].append(_core.Evaluate(stmt) if isinstance(stmt, _core.Expr) else stmt)

    def _close(self) -> Any:
        """Close the innermost body and return its statements, each wrapper around those that follow it."""
        statements: list[Any] = []
        for item in reversed(self._open.pop()):
            if isinstance(item, _core.Stmt):
                statements.insert(0, item)
            else:
                statements = [item(_joined(statements))]
        return _joined(statements)

    @contextmanager
    def _body(self, around: Callable[[Any], Any], value: Any = None) -> Iterator[Any]:
        self._open.append([])
        yield value
        self.emit(around(self._close()))

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """Give the following statements an attribute."""
        if isinstance(node, str):
            node = _core.StringImm(node)
        if isinstance(value, str):
            value = _core.StringImm(value)
        self.emit(lambda body: _core.AttrStmt(node, attr_key, as_expr(value), body))

    def for_range(self, begin: Any, end: Any, name: str = "i", dtype: str | None = None, kind: str = "serial") -> Any:
        """Open a loop from begin to end, exclusive; the ``with`` statement yields its variable."""
        if kind not in _KINDS:
            raise ValueError(f"a loop is {', '.join(_KINDS)}, not {kind}")
        if name == "i":
            name = chr(ord(name) + self.nidx) if self.nidx < 3 else f"{name}_{self.nidx - 3}"
            self.nidx += 1
        if dtype is None:
            dtypes = {bound.dtype for bound in (begin, end) if isinstance(bound, _core.Expr)}
            dtype = "int64" if "int64" in dtypes else "int32"
        variable: Any = intrinsics.Var(name, dtype)
        first, last = as_expr(begin, dtype), as_expr(end, dtype)
        extent = (
            last if isinstance(first, _core.IntImm) and first.value == 0 else _core.Analyzer().simplify(last - first)
        )
        return self._body(lambda body: _core.For(variable, first, extent, _KINDS[kind], None, {}, body), variable)

    def while_loop(self, condition: Any) -> Any:
        """Open a loop that runs while the condition holds."""
        return self._body(lambda body: _core.While(condition, body))

    def if_scope(self, cond: Any) -> Any:
        """Open the branch for a true condition."""
        return self._body(lambda body: _core.IfThenElse(cond, body, None))

    def else_scope(self) -> Any:
        """Open the branch for a false condition of the `if_scope` just before."""
        before = self._open[-1]
        if not before or not isinstance(before[-1], _core.IfThenElse) or before[-1].else_case is not None:
            raise RuntimeError("else_scope can only follow an if_scope")
        branch = before.pop()
        return self._body(lambda body: _core.IfThenElse(branch.condition, branch.then_case, body))

    def new_scope(self) -> Any:
        """Open a body of its own for declarations."""
        return self._body(lambda body: body)

    def let(self, var_name: str, value: Any) -> Any:
        """Return the variable that stands for the value in the following statements."""
        value = as_expr(value)
        variable: Any = intrinsics.Var(var_name, value.dtype)
        self.emit(lambda body: _core.LetStmt(variable, value, body))
        return variable

    def allocate(
        self, dtype: Any, shape: Any, name: str = "buf", axis_separators: Any = None, scope: str = ""
    ) -> BufferVar:
        """Allocate memory for the following statements."""
        shape = list(shape) if isinstance(shape, list | tuple) else [shape]
        pointer = _core.PointerType(_core.PrimType(str(dtype)), scope or "global")
        data: Any = intrinsics.Var(name, pointer)
        buffer = decl_buffer(shape, dtype, name, data=data, scope=scope, axis_separators=axis_separators)
        extents = [as_expr(extent) for extent in shape]
        self.emit(lambda body: _core.Allocate(data, str(dtype), extents, _core.const(True), body))
        return BufferVar(self, buffer, str(dtype))

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """Return a pointer to memory that the program does not allocate itself."""
        return BufferVar(self, decl_buffer([1], content_type, name, scope=scope), content_type)

    def buffer_ptr(self, buf: Any) -> BufferVar:
        """Return a view of a buffer that can be written to while building."""
        return BufferVar(self, buf, buf.dtype)

    def likely(self, expr: Any) -> Any:
        """Return the condition, marked as likely."""
        return intrinsics.INTRINSICS["likely"](expr)

    def get(self) -> Any:
        """Return the program; afterwards, nothing can be added.

        Raises:
            RuntimeError: a with statement is still open.
        """
        if len(self._open) != 1:
            raise RuntimeError("cannot call get inside construction scope")
        return self._close()


def _joined(statements: list[Any]) -> Any:
    if not statements:
        return _core.Evaluate(0)
    return statements[0] if len(statements) == 1 else _core.seq(statements)


def create() -> IRBuilder:
    """Return a builder without statements."""
    return IRBuilder()
