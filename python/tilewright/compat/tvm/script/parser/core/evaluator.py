"""tvm.script.parser.core.evaluator: values of expressions."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.script import evaluate

__all__ = ["ExprEvaluator", "eval_assign", "eval_expr"]


def eval_expr(parser: None, node: ast.expr | ast.Expression, dict_globals: dict[str, Any] | None) -> Any:
    """Return the value of an expression, with these values for its names."""
    if parser is not None:
        raise TypeError("Tilewright takes no parser here yet")
    return evaluate(node.body if isinstance(node, ast.Expression) else node, dict_globals)


def eval_assign(parser: None, target: ast.expr, source: Any) -> dict[str, Any]:
    """Assign a value to a target such as ``a, (b, *c)``; return the value of each name in it."""
    if parser is not None:
        raise TypeError("Tilewright takes no parser here yet")
    value = ast.Name("__value__", ast.Load())
    program = ast.fix_missing_locations(ast.Module([ast.Assign([target], value)], []))
    names = {"__value__": source}
    exec(compile(program, "<assignment>", "exec"), {}, names)
    del names["__value__"]
    return names


class ExprEvaluator:
    """Evaluator of expressions."""

    @staticmethod
    def eval(parser: None, value_table: dict[str, Any], node: ast.expr | ast.Expression) -> Any:
        """Return the value of an expression, with these values for its names."""
        return eval_expr(parser, node, value_table)
