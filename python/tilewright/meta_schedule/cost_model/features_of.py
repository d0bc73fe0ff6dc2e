"""What cost models learn from: features of candidates, seconds of results, the name of a program."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright._core import structural_hash

__all__ = ["FAILED", "cost_of", "key_of", "rows_of", "throughput_of"]

#: seconds of what could not be measured
FAILED = 1e10


def rows_of(features: Any) -> NDArray[Any]:
    """What an extractor gave for a candidate, as a matrix of float32."""
    array: NDArray[Any] = np.asarray(features.numpy() if hasattr(features, "numpy") else features, "float32")
    return array


def cost_of(result: Any) -> float:
    """Seconds of a result."""
    return float(np.median([float(s) for s in result.run_secs])) if result.run_secs else FAILED


def throughput_of(costs: NDArray[Any]) -> NDArray[Any]:
    """Of the measurements of one program, relative to the best; 0 for what failed, also where all did."""
    return np.where(costs < FAILED, np.min(costs) / costs, 0).astype(costs.dtype)


def key_of(context: Any) -> str:
    """The name of the program of a task."""
    module = getattr(context, "module", None)
    return "" if module is None else str(structural_hash(module))
