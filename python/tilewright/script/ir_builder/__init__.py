"""Programs built by calls instead of text: frames are context managers.

>>> from tilewright.script.ir_builder import IRBuilder, ir as I, tir as T
>>> with IRBuilder() as builder:
...     with T.prim_func():
...         T.func_name("fill")
...         A = T.arg("A", T.Buffer((8,), "float32"))
...         with T.serial(8) as i:
...             T.buffer_store(A, 1.0, [i])
>>> builder.get()
"""

from __future__ import annotations

from tilewright.script.core import script as _script
from tilewright.script.ir_builder import ir, tir

IRBuilder = _script.IRBuilder
Frame = _script.Frame

__all__ = ["Frame", "IRBuilder", "ir", "tir"]
