"""Apply index maps to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tilewright import ir
from tilewright.errors import ArgumentError

#: NumPy functions for the binary operators of indices
BINARY: dict[type, Any] = {
    ir.Add: np.add,
    ir.Sub: np.subtract,
    ir.Mul: np.multiply,
    ir.FloorDiv: np.floor_divide,
    ir.FloorMod: np.mod,
    ir.Min: np.minimum,
    ir.Max: np.maximum,
}


def _values(e: Any, known: dict[Any, Any]) -> Any:
    """Evaluate an expression for all points at once."""
    if isinstance(e, ir.IntImm):
        return e.value
    if isinstance(e, ir.Cast):
        return _values(e.value, known)
    if e in known:
        return known[e]
    if type(e) not in BINARY:
        raise ArgumentError.of("index-map/form", f"the index {e} is not known for the elements of an array")
    return BINARY[type(e)](_values(e.a, known), _values(e.b, known))


def map_points(index_map: ir.IndexMap, points: Sequence[Any]) -> tuple[Any, ...]:
    """Return the images of points under the map: one array (or number) for each dimension, before and after."""
    known = dict(zip(index_map.initial_indices, points, strict=True))
    return tuple(_values(e, known) for e in index_map.final_indices)


def _places(index_map: ir.IndexMap, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(np.broadcast_to(e, shape) for e in map_points(index_map, np.indices(shape, sparse=True)))


def map_array(index_map: ir.IndexMap, array: Any, padding: Any = 0) -> np.ndarray[Any, Any]:
    """Return an array in the layout of an index map; positions without an element are filled with `padding`.

    Raises:
        tilewright.ArgumentError: the map is not one to one on the array's indices.
    """
    array = np.asarray(array)
    shape: list[int] = [cast(Any, extent).value for extent in index_map.map_shape(list(array.shape))]
    index_map.non_surjective_inverse(list(array.shape))
    result = np.full(shape, padding, array.dtype)
    result[_places(index_map, array.shape)] = array
    return result


def map_array_back(index_map: ir.IndexMap, array: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the array of the given shape that :func:`map_array` maps to `array`."""
    back: np.ndarray[Any, Any] = array[_places(index_map, tuple(shape))]
    return back
