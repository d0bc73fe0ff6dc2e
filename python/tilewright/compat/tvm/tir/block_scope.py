"""tvm.tir.block_scope."""

from __future__ import annotations

from tilewright._core import BlockScope, Dependency, DepKind, StmtSRef

__all__ = ["BlockScope", "DepKind", "Dependency", "StmtSRef"]
