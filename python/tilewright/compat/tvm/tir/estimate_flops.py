"""Count the arithmetic operations of a program as TVM v0.20 does: without indices, comparisons and calls."""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.arith import Analyzer, ConstIntBound

_BINARY = ir.Add | ir.Sub | ir.Mul | ir.Div | ir.Mod | ir.FloorDiv | ir.FloorMod | ir.Min | ir.Max
_NOT_COUNTED = ir.EQ | ir.NE | ir.LT | ir.LE | ir.GT | ir.GE | ir.BufferLoad

#: number of operations by data type; of two branches, the maximum counts for each type
Counts = dict[str, float]


class FlopEstimator:
    """Count the operations of statements; loops without a bound on their iterations count as one iteration."""

    def __init__(self) -> None:
        self._analyzer = Analyzer()

    def count(self, node: Any) -> Counts:
        """Return the operations of a statement or an expression, by data type."""
        if node is None or isinstance(node, _NOT_COUNTED):
            return {}
        if isinstance(node, _BINARY):
            return _sum(self.count(node.a), self.count(node.b), {node.dtype: 1.0})
        match node:
            case ir.For():
                return self._loop(node)
            case ir.Select(condition, chosen, other) | ir.IfThenElse(condition, chosen, other):
                return _sum(self.count(condition), _largest(self.count(chosen), self.count(other)))
            case ir.BufferStore(value=value):
                return self.count(value)
            case ir.BlockRealize(block=block):
                return self.count(block.body)
            case ir.Call(args=args):
                return _sum(*(self.count(arg) for arg in args if isinstance(arg, _core.Expr)))
            case ir.SeqStmt(seq=statements):
                return _sum(*(self.count(each) for each in statements))
        parts = (getattr(node, name, None) for name in ("a", "b", "value", "init", "body"))
        return _sum(*(self.count(part) for part in parts if isinstance(part, _core.Expr | _core.Stmt)))

    def _loop(self, loop: Any) -> Counts:
        self._analyzer.bind(loop.loop_var, ir.Range(loop.min, loop.extent), allow_override=True)
        most = self._analyzer.const_int_bound(loop.extent).max_value
        largest: Any = _core.max_value(loop.extent.dtype)
        unknown = most >= min(ConstIntBound.POS_INF, largest.value)
        return {dtype: (1 if unknown else most) * count for dtype, count in self.count(loop.body).items()}


def _sum(*counts: Counts) -> Counts:
    total: Counts = {}
    for each in counts:
        for dtype, count in each.items():
            total[dtype] = total.get(dtype, 0.0) + count
    return total


def _largest(one: Counts, other: Counts) -> Counts:
    return {dtype: max(one.get(dtype, 0.0), other.get(dtype, 0.0)) for dtype in {*one, *other}}


def estimate_tir_flops(stmt_or_mod: Any) -> float:
    """Return the number of arithmetic operations of a statement or of the functions of a module. The attribute
    "estimated_flops" of a function overrides the count.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(stmt_or_mod, ir.Module):
        functions = [func for func in stmt_or_mod.functions.values() if isinstance(func, ir.PrimFunc)]
        return float(sum(estimate_tir_flops(func) for func in functions))
    if isinstance(stmt_or_mod, ir.PrimFunc):
        known = stmt_or_mod.attrs.get("estimated_flops")
        return estimate_tir_flops(stmt_or_mod.body) if known is None else float(known)
    if not isinstance(stmt_or_mod, _core.Stmt):
        raise TypeError(f"flops are those of a statement or a module, not of a {type(stmt_or_mod).__name__}")
    return float(sum(FlopEstimator().count(stmt_or_mod).values()))
