"""tvm.script.parser.core.doc: syntax trees, which are those of Python's ast."""

from __future__ import annotations

import ast
from typing import TypeVar

from tilewright.compat.tvm.script.parser.core.doc_core import *  # noqa: F403
from tilewright.compat.tvm.script.parser.core.doc_core import __all__ as _names

__all__ = [*_names, "from_doc", "to_doc"]

_Tree = TypeVar("_Tree", bound=ast.AST)


def to_doc(node: _Tree) -> _Tree:
    """Return the tree unchanged: Python's tree is what the parser reads."""
    return node


def from_doc(node: _Tree) -> _Tree:
    """Return the tree unchanged: Python's tree is what the parser reads."""
    return node
