"""tvm.tir.tensor_intrin.arm_cpu."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.tensor_intrin.arm_cpu import *  # noqa: F403
from tilewright.tensor_intrin.arm_cpu import __all__ as _names

__path__: list[str] = []
__getattr__ = missing("tvm.tir.tensor_intrin.arm_cpu")

__all__ = list(_names)
