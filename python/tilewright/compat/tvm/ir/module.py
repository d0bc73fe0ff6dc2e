"""tvm.ir.module."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.ir import IRModule

__path__: list[str] = []
__getattr__ = missing("tvm.ir.module")

__all__ = ["IRModule"]
