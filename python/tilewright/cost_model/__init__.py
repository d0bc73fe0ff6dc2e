"""Cost models: they rank candidates without measuring them.

- :class:`XGBModel` learns from the features of what was measured: the published model.
- :class:`AnalyticalModel` estimates from what limits a processor, and needs no measurements.
- :class:`ResidualModel` estimates, and learns by how much the estimate is wrong.
- :class:`MLPModel` learns to rank with a network, where PyTorch is installed.
- :class:`RandomModel` ranks at random.

A subclass defines four methods::

    class Shorter(CostModel):
        def load(self, path): ...
        def save(self, path): ...
        def update(self, context, candidates, results): ...
        def predict(self, context, candidates):
            return np.array([-len(c.sch.trace.insts) for c in candidates], "float64")
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

from tilewright._core import AnalyticalModel, CostModel
from tilewright.cost_model.mlp_model import (
    MLPModel,
    SegmentSumMLPConfig,
    SegmentSumMLPTrainer,
    TrainerConfig,
)
from tilewright.cost_model.random_model import RandomModel
from tilewright.cost_model.warm_start import warm_start
from tilewright.cost_model.xgb_model import ResidualModel, XGBConfig, XGBModel
from tilewright.support import limits
from tilewright.support.user_lines import users_level

__all__ = [
    "AnalyticalModel",
    "CostModel",
    "MLPModel",
    "PyCostModel",
    "RandomModel",
    "ResidualModel",
    "SegmentSumMLPConfig",
    "SegmentSumMLPTrainer",
    "TrainerConfig",
    "XGBConfig",
    "XGBModel",
    "create",
    "warm_start",
]

PyCostModel = CostModel

_KINDS: dict[str, Any] = {
    "xgb": XGBModel,
    "mlp": MLPModel,
    "random": RandomModel,
    "analytical": AnalyticalModel,
    "residual": ResidualModel,
}


def create(kind: str, *args: Any, **kwargs: Any) -> CostModel | None:
    """A model by name: "xgb", "mlp", "random", "analytical", "residual"; "none" gives None.

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
