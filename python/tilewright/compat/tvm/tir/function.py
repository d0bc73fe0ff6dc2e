"""tvm.tir.function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed, no_span
from tilewright.compat.tvm.tir.index_map import IndexMap
from tilewright.task.specialize import specialize
from tilewright.tensor_intrin import table

__all__ = ["IndexMap", "PrimFunc", "TensorIntrin"]


class TensorIntrin:
    """A tensor intrinsic."""

    get = staticmethod(table.TensorIntrin.get)

    @staticmethod
    def register(name: str, desc: Any, impl: Any, override: bool = False) -> None:
        """Register an intrinsic; as in TVM, memory behind a pointer without strides may have any layout."""
        table.TensorIntrin.register(name, desc, impl, override, compact=False)


class PrimFunc(metaclass=Renamed):
    """A function."""

    node = _core.PrimFunc

    @staticmethod
    def make(
        params: Any, body: Any, ret_type: Any = None, buffer_map: Any = None, attrs: Any = None, span: Any = None
    ) -> Any:
        """Return the function; a buffer among the parameters gets a handle."""
        no_span(span)
        buffers = dict(buffer_map or {})
        variables = []
        for param in params:
            if isinstance(param, _core.Buffer):
                handle = _core.Var(param.name, "handle")
                buffers[handle] = param
                variables.append(handle)
            else:
                variables.append(param)
        nothing = _core.TupleType([])
        return _core.PrimFunc(variables, buffers, nothing if ret_type is None else ret_type, attrs or {}, body)


def _specialize(self: _core.PrimFunc, param_map: Mapping[Any, Any]) -> _core.PrimFunc:
    """Return the function with parameters and sizes fixed; raise ValueError for values that do not fit."""
    return specialize(self, param_map)


setattr(_core.PrimFunc, "specialize", _specialize)  # noqa: B010
