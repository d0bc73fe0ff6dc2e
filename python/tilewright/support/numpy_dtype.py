"""NumPy equivalents of data types."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tilewright.errors import ArgumentError


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return NumPy's dtype for a data type; low-precision ones are from ml_dtypes.

    Raises:
        tilewright.ArgumentError: the data type is a vector type.
    """
    if lanes_of(dtype)[1] > 1:
        raise ArgumentError.of(
            "arguments/numpy-type",
            f"NumPy has no type for {dtype}",
            "give the buffer a dimension more, of scalars: schedule.vectorize and slices make vectors of its accesses",
        )
    if dtype.startswith(("bfloat", "float8", "float4")):
        import ml_dtypes

        low_precision: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype))
        return low_precision
    return np.dtype(dtype)


def lanes_of(dtype: str) -> tuple[str, int]:
    """Return the data type of the lanes, and their number: 1 for a scalar."""
    found = re.fullmatch(r"(.*)x(\d+)", dtype)
    return (found[1], int(found[2])) if found else (dtype, 1)
