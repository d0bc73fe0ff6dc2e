"""Maps of indices applied to arrays."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tilewright import ir

_BINARY: dict[type, Any] = {
    ir.Add: np.add,
    ir.Sub: np.subtract,
    ir.Mul: np.multiply,
    ir.FloorDiv: np.floor_divide,
    ir.FloorMod: np.mod,
    ir.Min: np.minimum,
    ir.Max: np.maximum,
}


def _values(e: Any, known: dict[Any, Any]) -> Any:
    """The expression for all points at once."""
    if isinstance(e, ir.IntImm):
        return e.value
    if isinstance(e, ir.Cast):
        return _values(e.value, known)
    if e in known:
        return known[e]
    return _BINARY[type(e)](_values(e.a, known), _values(e.b, known))


def map_array(index_map: ir.IndexMap, array: Any) -> np.ndarray[Any, Any]:
    """The elements of an array in the layout that a map gives them; elements that stand for none are 0.

    Raises:
        tilewright.ArgumentError: the map does not take the indices of the array one to one.
    """
    array = np.asarray(array)
    shape: list[int] = [cast(Any, extent).value for extent in index_map.map_shape(list(array.shape))]
    index_map.non_surjective_inverse(list(array.shape))
    result = np.zeros(shape, array.dtype)
    known = dict(zip(index_map.initial_indices, np.indices(array.shape, sparse=True), strict=True))
    result[tuple(np.broadcast_to(_values(e, known), array.shape) for e in index_map.final_indices)] = array
    return result
