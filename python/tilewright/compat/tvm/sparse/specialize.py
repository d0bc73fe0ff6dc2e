"""tvm.sparse.specialize: indices that follow from formulas."""

from __future__ import annotations

from typing import Any

from tilewright import ir, sparse
from tilewright.compat.tvm.tir.transform.statements import function_pass
from tilewright.compat.tvm.transform import Pass


def specialize_buffer(mod: Any, buf_name: str, idx_map: Any) -> Any:
    """The module in which loads of a buffer are the value of a map of its indices."""
    if not isinstance(mod, ir.Module):
        raise TypeError(f"Expected IRModule, but got {type(mod)}")
    return SpecializeBuffer(buf_name, idx_map)(mod)


def SpecializeBuffer(buf_name: str, idx_map: Any) -> Pass:
    """The pass of :func:`specialize_buffer`."""
    return function_pass("SpecializeBuffer", lambda func: sparse.specialize_buffer(func, buf_name, idx_map))
