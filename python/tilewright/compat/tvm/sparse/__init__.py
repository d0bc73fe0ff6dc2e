"""tvm.sparse of SparseTIR's implementation: formats, their host routines, and lowering in two steps."""

from __future__ import annotations

from tilewright.compat.tvm.sparse import format, lower, nodes, specialize
from tilewright.compat.tvm.sparse.format import (
    FormatRewriteRule,
    column_part_hyb,
    condense,
    csf_to_ell3d,
    format_decompose,
)
from tilewright.compat.tvm.sparse.lower import lower_sparse_buffer, lower_sparse_iter
from tilewright.compat.tvm.sparse.specialize import specialize_buffer

__all__ = [
    "FormatRewriteRule",
    "column_part_hyb",
    "condense",
    "csf_to_ell3d",
    "format",
    "format_decompose",
    "lower",
    "lower_sparse_buffer",
    "lower_sparse_iter",
    "nodes",
    "specialize",
    "specialize_buffer",
]
