"""tvm.meta_schedule.runner.config."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.evaluator import EvaluatorConfig
from tilewright.meta_schedule.rpc import RPCConfig

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.runner.config")

__all__ = ["EvaluatorConfig", "RPCConfig"]
