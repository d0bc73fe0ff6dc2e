"""The nodes of a program, by kind."""

from __future__ import annotations

from typing import Any

from tilewright import _core

__all__ = ["nodes_of"]


def nodes_of(root: Any, *kinds: type) -> list[Any]:
    """Return all nodes of these kinds in a node, itself included, in pre-order."""
    found: list[Any] = []
    _core.visit(root, lambda node: found.append(node) if isinstance(node, kinds) else None)
    return found
