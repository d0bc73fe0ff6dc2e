"""tvm.tir.schedule.transform."""

from __future__ import annotations

from tilewright.auto_tensorize import tile_with_tensor_intrin
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.tir.schedule.transform")

__all__ = ["tile_with_tensor_intrin"]
