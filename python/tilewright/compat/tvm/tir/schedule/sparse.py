"""Primitives of SparseTIR's implementation, in its spelling (arXiv 2207.04606)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _core, ir
from tilewright._core import BlockRV

#: where a schedule keeps the name of its block filter
_FILTER = "_block_filter"


def get_sparse_iteration(self: Any, name: str, func_name: str = "main") -> Any:
    """Return the iteration with a name. If the module has a single function, `func_name` is ignored."""
    only = len(self.mod.functions) == 1
    return _core.Schedule.get_sparse_iteration(self, name, "" if only else func_name)


def sparse_reorder(self: Any, sparse_iteration: Any, new_order: Any, *more: Any) -> None:
    """Puts the variables of an iteration into another order."""
    order = new_order if isinstance(sparse_iteration, BlockRV) else [sparse_iteration, new_order, *more]
    _core.Schedule.sparse_reorder(self, *order)


def sparse_fuse(self: Any, sparse_iteration: Any, iters_to_fuse: Any, *more: Any) -> None:
    """Runs variables of an iteration in one loop."""
    iters = iters_to_fuse if isinstance(sparse_iteration, BlockRV) else [sparse_iteration, iters_to_fuse, *more]
    _core.Schedule.sparse_fuse(self, *iters)


def hide_buffer_access(self: Any, block: Any, buf_type: str, buf_index_array: Sequence[int]) -> None:
    """Removes accesses from what a block declares."""
    _core.Schedule.unsafe_hide_buffer_access(self, block, buf_type, list(buf_index_array))


def match_to_alloc(self: Any, block: Any, buffer_index: int) -> Any:
    """Is refused: it would take a result away from the callers of the function."""
    raise NotImplementedError(
        "Tilewright has no match_to_alloc, which changes what a function returns: declare the buffer by "
        "T.alloc_sparse_buffer, or give its readers a copy by sch.cache_write"
    )


def set_block_filter(self: Any, name: str) -> None:
    """Lets cache_read and cache_write redirect only those blocks that are annotated with the name."""
    setattr(self, _FILTER, name)


def unset_block_filter(self: Any) -> None:
    """Lets cache_read and cache_write redirect all blocks again."""
    setattr(self, _FILTER, None)


def cache_read(
    self: Any, block: Any, read_buffer_index: Any, storage_scope: str, consumer_blocks: Any = None, **more: Any
) -> Any:
    """Copies a buffer for the blocks that read it, or for those of them that the block filter names."""
    consumers = _filtered(self, block, "reads", read_buffer_index, consumer_blocks)
    return _core.Schedule.cache_read(self, block, read_buffer_index, storage_scope, consumers, **more)


def cache_write(
    self: Any, block: Any, write_buffer_index: Any, storage_scope: str, consumer_blocks: Any = None, **more: Any
) -> Any:
    """Lets a block write a new buffer, which is copied to the old one; or is added to it, where lowering has made the
    init of the block one of its own."""
    if consumer_blocks is None and _init_of(self, block) is not None:
        return _core.Schedule.reverse_cache_write(self, block, write_buffer_index, storage_scope)
    consumers = _filtered(self, block, "writes", write_buffer_index, consumer_blocks)
    return _core.Schedule.cache_write(self, block, write_buffer_index, storage_scope, consumers, **more)


def _filtered(self: Any, block: Any, kind: str, index: Any, given: Any) -> Any:
    """The consumers that are given; else, with a block filter, those blocks with its annotation that read the buffer,
    and the block itself where it reads it."""
    name = getattr(self, _FILTER, None)
    if given is not None or name is None or not isinstance(index, int):
        return given
    rv = self.get_block(block) if isinstance(block, str) else block
    own = self.get(rv)
    buffer = getattr(own, kind)[index].buffer
    marked = [node for node in _blocks(self) if name in node.annotations]
    found = [node.name_hint for node in marked if any(region.buffer.same_as(buffer) for region in node.reads)]
    others = [self.get_block(each) for each in dict.fromkeys(found) if each != own.name_hint]
    return [*others, rv] if kind == "reads" else others or None


def decompose_reduction(self: Any, block: Any, loop: Any) -> Any:
    """Makes the init of a block a block of its own. Lowering has done so where a reduction may have no step: then its
    block is returned."""
    init = _init_of(self, block)
    return _core.Schedule.decompose_reduction(self, block, loop) if init is None else init


def _init_of(self: Any, block: Any) -> Any:
    """The block that lowering has made of the init of a sparse iteration, in which the block is the innermost one; None
    if there is none."""
    own = self.get(self.get_block(block) if isinstance(block, str) else block)
    iteration = own.name_hint.rstrip("0123456789")
    if own.init is not None or iteration == own.name_hint:
        return None
    names = {node.name_hint for node in _blocks(self)}
    made = [name for name in (f"{iteration}_init", f"{iteration}_init0") if name in names]
    return self.get_block(made[0]) if made else None


def _blocks(self: Any) -> list[ir.Block]:
    found: list[ir.Block] = []
    for func in self.mod.functions.values():
        _core.visit(func, lambda node: found.append(node) if isinstance(node, ir.Block) else None)
    return found


def sparse_tensorize(self: Any, block_or_loop: Any, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
    """Lets a block be computed by an intrinsic whose description reads elements that an array of indices selects."""
    _core.Schedule.tensorize(self, block_or_loop, tensor_intrin, preserve_unit_iters=preserve_unit_iters)


METHODS: dict[str, Any] = {
    each.__name__: each
    for each in (
        *(get_sparse_iteration, sparse_reorder, sparse_fuse, hide_buffer_access, match_to_alloc, set_block_filter),
        *(unset_block_filter, cache_read, cache_write, decompose_reduction, sparse_tensorize),
    )
}
