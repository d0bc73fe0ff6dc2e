"""tvm.meta_schedule.cost_model.metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["max_curve"]


def max_curve(trial_scores: Any) -> NDArray[Any]:
    """Return the running maximum of the scores over trials."""
    return np.maximum.accumulate(np.asarray(trial_scores))
