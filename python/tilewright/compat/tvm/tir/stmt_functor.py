"""tvm.tir.stmt_functor: traversal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core, ir
from tilewright._core import renew_defs, substitute
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.tir.stmt_functor")

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]


def post_order_visit(stmt: Any, fvisit: Callable[[Any], Any]) -> None:
    """Calls the function for each statement and expression, the children first."""
    ir.post_order_visit(stmt, lambda node: fvisit(node) if isinstance(node, _core.Stmt | _core.Expr) else None)


def pre_order_visit(stmt: Any, fvisit: Callable[[Any], bool]) -> None:
    """Calls the function for each statement and expression; the children follow where it returns True."""
    ir.pre_order_visit(stmt, lambda node: fvisit(node) if isinstance(node, _core.Stmt | _core.Expr) else True)


def ir_transform(
    stmt: Any,
    preorder: Callable[[Any], Any] | None,
    postorder: Callable[[Any], Any] | None,
    only_enable: Sequence[str] | None = None,
) -> Any:
    """The statement with nodes replaced after their children; `only_enable` names kinds like "tir.For"."""
    if preorder is not None:
        raise TypeError("Tilewright has no ir_transform with a preorder function yet")
    kinds = None if only_enable is None else {name.removeprefix("tir.") for name in only_enable}
    if postorder is None:
        return stmt
    return _core.rewrite(stmt, lambda node: postorder(node) if kinds is None or type(node).__name__ in kinds else None)
