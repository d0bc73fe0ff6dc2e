"""tvm.tir.stmt: nodes of statements under TVM's signatures."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright._core import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BlockRealize,
    BufferRealize,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Evaluate,
    ForKind,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    SeqStmt,
    SparseIteration,
    Stmt,
    While,
)
from tilewright.compat.tvm.alias import Renamed, as_expr, no_span
from tilewright.script.tir.frames import tensor_data

__all__ = [
    "Allocate",
    "AllocateConst",
    "AssertStmt",
    "AttrStmt",
    "Block",
    "BlockRealize",
    "BufferRealize",
    "BufferRegion",
    "BufferStore",
    "DeclBuffer",
    "Evaluate",
    "For",
    "ForKind",
    "IfThenElse",
    "LetStmt",
    "MatchBufferRegion",
    "Prefetch",
    "SeqStmt",
    "SparseIteration",
    "Stmt",
    "While",
    "stmt_list",
    "stmt_seq",
]


class For(metaclass=Renamed):
    """A loop."""

    node = _core.For

    @staticmethod
    def make(
        loop_var: Any,
        min: Any,
        extent: Any,
        kind: Any,
        body: Any,
        thread_binding: Any = None,
        annotations: Any = None,
        span: Any = None,
    ) -> Any:
        """Return the loop; its bounds have the type of its variable."""
        no_span(span)
        first, count = (as_expr(item, loop_var.dtype) for item in (min, extent))
        return _core.For(loop_var, first, count, _core.ForKind(kind), thread_binding, annotations or {}, body)


class Block(metaclass=Renamed):
    """A block."""

    node = _core.Block

    @staticmethod
    def make(
        iter_vars: Any,
        reads: Any,
        writes: Any,
        name_hint: str,
        body: Any,
        init: Any = None,
        alloc_buffers: Any = None,
        match_buffers: Any = None,
        annotations: Any = None,
        span: Any = None,
    ) -> Any:
        """Return the block."""
        no_span(span)
        return _core.Block(
            iter_vars=iter_vars,
            alloc_buffers=alloc_buffers or [],
            match_buffers=match_buffers or [],
            reads=reads,
            writes=writes,
            name_hint=name_hint,
            annotations=annotations or {},
            init=init,
            body=body,
        )


class AllocateConst(metaclass=Renamed):
    """A constant array."""

    node = _core.AllocateConst

    @staticmethod
    def make(
        buffer_var: Any,
        dtype: str,
        extents: Any,
        data_or_idx: Any,
        body: Any,
        annotations: Any = None,
        span: Any = None,
    ) -> Any:
        """Return the array, from data."""
        no_span(span)
        if isinstance(data_or_idx, int):
            raise TypeError("Tilewright has no constants of a module yet: pass the data")
        data = tensor_data(data_or_idx, dtype)
        return _core.AllocateConst(buffer_var, data, dtype, extents, body, annotations or {})


class Prefetch(metaclass=Renamed):
    """A request for a region to be brought into the cache."""

    node = _core.Prefetch

    @staticmethod
    def make(buffer: Any, bounds: Any, span: Any = None) -> Any:
        """Return the prefetch."""
        no_span(span)
        return _core.Prefetch(_core.BufferRegion(buffer, list(bounds)))


def stmt_seq(*args: Any) -> Any:
    """Return the statements in sequence; expressions are evaluated."""
    return _core.seq([item if isinstance(item, _core.Stmt) else _core.Evaluate(item) for item in args])


def stmt_list(stmt: Any) -> list[Any]:
    """Return the statements of a sequence; a list with any other statement."""
    return list(stmt.seq) if isinstance(stmt, _core.SeqStmt) else [stmt]
