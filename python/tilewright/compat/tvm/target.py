"""tvm.target."""

from __future__ import annotations

from tilewright._core import Target
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.target")

__all__ = ["Target"]
