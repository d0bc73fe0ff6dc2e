"""tvm.tir.block_scope."""

from __future__ import annotations

from tilewright._core import BlockScope, Dependency, DepKind, StmtSRef
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.tir.block_scope")

__all__ = ["BlockScope", "DepKind", "Dependency", "StmtSRef"]
