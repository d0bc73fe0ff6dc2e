"""tvm.tir.tensor_intrin.hexagon."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.tensor_intrin.hexagon import *  # noqa: F403
from tilewright.tensor_intrin.hexagon import __all__ as _names

__path__: list[str] = []
__getattr__ = missing("tvm.tir.tensor_intrin.hexagon")

__all__ = list(_names)
