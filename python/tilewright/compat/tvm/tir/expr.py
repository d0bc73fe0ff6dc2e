"""tvm.tir.expr: nodes of expressions under TVM's signatures."""

from __future__ import annotations

import enum
from typing import Any

from tilewright import _core
from tilewright._core import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Cast,
    CommReducer,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Shuffle,
    StringImm,
    Sub,
)
from tilewright._core import Expr as PrimExpr
from tilewright.compat.tvm.alias import Renamed, as_expr, no_span
from tilewright.script.tir import intrinsics

#: Kinds of expressions, for isinstance().
BinaryOpExpr = Add | Sub | Mul | Div | Mod | FloorDiv | FloorMod | Min | Max
CmpExpr = EQ | NE | LT | LE | GT | GE
LogicalExpr = And | Or | Not
ConstExpr = IntImm | FloatImm | StringImm
PrimExprWithOp = PrimExpr
ExprOp = PrimExpr

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "And",
    "BinaryOpExpr",
    "Broadcast",
    "BufferLoad",
    "Call",
    "CallEffectKind",
    "Cast",
    "CmpExpr",
    "CommReducer",
    "ConstExpr",
    "Div",
    "ExprOp",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "IntImm",
    "IterVar",
    "Let",
    "LogicalExpr",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PrimExpr",
    "PrimExprWithOp",
    "Ramp",
    "Select",
    "Shuffle",
    "SizeVar",
    "StringImm",
    "Sub",
    "Var",
]


def _equal(self: Any, other: Any, span: Any = None) -> Any:
    """Return the condition that both values are equal."""
    no_span(span)
    return _core.EQ(self, as_expr(other, self.dtype))


setattr(PrimExpr, "equal", _equal)  # noqa: B010
setattr(_core.IterVar, "dtype", property(lambda axis: axis.var.dtype))  # noqa: B010


class CallEffectKind(enum.IntEnum):
    """Kinds of effects of a call."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = UpdateState
    SpecialCallArg = 4
    EmbedInfo = 5
    ControlJump = 6


class Var(metaclass=Renamed):
    """A variable."""

    node = _core.Var

    @staticmethod
    def make(name: str, dtype: Any, span: Any = None) -> Any:
        """Return a variable of this type."""
        no_span(span)
        return intrinsics.Var(name, dtype)


class _SizeVarType(Renamed):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _core.Var) and instance.is_size


class SizeVar(metaclass=_SizeVarType):
    """A variable that is not negative."""

    node = _core.Var

    @staticmethod
    def make(name: str, dtype: Any, span: Any = None) -> Any:
        """Return a variable of this type."""
        no_span(span)
        return intrinsics.SizeVar(name, dtype)


class IterVar(metaclass=Renamed):
    """An iteration variable."""

    node = _core.IterVar
    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    DimInfo = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8
    Opaque = 4

    @staticmethod
    def make(dom: Any, var: Any, iter_type: int, thread_tag: str = "", span: Any = None) -> Any:
        """Return an iteration variable over a range or (begin, end)."""
        no_span(span)
        if isinstance(dom, list | tuple):
            from tilewright.script.tir.frames import Range

            dom = Range(*dom)
        if isinstance(var, str):
            var = intrinsics.Var(var, dom.extent.dtype if dom is not None else "int32")
        return _core.IterVar(dom, var, _core.IterType(iter_type), thread_tag)


class Ramp(metaclass=Renamed):
    """A vector base, base + stride, ..."""

    node = _core.Ramp

    @staticmethod
    def make(base: Any, stride: Any, lanes: Any, span: Any = None) -> Any:
        """Return the vector."""
        no_span(span)
        return intrinsics.Ramp(base, stride, lanes)


class Call(metaclass=Renamed):
    """A call of an operator or a function."""

    node = _core.Call

    @staticmethod
    def make(dtype: Any, op: Any, args: Any, span: Any = None) -> Any:
        """Return the call."""
        no_span(span)
        return intrinsics.Call(dtype, op, args)
