"""tvm.target.codegen: the numbers of LLVM's intrinsics, which are their names here."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.script.tir.intrinsics import llvm_lookup_intrinsic_id

__path__: list[str] = []
__getattr__ = missing("tvm.target.codegen")

__all__ = ["llvm_lookup_intrinsic_id"]
