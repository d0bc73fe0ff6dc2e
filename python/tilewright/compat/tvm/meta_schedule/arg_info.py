"""tvm.meta_schedule.arg_info."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.arg_info import ArgInfo, TensorInfo

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.arg_info")

__all__ = ["ArgInfo", "TensorInfo"]
