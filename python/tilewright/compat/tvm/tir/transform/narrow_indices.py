"""tvm.tir.transform.ForceNarrowIndexToInt32: indices, sizes and loops of int64 become int32.

Before                                  After
for i in range(T.int64(16)):            for i in range(16):
    A[i + T.int64(2)] = 1.0                 A[i + 2] = 1.0
"""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.support.changed_nodes import fields_of


class Narrowing:
    """Conversion of nodes to int32, bottom up: a sum of int32 is an int32."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def convert(self, item: Any) -> Any:
        """Return the node, or the container of nodes, with int32 instead of int64."""
        if isinstance(item, list | tuple):
            return [self.convert(part) for part in item]
        if isinstance(item, ir.Var | ir.Buffer):
            if item not in self._made:
                self._made[item] = self._variable(item) if isinstance(item, ir.Var) else self._buffer(item)
            return self._made[item]
        if isinstance(item, ir.IntImm):
            return _core.const(item.value, "int32") if item.dtype == "int64" else item
        if not isinstance(item, _core.Node) or isinstance(item, ir.Op | _core.Type):
            return item
        return self._node(item)

    def _parts(self, node: Any) -> dict[str, Any]:
        return {name: part if name == "annotations" else self.convert(part) for name, part in fields_of(node).items()}

    def _node(self, node: Any) -> Any:
        parts = self._parts(node)
        if isinstance(parts.get("dtype"), str) and isinstance(node, _core.Expr) and parts["dtype"] == "int64":
            parts["dtype"] = "int32"
        if isinstance(node, ir.Cast) and parts["value"].dtype == parts["dtype"]:
            return parts["value"]
        return type(node)(**parts)

    @staticmethod
    def _variable(var: Any) -> Any:
        if var.dtype != "int64":
            return var
        return _core.Var(var.name, "int32", var.is_size)

    def _buffer(self, buffer: Any) -> Any:
        if buffer.dtype == "int64":
            raise ValueError(f"buffer {buffer.name!r} holds int64, which does not become int32")
        return type(buffer)(**self._parts(buffer))


def narrowed(function: Any) -> Any:
    """Return the function with int32 indices."""
    change = Narrowing()
    params = change.convert(function.params)
    buffers = {change.convert(var): change.convert(buffer) for var, buffer in function.buffer_map.items()}
    return ir.PrimFunc(params, buffers, function.ret_type, function.attrs, change.convert(function.body))
