"""NumPy's types for ours."""

from __future__ import annotations

from typing import Any

import numpy as np


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """NumPy's dtype for one of ours; the narrow floats are ml_dtypes'."""
    if dtype.startswith(("bfloat", "float8", "float4")):
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, dtype))
        return narrow
    return np.dtype(dtype)
