"""tvm.sparse.specialize: indices that follow from formulas."""

from __future__ import annotations

from typing import Any

from tilewright import ir, sparse
from tilewright.compat.tvm.tir.transform.statements import function_pass, require_module
from tilewright.compat.tvm.transform import Pass
from tilewright.script.tir.index_maps import index_map


def specialize_buffer(mod: Any, buf_name: str, idx_map: Any) -> Any:
    """Return the module in which loads of a buffer are replaced by a formula of their indices."""
    require_module(mod)
    return SpecializeBuffer(buf_name, idx_map)(mod)


def SpecializeBuffer(buf_name: str, idx_map: Any) -> Pass:
    """Return the pass of :func:`specialize_buffer`."""
    made = idx_map if isinstance(idx_map, ir.IndexMap) else index_map(idx_map)
    taken = len(made.initial_indices)

    def relative(position: Any) -> list[Any]:
        found = _positions(position)
        if len(found) != taken:
            raise TypeError(f"{buf_name} is read at {position}, which is not {taken} positions of axes")
        return found

    inner = relative if taken > 1 else None
    return function_pass("SpecializeBuffer", lambda func: sparse.specialize_buffer(func, buf_name, made, inner))


def _positions(position: Any) -> list[Any]:
    """Return the positions along each axis, counted below the parent's, of which lowering has made a position of an
    array: ``indptr[i] + j``, or ``i * width + j``."""
    if isinstance(position, ir.Add):
        begin, below = position.a, position.b
        if isinstance(begin, ir.BufferLoad) and len(begin.indices) == 1:
            return [*_positions(begin.indices[0]), below]
        if isinstance(begin, ir.Mul):
            return [*_positions(begin.a), below]
    return [position]
