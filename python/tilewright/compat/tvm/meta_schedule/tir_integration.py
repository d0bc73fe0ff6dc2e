"""tvm.meta_schedule.tir_integration."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.tir_integration import compile_tir, tune_tir

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.tir_integration")

__all__ = ["compile_tir", "tune_tir"]
