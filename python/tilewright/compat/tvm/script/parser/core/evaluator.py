"""tvm.script.parser.core.evaluator: values of expressions."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.script import evaluate

__all__ = ["ExprEvaluator", "eval_expr"]


def eval_expr(parser: None, node: ast.expr | ast.Expression, dict_globals: dict[str, Any] | None) -> Any:
    """The value of an expression where the names mean these values."""
    if parser is not None:
        raise TypeError("Tilewright takes no parser here yet")
    return evaluate(node.body if isinstance(node, ast.Expression) else node, dict_globals)


class ExprEvaluator:
    """Evaluates expressions."""

    @staticmethod
    def eval(parser: None, value_table: dict[str, Any], node: ast.expr | ast.Expression) -> Any:
        """The value of an expression where the names mean these values."""
        return eval_expr(parser, node, value_table)
