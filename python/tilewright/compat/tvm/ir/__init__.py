"""tvm.ir: what all dialects share."""

from __future__ import annotations

import enum
from collections.abc import Mapping as Map
from collections.abc import Sequence as Array
from typing import Any

from tilewright import _core
from tilewright._core import Expr as BaseExpr
from tilewright._core import Expr as PrimExpr
from tilewright._core import Expr as RelayExpr
from tilewright._core import Func as BaseFunc
from tilewright._core import GlobalVar, PrimType, TupleType, Type
from tilewright.compat.tvm import transform
from tilewright.compat.tvm.alias import Renamed, no_span
from tilewright.compat.tvm.ir import diagnostics, instrument, module
from tilewright.compat.tvm.ir.base import (
    Node,
    assert_structural_equal,
    get_first_structural_mismatch,
    load_json,
    make_node,
    save_json,
    structural_equal,
    structural_hash,
)
from tilewright.compat.tvm.ir.module import IRModule

DictAttrs = Map


class CallingConv(enum.IntEnum):
    """How a function is called."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


__all__ = [
    "Array",
    "BaseExpr",
    "BaseFunc",
    "CallingConv",
    "DictAttrs",
    "GlobalVar",
    "IRModule",
    "Map",
    "Node",
    "Op",
    "PointerType",
    "PrimExpr",
    "PrimType",
    "Range",
    "RelayExpr",
    "TupleType",
    "Type",
    "assert_structural_equal",
    "diagnostics",
    "get_first_structural_mismatch",
    "instrument",
    "load_json",
    "make_node",
    "module",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
]


class PointerType(metaclass=Renamed):
    """The type of a pointer; TVM's empty storage scope is spelled "global"."""

    node = _core.PointerType

    @staticmethod
    def make(element_type: Any, storage_scope: str = "") -> Any:
        """Return the type."""
        return _core.PointerType(element_type, storage_scope or "global")


class Range(metaclass=Renamed):
    """The integers from `begin` to `end`; from 0 when there is one argument."""

    node = _core.Range

    @staticmethod
    def make(begin: Any, end: Any = None, span: Any = None) -> Any:
        """Return the range."""
        no_span(span)
        from tilewright.script.tir.frames import Range as between

        return between(begin, end) if end is not None else between(0, begin)

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any, span: Any = None) -> Any:
        """Return the range with this start and length."""
        no_span(span)
        return _core.Range(min_value, extent)


class Op(metaclass=Renamed):
    """An operator."""

    node = _core.Op
    make = _core.Op

    @staticmethod
    def get(op_name: str) -> Any:
        """Return the operator with this name."""
        return _core.Op(op_name)
