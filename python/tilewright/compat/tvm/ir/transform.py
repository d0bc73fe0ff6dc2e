"""tvm.ir.transform: the same as tvm.transform."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.transform import ModulePass, Pass, PassContext, PassInfo, Sequential, module_pass

__path__: list[str] = []
__getattr__ = missing("tvm.ir.transform")

__all__ = ["ModulePass", "Pass", "PassContext", "PassInfo", "Sequential", "module_pass"]
