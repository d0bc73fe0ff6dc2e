"""Copy nodes with some fields changed."""

from __future__ import annotations

from typing import Any, TypeVar

from tilewright import _core

N = TypeVar("N", bound=_core.Node)


def fields_of(node: _core.Node) -> dict[str, object]:
    """Return the fields of a node by name, as its class takes them."""
    kind: Any = type(node)
    return {name: getattr(node, name) for name in kind.__match_args__}


def with_fields(node: N, **changed: object) -> N:
    """Return a node of the same kind with some fields changed."""
    return type(node)(**(fields_of(node) | changed))
