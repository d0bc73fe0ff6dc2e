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

from typing import TYPE_CHECKING

from tilewright._core import AnalyticalModel, CostModel
from tilewright.support.lazy_names import lazy

if TYPE_CHECKING:
    from tilewright.cost_model.kinds import create
    from tilewright.cost_model.mlp_model import (
        MLPModel,
        SegmentSumMLPConfig,
        SegmentSumMLPTrainer,
        TrainerConfig,
    )
    from tilewright.cost_model.random_model import RandomModel
    from tilewright.cost_model.warm_starts import warm_start
    from tilewright.cost_model.xgb_model import ResidualModel, XGBConfig, XGBModel

#: public name -> the module of this package that defines it
_NAMES = {
    "MLPModel": "mlp_model",
    "SegmentSumMLPConfig": "mlp_model",
    "SegmentSumMLPTrainer": "mlp_model",
    "TrainerConfig": "mlp_model",
    "RandomModel": "random_model",
    "warm_start": "warm_starts",
    "ResidualModel": "xgb_model",
    "XGBConfig": "xgb_model",
    "XGBModel": "xgb_model",
    "create": "kinds",
}

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
__getattr__ = lazy(__name__, _NAMES)
