"""tvm.tir.block_scope."""

from __future__ import annotations

import enum

from tilewright._core import BlockScope, Dependency, StmtSRef

__all__ = ["BlockScope", "DepKind", "Dependency", "StmtSRef"]


class DepKind(enum.IntEnum):
    """How one block depends on another one before it; equal to the kinds of :class:`Dependency`."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3
