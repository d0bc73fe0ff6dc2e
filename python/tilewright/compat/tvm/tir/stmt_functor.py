"""tvm.tir.stmt_functor: traversal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core, ir

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]


def substitute(node: Any, vmap: Any) -> Any:
    """The node with expressions in place of variables."""
    return _core.substitute(node, vmap)


def renew_defs(func: Any) -> Any:
    """The function with variables of its own wherever it defines one."""
    return _core.renew_defs(func)


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
    """The statement with nodes replaced; `only_enable` names kinds like "tir.For".

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
