"""tvm.tir.schedule.trace."""

from __future__ import annotations

from tilewright._core import Trace
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.tir.schedule.trace")

__all__ = ["Trace"]
