"""tvm.meta_schedule.tune_context."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.tune_context import TuneContext, normalize_module

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.tune_context")

__all__ = ["TuneContext", "_normalize_mod"]

_normalize_mod = normalize_module
