"""tvm.tir.stmt_functor: traversal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core, ir

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]


def substitute(node: Any, vmap: Any) -> Any:
    """Return the node with expressions in place of variables."""
    return _core.substitute(node, vmap)


def renew_defs(func: Any) -> Any:
    """Return the function with new variables for all definitions."""
    return _core.renew_defs(func)


def post_order_visit(stmt: Any, fvisit: Callable[[Any], Any]) -> None:
    """Call the function for each statement and expression, children first."""
    ir.post_order_visit(stmt, lambda node: fvisit(node) if isinstance(node, _core.Stmt | _core.Expr) else None)


def pre_order_visit(stmt: Any, fvisit: Callable[[Any], bool]) -> None:
    """Call the function for each statement and expression, then for its children if it returns True."""
    ir.pre_order_visit(stmt, lambda node: fvisit(node) if isinstance(node, _core.Stmt | _core.Expr) else True)


def ir_transform(
    stmt: Any,
    preorder: Callable[[Any], Any] | None,
    postorder: Callable[[Any], Any] | None,
    only_enable: Sequence[str] | None = None,
) -> Any:
    """Return the statement with nodes replaced; `only_enable` lists kinds such as "tir.For".

    What `preorder` replaces it does not look into; `postorder` then sees each node after its children.
    """
    kinds = None if only_enable is None else {name.removeprefix("tir.") for name in only_enable}

    def enabled(node: Any) -> bool:
        return isinstance(node, _core.Stmt | _core.Expr) and (kinds is None or type(node).__name__ in kinds)

    if preorder is not None:
        replaced: dict[Any, Any] = {}

        def see(node: Any) -> bool:
            made = preorder(node) if enabled(node) else None
            if made is not None:
                replaced[node] = made
            return made is None

        ir.pre_order_visit(stmt, see)
        stmt = _core.rewrite(stmt, replaced.get)
    return stmt if postorder is None else _core.rewrite(stmt, lambda node: postorder(node) if enabled(node) else None)
