"""Nodes of the intermediate representation, and functions on them.

Every node class takes its fields as arguments, has them as attributes and in ``__match_args__`` (so ``match`` works),
and is immutable. ``==`` on expressions builds a comparison; use :func:`structural_equal` to compare programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright import _core
from tilewright._core import *  # noqa: F403
from tilewright._core import Expr, Node, from_json, to_json
from tilewright._core import Module as IRModule

__all__ = [name for name in dir(_core) if not name.startswith("_")] + ["IRModule", "load_json", "save_json"]

if not TYPE_CHECKING:  # the stub of _core has it, for the signatures there
    #: What functions take where an expression is meant; a number becomes a constant of the type that fits.
    ExprLike = Expr | int | float | bool


def save_json(node: Node) -> str:
    """The node as JSON text; shared variables stay shared when it is read back."""
    return to_json(node)


def load_json(text: str) -> Node:
    """The node that :func:`save_json` wrote.

    Raises:
        tilewright.ScriptError: the text is not IR in JSON form.
    """
    return from_json(text)
