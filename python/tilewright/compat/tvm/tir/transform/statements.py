"""Replace the statements directly inside a statement; shared by the passes that are written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.transform import Pass, PassInfo
from tilewright.support.changed_nodes import fields_of

Change = Callable[[Any], Any]


def is_no_op(stmt: Any) -> bool:
    """Return whether a statement is absent, or evaluates a number."""
    return stmt is None or (isinstance(stmt, ir.Evaluate) and isinstance(stmt.value, ir.IntImm))


def in_a_row(statements: list[Any]) -> Any:
    """Return the statements in sequence, without no-ops."""
    kept = [stmt for stmt in statements if not is_no_op(stmt)]
    return (kept[0] if len(kept) == 1 else _core.seq(kept)) if kept else ir.Evaluate(0)


def with_parts(node: Any, statement: Change, expression: Change | None = None) -> Any:
    """Return the node with its direct statements changed, and its expressions if `expression` is not None; the node
    itself if nothing changed."""
    if isinstance(node, ir.SeqStmt):
        made = [statement(part) for part in node.seq]
        same = all(a is b for a, b in zip(made, node.seq, strict=True))
        return node if same else _core.seq(made)

    def change(part: Any) -> Any:
        if isinstance(part, _core.Stmt):
            return statement(part)
        if expression is not None and isinstance(part, _core.Expr):
            return expression(part)
        if expression is not None and isinstance(part, tuple) and part and isinstance(part[0], _core.Expr):
            changed = [expression(item) for item in part]
            return part if all(a is b for a, b in zip(changed, part, strict=True)) else changed
        return part

    parts = fields_of(node)
    new = {name: part if _is_defined(node, name) else change(part) for name, part in parts.items()}
    return node if all(new[name] is parts[name] for name in parts) else type(node)(**new)


def _is_defined(node: Any, name: str) -> bool:
    """Return whether the field defines a variable. Definitions are not rewritten; uses are."""
    return name in ("loop_var", "buffer_var") or (name == "var" and isinstance(node, ir.LetStmt))


def require_module(mod: Any) -> None:
    """Raise TypeError, as published, for what is no module."""
    if not isinstance(mod, ir.Module):
        raise TypeError(f"Expected IRModule, but got {type(mod)}")


def with_functions(mod: Any, change: Change) -> Any:
    """Return the module with each tensor-program function changed; None removes it."""
    made = {
        str(key): change(function) if isinstance(function, ir.PrimFunc) else function
        for key, function in mod.functions.items()
    }
    return ir.Module({key: function for key, function in made.items() if function is not None}, mod.attrs)


def function_pass(name: str, change: Change) -> Pass:
    """Return the pass that changes each tensor-program function of a module; None removes it."""
    return Pass(lambda mod, context: with_functions(mod, change), PassInfo(0, f"tir.{name}"))


def body_pass(name: str, change: Change) -> Pass:
    """Return the pass that changes the body of each function."""
    return function_pass(name, lambda function: function.with_body(change(function.body)))
