"""Quotients of integers, rounded in three ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright import _core

if TYPE_CHECKING:
    from tilewright._core import Expr, ExprLike


def _of_numbers(quotient: Expr, a: ExprLike, b: ExprLike) -> Expr:
    """Return the quotient. Python numbers divided by -1 keep Python's value, which -2**31 / -1 exceeds in int32."""
    if type(a) is int and type(b) is int and b == -1 and not isinstance(quotient, _core.IntImm):
        return _core.const(-a)
    return quotient


def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """The quotient of integers, rounded up.

    Args:
        a, b: integers of one type; two Python numbers give a number.

    Returns:
        The quotient, of the type of `a`.
    """
    return _of_numbers(_core.ceildiv(a, b), a, b)


def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """The quotient of integers, rounded down.

    Args:
        a, b: integers of one type; two Python numbers give a number.

    Returns:
        The quotient, of the type of `a`.
    """
    return _of_numbers(_core.floordiv(a, b), a, b)


def truncdiv(a: ExprLike, b: ExprLike) -> Expr:
    """The quotient of integers, rounded towards zero.

    Args:
        a, b: integers of one type; two Python numbers give a number.

    Returns:
        The quotient, of the type of `a`.
    """
    return _of_numbers(_core.truncdiv(a, b), a, b)


indexdiv = floordiv
