"""tvm.tir.function.IndexMap: maps of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed, missing
from tilewright.compat.tvm.nd import array
from tilewright.script.tir import index_maps
from tilewright.task.index_map import map_array

__getattr__ = missing("tvm.tir.function")


class IndexMap(metaclass=Renamed):
    """A map of indices."""

    node = _core.IndexMap
    AXIS_SEPARATOR = index_maps.AXIS_SEPARATOR

    @staticmethod
    def make(initial_indices: Any, final_indices: Any, inverse_index_map: Any = None) -> Any:
        """Return the map."""
        return _core.IndexMap(initial_indices, final_indices, inverse_index_map)

    @staticmethod
    def from_func(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Any = None,
        *,
        index_dtype: str = "int64",
    ) -> Any:
        """Return the map of a function of indices; `ndim` is needed if the function takes any number of them."""
        return index_maps.index_map(
            mapping_function, ndim=ndim, inverse_index_map=inverse_index_map, index_dtype=index_dtype
        )

    @staticmethod
    def from_func_with_separators(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Any = None,
        *,
        index_dtype: str = "int64",
    ) -> Any:
        """Return the map, and the positions of AXIS_SEPARATOR among the results of the function."""
        return index_maps.index_map_with_separators(
            mapping_function, ndim=ndim, inverse_index_map=inverse_index_map, index_dtype=index_dtype
        )


def map_ndarray(self: _core.IndexMap, arr_src: Any) -> Any:
    """Return the array in the layout of the map."""
    return array(map_array(self, arr_src))


setattr(_core.IndexMap, "map_ndarray", map_ndarray)  # noqa: B010
