"""Cost models by name."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

from tilewright._core import AnalyticalModel, CostModel
from tilewright.cost_model.mlp_model import MLPModel
from tilewright.cost_model.random_model import RandomModel
from tilewright.cost_model.xgb_model import ResidualModel, XGBModel
from tilewright.support import limits
from tilewright.support.user_lines import users_level

__all__ = ["create"]

_KINDS: dict[str, Any] = {
    "xgb": XGBModel,
    "mlp": MLPModel,
    "random": RandomModel,
    "analytical": AnalyticalModel,
    "residual": ResidualModel,
}


def create(kind: str, *args: Any, **kwargs: Any) -> CostModel | None:
    """Return a model by name: "xgb", "mlp", "random", "analytical" or "residual"; None for "none".

    Without the package ``xgboost`` the models that learn with it become :class:`AnalyticalModel`, with a warning.
    """
    if kind == "none":
        return None
    made = limits.of_kind("cost model", kind, {**_KINDS, "none": None}, "cost_model/kind")
    if kind in ("xgb", "residual") and importlib.util.find_spec("xgboost") is None:
        warnings.warn(
            "the package xgboost is missing: the analytical model is used instead (pip install xgboost-cpu)",
            stacklevel=users_level(),
        )
        return AnalyticalModel()
    model: CostModel = made(*args, **kwargs)
    return model
