"""Quotients of integers, rounded in three ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright import _core

if TYPE_CHECKING:
    from tilewright._core import Expr, ExprLike


def _quotient(divide: Callable[[ExprLike, ExprLike], Expr], a: ExprLike, b: ExprLike) -> Expr:
    """Return the quotient. Python numbers divided by -1 keep Python's value, which -2**31 / -1 exceeds in int32."""
    if type(a) is int and type(b) is int and b == -1:
        return _core.const(-a)
    return divide(a, b)


def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """Return the quotient of integers, rounded up.

    Args:
        a, b: integers of one type; two Python numbers give a number.

    Returns:
        The quotient, of the type of `a`.
    """
    return _quotient(_core.ceildiv, a, b)


def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """Return the quotient of integers, rounded down.

    Args:
        a, b: integers of one type; two Python numbers give a number.

    Returns:
        The quotient, of the type of `a`.
    """
    return _quotient(_core.floordiv, a, b)


def truncdiv(a: ExprLike, b: ExprLike) -> Expr:
    """Return the quotient of integers, rounded towards zero.

    Args:
        a, b: integers of one type; two Python numbers give a number.

    Returns:
        The quotient, of the type of `a`.
    """
    return _quotient(_core.truncdiv, a, b)


indexdiv = floordiv
