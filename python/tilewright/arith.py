"""Reasoning about integers: intervals, residues, simplification, proofs, iteration maps.

>>> from tilewright import arith, ir
>>> i, analyzer = ir.Var("i", "int32"), arith.Analyzer()
>>> analyzer.bind(i, ir.Range(0, 16))
>>> analyzer.const_int_bound(i * 4 + 1)
ConstIntBound[1, 61]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright import ir
from tilewright._core import (
    Analyzer,
    ConstIntBound,
    ConstraintScope,
    Division,
    IntervalSet,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    ModularSet,
    SubspaceDivision,
)
from tilewright._core import detect_iter_map as _detect_iter_map
from tilewright._core import inverse_affine_iter_map as _inverse_affine_iter_map
from tilewright._core import iter_map_simplify as _iter_map_simplify
from tilewright._core import normalize_iter_map_to_expr as _normalize_iter_map_to_expr
from tilewright._core import region_lower_bound as _region_lower_bound
from tilewright._core import region_upper_bound as _region_upper_bound
from tilewright._core import subspace_divide as _subspace_divide
from tilewright.errors import ArgumentError
from tilewright.support.wrong_arguments import explained

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "ConstraintScope",
    "Division",
    "IntervalSet",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "SubspaceDivision",
    "detect_iter_map",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "normalize_iter_map_to_expr",
    "region_lower_bound",
    "region_upper_bound",
    "subspace_divide",
]

Indices = Sequence["ir.ExprLike"]
Inputs = Mapping[ir.Var, ir.Range]


def _level(level: IterMapLevel | str) -> IterMapLevel:
    if isinstance(level, IterMapLevel):
        return level
    names = {
        "bijective": IterMapLevel.Bijective,
        "surjective": IterMapLevel.Surjective,
        "nocheck": IterMapLevel.NoCheck,
    }
    if level not in names:
        raise ArgumentError.of("arith/level", f"check_level is {level!r}; it is one of {', '.join(names)}")
    return names[level]


@explained
def detect_iter_map(
    indices: Indices,
    input_iters: Inputs,
    predicate: ir.ExprLike | None = None,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
    analyzer: Analyzer | None = None,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """Read indices as splits and fusions of the input iterators.

    The predicate, a conjunction of comparisons, restricts the inputs. When the map is not of the required level,
    ``errors`` has the reasons and ``indices`` is empty. Inputs of extent 1 become their value, if trivial iterators are
    to be simplified.
    """
    return _detect_iter_map(
        list(indices), dict(input_iters), predicate, _level(check_level), analyzer, simplify_trivial_iterators
    )


@explained
def region_lower_bound(
    region: Sequence[ir.Range], input_iters: Inputs, predicate: ir.ExprLike | None = None
) -> list[IntervalSet] | None:
    """Return a box that the region certainly covers for all values of the inputs; None if none is known."""
    return _region_lower_bound(list(region), dict(input_iters), predicate)


@explained
def region_upper_bound(
    region: Sequence[ir.Range], input_iters: Inputs, predicate: ir.ExprLike | None = None
) -> list[IntervalSet]:
    """Return a box that contains the region for all values of the inputs."""
    return _region_upper_bound(list(region), dict(input_iters), predicate)


def normalize_iter_map_to_expr(expr: IterSumExpr) -> ir.Expr:
    """Turn an index of a map back into an expression of the input variables."""
    return _normalize_iter_map_to_expr(expr)


@explained
def iter_map_simplify(
    indices: Indices,
    input_iters: Inputs,
    predicate: ir.ExprLike | None = None,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
) -> list[ir.Expr]:
    """Simplify indices through their iteration map, if there is one."""
    return _iter_map_simplify(list(indices), dict(input_iters), predicate, _level(check_level))


@explained
def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Indices) -> dict[ir.Var, ir.Expr]:
    """Express the input variables of a bijective map by the values of its indices.

    Inputs of extent 1 are not in the result. Raises ArgumentError if the numbers of outputs and indices differ.
    """
    return _inverse_affine_iter_map(list(iter_map), list(outputs))


@explained
def subspace_divide(
    bindings: Indices,
    input_iters: Inputs,
    sub_iters: Sequence[ir.Var],
    predicate: ir.ExprLike | None = None,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
) -> SubspaceDivision | None:
    """Divide indices into outer * inner_extent + inner, where inner depends on ``sub_iters`` only; None if they do not.

    ``inner`` includes the value of the index at the start of all loops. The predicate is divided as well; conditions
    that compare both sides are in ``inner_predicate``.
    """
    return _subspace_divide(list(bindings), dict(input_iters), list(sub_iters), predicate, _level(check_level))
