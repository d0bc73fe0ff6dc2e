"""The nodes of a program, by kind."""

from __future__ import annotations

from typing import Any

from tilewright import _core

__all__ = ["nodes_of", "uses"]


def nodes_of(root: Any, *kinds: type) -> list[Any]:
    """Return all nodes of these kinds in a node, itself included, in pre-order."""
    found: list[Any] = []
    _core.visit(root, lambda node: found.append(node) if isinstance(node, kinds) else None)
    return found


def uses(root: Any, variable: _core.Var) -> bool:
    """Return whether a node contains a variable."""
    return any(each.same_as(variable) for each in nodes_of(root, _core.Var))
