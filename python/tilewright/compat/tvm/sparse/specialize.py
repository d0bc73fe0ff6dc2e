"""tvm.sparse.specialize: indices that follow from formulas."""

from __future__ import annotations

from typing import Any

from tilewright import sparse
from tilewright.compat.tvm.tir.transform.statements import function_pass, require_module
from tilewright.compat.tvm.transform import Pass


def specialize_buffer(mod: Any, buf_name: str, idx_map: Any) -> Any:
    """Return the module in which loads of a buffer are replaced by a formula of their indices."""
    require_module(mod)
    return SpecializeBuffer(buf_name, idx_map)(mod)


def SpecializeBuffer(buf_name: str, idx_map: Any) -> Pass:
    """The pass of :func:`specialize_buffer`."""
    return function_pass("SpecializeBuffer", lambda func: sparse.specialize_buffer(func, buf_name, idx_map))
