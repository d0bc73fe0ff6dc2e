"""tvm.tir.tensor_intrin.dot_product_common."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.tensor_intrin.dot_product_common import *  # noqa: F403
from tilewright.tensor_intrin.dot_product_common import __all__ as _names

__path__: list[str] = []
__getattr__ = missing("tvm.tir.tensor_intrin.dot_product_common")

__all__ = list(_names)
