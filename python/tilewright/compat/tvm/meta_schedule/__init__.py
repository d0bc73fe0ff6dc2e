"""tvm.meta_schedule: tuning in spaces that are functions of a schedule."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule import space_generator, tir_integration
from tilewright.compat.tvm.meta_schedule.tir_integration import tune_tir

__getattr__ = missing("tvm.meta_schedule")

__all__ = ["space_generator", "tir_integration", "tune_tir"]
