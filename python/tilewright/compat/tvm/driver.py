"""tvm.build and tvm.compile."""

from __future__ import annotations

from typing import Any

import tilewright as tw
from tilewright.ir import IRModule, PrimFunc


def build(mod: PrimFunc | IRModule, target: Any = None) -> Any:
    """A kernel for a function, a module of kernels for a module."""
    return tw.compile(mod, target=target if target is not None else "native")


compile = build
