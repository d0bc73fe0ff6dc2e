"""tvm.meta_schedule.cost_model."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed, missing
from tilewright.compat.tvm.meta_schedule.delegation import delegates_to
from tilewright.cost_model import AnalyticalModel, MLPModel, RandomModel, ResidualModel, XGBModel, create

_HERE = "tilewright.compat.tvm.meta_schedule.cost_model"
_MODULES = ("cost_model", "metric", "mlp_model", "random_model", "xgb_model")
_missing = missing("tvm.meta_schedule.cost_model")

__all__ = [
    "AnalyticalModel",
    "CostModel",
    "MLPModel",
    "PyCostModel",
    "RandomModel",
    "ResidualModel",
    "XGBModel",
    "create",
]


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"{_HERE}.{name}") if name in _MODULES else _missing(name)


class CostModel(metaclass=Renamed):
    """A cost model."""

    node = _core.CostModel
    make = _core.CostModel
    create = staticmethod(create)
    CostModelType = Any


@delegates_to(_core.CostModel)
class PyCostModel:
    """The base of cost models in Python, to be decorated with derived_object."""

    def load(self, path: str) -> None:
        """Continue from a file of save()."""
        raise NotImplementedError

    def save(self, path: str) -> None:
        """Write the trained model."""
        raise NotImplementedError

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        """Train on measurements."""
        raise NotImplementedError

    def predict(self, context: Any, candidates: Sequence[Any]) -> Any:
        """Return a score for each candidate."""
        raise NotImplementedError
