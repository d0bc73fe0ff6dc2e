"""tvm.tir.schedule.analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import _core, auto_tensorize
from tilewright.auto_tensorize import suggest_index_map

__all__ = [
    "AutoTensorizeMappingInfo",
    "TensorizeInfo",
    "get_auto_tensorize_mapping_info",
    "get_tensorize_loop_mapping",
    "has_block",
    "is_output_block",
    "suggest_index_map",
]


@dataclass(frozen=True)
class TensorizeInfo:
    """Which loops of a program stand for those of a description."""

    loop_map: dict[Any, Any]
    desc_loop_indexer: dict[Any, int]
    block_iter_paddings: list[int] | None


@dataclass(frozen=True)
class AutoTensorizeMappingInfo:
    """Which axes of a block stand for those of a description."""

    mappings: list[Any]
    lhs_buffer_map: dict[Any, Any]
    rhs_buffer_indices: dict[Any, list[Any]]
    lhs_iters: list[Any]
    rhs_iters: list[Any]


def get_tensorize_loop_mapping(
    sch: Any, block: Any, desc_func: Any, allow_padding: bool = False
) -> TensorizeInfo | None:
    """Return the loop mapping; None if the block does not match."""
    found = auto_tensorize.loop_mapping(sch, block, desc_func, allow_padding)
    if found is None:
        return None
    loop_map = {sch.get_sref(loop): described for loop, described in found.loops}
    order = {described: position for position, (_, described) in enumerate(found.loops)}
    return TensorizeInfo(loop_map, order, found.paddings)


def get_auto_tensorize_mapping_info(sch: Any, block: Any, desc_func: Any) -> AutoTensorizeMappingInfo | None:
    """Return the axis mapping; None if the block computes something else."""
    found = auto_tensorize.layout_mapping(sch, block, desc_func)
    if found is None:
        return None
    return AutoTensorizeMappingInfo([found.mapping], found.buffers, found.indices, found.block_axes, found.desc_axes)


def has_block(sch: Any, block_name: str) -> bool:
    """Return whether there is a block with this name."""
    return block_name in auto_tensorize.block_names(sch)


def is_output_block(sch: Any, block: Any) -> bool:
    """Return whether the block writes a buffer that its scope does not allocate."""
    node = sch.get(block)
    scopes: list[Any] = []

    def contains(outer: Any) -> bool:
        inside = False

        def look(candidate: Any) -> None:
            nonlocal inside
            inside = inside or (isinstance(candidate, _core.Block) and candidate.id == node.id)

        _core.post_order_visit(outer.body, look)
        return inside

    def visit(candidate: Any) -> bool:
        if isinstance(candidate, _core.Block) and contains(candidate):
            scopes.append(candidate)
        return True

    for function in sch.mod.functions.values():
        if isinstance(function, _core.PrimFunc):
            _core.pre_order_visit(function.body, visit)
    own = scopes[-1].alloc_buffers if scopes else []
    return any(not any(region.buffer.same_as(buffer) for buffer in own) for region in node.writes)
