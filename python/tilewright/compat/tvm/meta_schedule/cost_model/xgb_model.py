"""tvm.meta_schedule.cost_model.xgb_model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.cost_model.pack_sum import PackSum, early_stop
from tilewright.cost_model.xgb_model import FeatureGroup, XGBConfig, XGBModel

__all__ = ["FeatureGroup", "PackSum", "XGBConfig", "XGBModel"]


def _get_custom_call_back(
    early_stopping_rounds: int,
    verbose_eval: int,
    fevals: Sequence[Callable[..., Any]],
    evals: Sequence[tuple[Any, str]],
    focused_metric: str = "tr-p-rmse",
    cvfolds: Any = None,
) -> Any:
    """Return an XGBoost callback for early stopping; cross-validation folds are not evaluated."""
    assert cvfolds is None
    return early_stop(early_stopping_rounds, verbose_eval, fevals, evals, focused_metric)
