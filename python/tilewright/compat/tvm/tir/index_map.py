"""tvm.tir.function.IndexMap: maps of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed, missing
from tilewright.script.tir.intrinsics import index_map

__path__: list[str] = []
__getattr__ = missing("tvm.tir.function")


class IndexMap(metaclass=Renamed):
    """A map of indices."""

    node = _core.IndexMap

    @staticmethod
    def make(initial_indices: Any, final_indices: Any, inverse_index_map: Any = None) -> Any:
        """The map."""
        return _core.IndexMap(initial_indices, final_indices, inverse_index_map)

    @staticmethod
    def from_func(mapping_function: Callable[..., Any], ndim: int | None = None, inverse_index_map: Any = None) -> Any:
        """The map that a function of indices says; `ndim` is needed where it takes any number of them."""
        if ndim is None:
            return index_map(mapping_function, inverse_index_map=inverse_index_map)
        indices = [_core.Var(f"i{n}", _core.PrimType("int32")) for n in range(ndim)]
        final = mapping_function(*indices)
        return _core.IndexMap(indices, list(final) if isinstance(final, list | tuple) else [final], inverse_index_map)
