"""The blocks of a program."""

from __future__ import annotations

from typing import Any

from tilewright import _core

__all__ = ["blocks_of"]


def blocks_of(node: Any) -> list[_core.Block]:
    """Return all blocks in a node, itself included, in pre-order."""
    found: list[_core.Block] = []
    _core.visit(node, lambda each: found.append(each) if isinstance(each, _core.Block) else None)
    return found
