"""tvm.script.ir_builder.base: the builder of programs, and what is open in it."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.script.ir_builder import Frame as IRBuilderFrame
from tilewright.script.ir_builder import IRBuilder

__getattr__ = missing("tvm.script.ir_builder.base")

__all__ = ["IRBuilder", "IRBuilderFrame"]
