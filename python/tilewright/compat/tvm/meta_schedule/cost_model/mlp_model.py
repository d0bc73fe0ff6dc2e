"""tvm.meta_schedule.cost_model.mlp_model."""

from __future__ import annotations

from tilewright.meta_schedule.cost_model.mlp_model import (
    MLPModel,
    SegmentSumMLPConfig,
    SegmentSumMLPTrainer,
    TrainerConfig,
)

__all__ = ["MLPModel", "SegmentSumMLPConfig", "SegmentSumMLPTrainer", "TrainerConfig"]
