"""tvm.arith."""

from __future__ import annotations

from tilewright._core import ConstIntBound, IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, ModularSet
from tilewright.arith import (
    Analyzer,
    IntervalSet,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
)
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.arith")

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "IntervalSet",
    "IterMapLevel",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "detect_iter_map",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "normalize_iter_map_to_expr",
]
