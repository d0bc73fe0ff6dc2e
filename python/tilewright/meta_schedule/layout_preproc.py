"""Parameters whose layout is changed ahead of time.

A block that is annotated ``meta_schedule.layout_rewrite_preproc`` copies a parameter, of which only its copy is read,
to another layout. Where kernels are measured, that has happened before they are called::

    for i, j in grid(64, 32):               B as it comes: (64, 32)
        with block("B_rewritten"):
            block_attr({"meta_schedule.layout_rewrite_preproc": True})
            B_tiled[i // 16, j, i % 16] = B[i, j]
    ...                                     what reads B_tiled; without the copy, B_tiled is the parameter
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tilewright import _core, ir
from tilewright.support.changed_nodes import with_fields
from tilewright.support.nodes import nodes_of

__all__ = ["without_layout_rewrites"]

_MARK = "meta_schedule.layout_rewrite_preproc"


def without_layout_rewrites(function: ir.PrimFunc) -> ir.PrimFunc:
    """Return the function whose parameters have the layout that is read; a copy that cannot be removed remains."""
    copies = _copies(function)
    if not copies:
        return function
    rewritten = {source: block.writes[0].buffer for source, block in copies.items()}
    names = {block.name_hint for block in copies.values()}

    def without_copies(node: Any) -> Any:
        kept: list[Any]
        if isinstance(node, ir.BlockRealize) and _MARK in node.block.annotations and node.block.name_hint in names:
            return ir.Evaluate(ir.IntImm("int32", 0))
        if isinstance(node, ir.For) and _is_nothing(node.body):
            return node.body
        if isinstance(node, ir.SeqStmt):
            kept = [each for each in node.seq if not _is_nothing(each)]
            return _core.seq(kept) if kept else node.seq[0]
        if isinstance(node, ir.Block):
            kept = [b for b in node.alloc_buffers if not any(b is w or b.data is w.data for w in rewritten.values())]
            if len(kept) < len(node.alloc_buffers):
                return _with_alloc_buffers(node, kept)
        return node

    buffers = {param: rewritten.get(buffer.data, buffer) for param, buffer in function.buffer_map.items()}
    body: Any = _core.rewrite(function.body, without_copies)
    return ir.PrimFunc(function.params, buffers, function.ret_type, function.attrs, body)


def _is_nothing(node: Any) -> bool:
    return isinstance(node, ir.Evaluate) and isinstance(node.value, ir.IntImm)


def _with_alloc_buffers(block: Any, buffers: list[Any]) -> Any:
    return with_fields(block, alloc_buffers=buffers)


def _copies(function: ir.PrimFunc) -> dict[Any, Any]:
    """Return the blocks to remove, by the data of the parameter that only they read."""
    found = [block for block in nodes_of(function.body, ir.Block) if _MARK in block.annotations]
    users = Counter(access.buffer.data for access in nodes_of(function.body, ir.BufferLoad, ir.BufferStore))
    parameters = {buffer.data for buffer in function.buffer_map.values()}
    return {
        block.reads[0].buffer.data: block
        for block in found
        if len(block.reads) == len(block.writes) == 1
        and block.reads[0].buffer.data in parameters
        and users.get(block.reads[0].buffer.data) == 1
    }
