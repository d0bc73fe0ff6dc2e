"""Nodes of the intermediate representation, and functions on them.

Every node class takes its fields as arguments, has them as attributes and in ``__match_args__`` (so ``match`` works),
and is immutable. ``==`` on expressions builds a comparison; use :func:`structural_equal` to compare programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright._core import *  # noqa: F403
from tilewright._core import Expr, Node, from_json, script_diff, structural_mismatch, to_json
from tilewright._core import Module as IRModule
from tilewright.errors import ArgumentError
from tilewright.support.wrong_arguments import explained

__all__ = [
    *(name for name in dir(_core) if not name.startswith("_")),
    "IRModule",
    "assert_structural_equal",
    "load_json",
    "save_json",
]

if not TYPE_CHECKING:  # the stub of _core has it, for the signatures there
    #: arguments that functions accept as expressions; a number becomes a constant of the matching data type
    ExprLike = Expr | int | float | bool


def save_json(node: Node) -> str:
    """Return the node as JSON text; shared variables are still shared after reading it."""
    return to_json(node)


def load_json(text: str) -> Node:
    """Return the node from text of :func:`save_json`.

    Raises:
        tilewright.ScriptError: the text is not IR in JSON form.
    """
    return from_json(text)


@explained
def assert_structural_equal(lhs: Node, rhs: Node, map_free_vars: bool = False) -> None:
    """Compare two programs up to the names of what they define.

    Args:
        lhs: a program.
        rhs: the program that should be the same.
        map_free_vars: whether free variables match by their first occurrence instead of by identity.

    Raises:
        tilewright.ArgumentError: the programs differ; the message has the location and the differing lines of the
            scripts.
    """
    found: Any = structural_mismatch(lhs, rhs, map_free_vars)
    if found is None:
        return
    path, reason, left, right = found
    sides = [
        "None" if side is None else root.script(obj_to_underline=[side], num_context_lines=1)
        for root, side in ((lhs, left), (rhs, right))
    ]
    message = f"the programs differ at {path}: {reason}\nleft:\n{sides[0]}\nright:\n{sides[1]}"
    lines = script_diff(lhs, rhs)
    error = ArgumentError(f"[ir/not-equal] {message}\ndifference:\n{lines}" if lines else f"[ir/not-equal] {message}")
    error.code = "ir/not-equal"
    error.message = message
    raise error
