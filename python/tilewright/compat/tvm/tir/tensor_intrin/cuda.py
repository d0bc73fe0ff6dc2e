"""tvm.tir.tensor_intrin.cuda."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.tensor_intrin.cuda import *  # noqa: F403
from tilewright.tensor_intrin.cuda import __all__ as _names

__path__: list[str] = []
__getattr__ = missing("tvm.tir.tensor_intrin.cuda")

__all__ = list(_names)
