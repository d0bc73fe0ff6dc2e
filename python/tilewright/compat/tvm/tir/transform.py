"""tvm.tir.transform: passes over programs, as far as tests of schedules use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.tir.transform")

__all__ = ["Simplify"]


def _simplified(function: Any) -> Any:
    """With all integer expressions of loops and blocks in their shortest form, as the extents of the loops allow."""
    analyzer = _core.Analyzer()

    def bind(node: Any) -> None:
        if isinstance(node, ir.For):
            analyzer.bind(node.loop_var, ir.Range(node.min, node.extent))

    _core.visit(function, bind)

    def simplify(node: Any) -> Any:
        if isinstance(node, ir.BlockRealize):
            values = [analyzer.simplify(value) for value in node.iter_values]
            return ir.BlockRealize(values, analyzer.simplify(node.predicate), node.block)
        return node

    return _core.rewrite(function, simplify)


def Simplify() -> Callable[[ir.IRModule], ir.IRModule]:
    """Makes integer expressions shorter."""

    def run(module: ir.IRModule) -> ir.IRModule:
        return ir.IRModule({name: _simplified(function) for name, function in module.functions.items()})

    return run
