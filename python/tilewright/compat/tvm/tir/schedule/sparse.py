"""Primitives of SparseTIR's implementation, in its spelling (arXiv 2207.04606)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tilewright import _core
from tilewright._core import BlockRV, LoopRV
from tilewright.compat.tvm.sparse.finish import ATOMIC, WITHOUT_STEPS
from tilewright.compat.tvm.tir.schedule.reads import (
    is_gathered,
    is_lowered,
    join_axes,
    names_of_reads,
    position_of,
    remember,
)
from tilewright.support.nodes import nodes_of

#: where a schedule keeps the name of its block filter
_FILTER = "_block_filter"
#: The attribute of a schedule with the names of gathering copies.
_GATHERED = "_gathered"


def get_sparse_iteration(self: Any, name: str, func_name: str = "main") -> Any:
    """Return the iteration with a name. If the module has a single function, `func_name` is ignored."""
    only = len(self.mod.functions) == 1
    return _core.Schedule.get_sparse_iteration(self, name, "" if only else func_name)


def sparse_reorder(self: Any, sparse_iteration: Any, new_order: Any, *more: Any) -> None:
    """Reorder the variables of an iteration."""
    order = new_order if isinstance(sparse_iteration, BlockRV) else [sparse_iteration, new_order, *more]
    _core.Schedule.sparse_reorder(self, *order)


def sparse_fuse(self: Any, sparse_iteration: Any, iters_to_fuse: Any, *more: Any) -> None:
    """Fuse variables of an iteration into one loop."""
    iters = iters_to_fuse if isinstance(sparse_iteration, BlockRV) else [sparse_iteration, iters_to_fuse, *more]
    _core.Schedule.sparse_fuse(self, *iters)


def hide_buffer_access(self: Any, block: Any, buf_type: str, buf_index_array: Sequence[int]) -> None:
    """Remove accesses from the declared ones of a block."""
    rv = _block(self, block)
    at = list(buf_index_array)
    if buf_type == "read":
        at = [position_of(self, rv, index) for index in at]
    # Arrays of indices that the implementation still declares are gone where a copy is indexed by axes.
    if at := [index for index in at if index is not None]:
        _core.Schedule.unsafe_hide_buffer_access(self, rv, buf_type, at)


def set_block_filter(self: Any, name: str) -> None:
    """Restrict cache_read and cache_write to blocks that are annotated with the name."""
    setattr(self, _FILTER, name)


def unset_block_filter(self: Any) -> None:
    """Remove the restriction of set_block_filter."""
    setattr(self, _FILTER, None)


def cache_read(
    self: Any, block: Any, read_buffer_index: Any, storage_scope: str, consumer_blocks: Any = None, **more: Any
) -> Any:
    """Copy a buffer for the blocks that read it, restricted by the block filter."""
    rv = _block(self, block)
    names = names_of_reads(self, self.get(rv))
    index = _read(self, rv, read_buffer_index)
    if consumer_blocks is None and not more and is_lowered(self) and is_gathered(self.get(rv), index):
        made = _core.Schedule.reverse_cache_read(self, rv, index, storage_scope)
        join_axes(self, made)
        setattr(self, _GATHERED, [*getattr(self, _GATHERED, ()), self.get(made).name_hint])
    else:
        consumers = _filtered(self, block, "reads", index, consumer_blocks)
        made = _core.Schedule.cache_read(self, rv, index, storage_scope, consumers, **more)
    return _read_instead(self, rv, names, read_buffer_index, made)


def reverse_cache_read(
    self: Any, block: Any, read_buffer_index: Any, storage_scope: str, dim_order: Sequence[int] = ()
) -> Any:
    """Copy the gathered elements of a read into a buffer that is indexed by the axes of the block."""
    rv = _block(self, block)
    names = names_of_reads(self, self.get(rv))
    index = _read(self, rv, read_buffer_index)
    made = _core.Schedule.reverse_cache_read(self, rv, index, storage_scope, list(dim_order))
    return _read_instead(self, rv, names, read_buffer_index, made)


def _read(self: Any, block: Any, index: Any) -> Any:
    """Return the index of a read in the declared reads of the block."""
    found = position_of(self, block, index)
    return index if found is None else found


def _read_instead(self: Any, block: Any, names: Sequence[str], index: Any, copy: Any) -> Any:
    """Return the copy, after recording that its buffer replaces the one that was read."""
    if is_lowered(self) and isinstance(index, int) and index < len(names):
        copied = self.get(copy).writes[0].buffer.name
        remember(self, self.get(block).name_hint, [*names[:index], copied, *names[index + 1 :]])
    return copy


def reverse_cache_write(
    self: Any, block: Any, write_buffer_index: Any, storage_scope: str, dim_order: Sequence[int] = ()
) -> Any:
    """Let a block write a buffer indexed by its axes. The new copy block adds it to the initialized output."""
    rv = _block(self, block)
    if self.get(rv).init is not None:
        _core.Schedule.decompose_reduction(self, rv, self.get_loops(rv)[0])
    made = _core.Schedule.reverse_cache_write(self, rv, write_buffer_index, storage_scope, list(dim_order))
    return _annotated_as(self, rv, made)


def cache_write(
    self: Any, block: Any, write_buffer_index: Any, storage_scope: str, consumer_blocks: Any = None, **more: Any
) -> Any:
    """Write to a new buffer, which is copied to the old one, or is added to it if lowering has moved the init of the
    block into a separate block."""
    rv = _block(self, block)
    if consumer_blocks is None and is_lowered(self) and _init_of(self, block) is not None:
        made = _core.Schedule.reverse_cache_write(self, rv, write_buffer_index, storage_scope)
    else:
        consumers = _filtered(self, block, "writes", write_buffer_index, consumer_blocks)
        made = _core.Schedule.cache_write(self, rv, write_buffer_index, storage_scope, consumers, **more)
    return _annotated_as(self, rv, made) if is_lowered(self) else made


def _annotated_as(self: Any, block: Any, copy: Any) -> Any:
    """Return the copy block after giving it the annotations of the computing block, which loses `atomic`."""
    for key, value in self.get(block).annotations.items():
        if isinstance(value, str | int | float) and key != WITHOUT_STEPS:
            self.annotate(copy, key, value)
    if ATOMIC in self.get(block).annotations:
        self.unannotate(block, ATOMIC)
    return copy


def _block(self: Any, block: Any) -> Any:
    return self.get_block(block) if isinstance(block, str) else block


def _filtered(self: Any, block: Any, kind: str, index: Any, given: Any) -> Any:
    """Return the given consumers, or with a block filter, those annotated blocks that read the buffer, and the block
    itself if it reads it."""
    name = getattr(self, _FILTER, None)
    if given is not None or name is None or not isinstance(index, int):
        return given
    rv = self.get_block(block) if isinstance(block, str) else block
    own = self.get(rv)
    buffer = getattr(own, kind)[index].buffer
    marked = [node for node in nodes_of(self.mod, _core.Block) if name in node.annotations]
    found = [node.name_hint for node in marked if any(region.buffer.same_as(buffer) for region in node.reads)]
    others = [self.get_block(each) for each in dict.fromkeys(found) if each != own.name_hint]
    return [*others, rv] if kind == "reads" else others or None


def decompose_reduction(self: Any, block: Any, loop: Any) -> Any:
    """Move the init of a block into a separate block. If a reduction may have no step, lowering has done so already:
    then its block is returned."""
    init = _init_of(self, block) if is_lowered(self) else None
    if init is not None:
        return init
    rv = _block(self, block)
    own = self.get(rv)
    names = names_of_reads(self, own)
    made = _core.Schedule.decompose_reduction(self, rv, loop)
    if is_lowered(self):
        remember(self, self.get(rv).name_hint, [*(region.buffer.name for region in own.writes), *names])
    return made


def _init_of(self: Any, block: Any) -> Any:
    """Return the block that lowering has made for the init of a sparse iteration whose innermost block is `block`; None
    if there is none."""
    rv = _block(self, block)
    own = self.get(rv)
    if own.init is not None:
        return None
    # A buffer that reverse_cache_write has made has an init of its own.
    caches = [f"{region.buffer.name}_init" for region in own.writes]
    for producer in self.get_producers(rv):
        if self.get(producer).name_hint in caches:
            return producer
    names = {node.name_hint for node in nodes_of(self.mod, _core.Block)}
    name = own.name_hint.removesuffix("_update")
    for end in range(len(name.rstrip("0123456789")), len(name) + 1):
        made = [each for each in (f"{name[:end]}_init", f"{name[:end]}_init0") if each in names]
        if made:
            return self.get_block(made[0])
    return None


def bind(self: Any, loop: Any, thread_axis: str) -> None:
    """Bind a loop to threads. In a lowered sparse program, binding a loop to the same axis again has no effect."""
    binding = self.get(loop).thread_binding if is_lowered(self) else None
    if binding is None or binding.thread_tag != thread_axis:
        _core.Schedule.bind(self, loop, thread_axis)


def compute_at(self: Any, block: Any, loop: Any, preserve_unit_loops: bool = False, index: int = -1) -> None:
    """Move a block below a loop around its consumers. In a lowered sparse program, a copy that is there stays."""
    rv = _block(self, block)
    if not _is_below(self, rv, loop):
        _core.Schedule.compute_at(self, rv, loop, preserve_unit_loops, index)
        if self.get(rv).name_hint in getattr(self, _GATHERED, ()):
            join_axes(self, rv)


def _is_below(self: Any, block: Any, loop: Any) -> bool:
    return is_lowered(self) and any(self.get(each).same_as(self.get(loop)) for each in self.get_loops(block))


def reverse_compute_at(self: Any, block: Any, loop: Any, preserve_unit_loops: bool = False, index: int = -1) -> None:
    """Move a block below a loop around its producers. In a lowered sparse program, a copy that is there stays."""
    rv = _block(self, block)
    if not _is_below(self, rv, loop):
        _core.Schedule.reverse_compute_at(self, rv, loop, preserve_unit_loops, index)


def _blockize(self: Any, target: Any, preserve_unit_iters: bool = True, inner_init: bool = False, **more: Any) -> Any:
    """Turn the body of a loop into a block. With `inner_init`, the init stays in the inner block, if there is one."""
    below = [self.get(each) for each in self.get_child_blocks(target)] if isinstance(target, LoopRV) else []
    keeps = inner_init and any(block.init is not None for block in below)
    return _core.Schedule.blockize(self, target, preserve_unit_iters, keeps, **more)


@functools.wraps(_blockize)
def blockize(self: Any, target: Any, *given: Any, **more: Any) -> Any:
    """Blockize; the second positional argument of SparseTIR's implementation is `inner_init`."""
    if given and is_lowered(self):
        more["inner_init"], given = given[0], ()
    return _blockize(self, target, *given, **more)


def sparse_tensorize(self: Any, block_or_loop: Any, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
    """Tensorize a block with an intrinsic whose description reads elements that an array of indices selects."""
    _core.Schedule.tensorize(self, block_or_loop, tensor_intrin, preserve_unit_iters=preserve_unit_iters)


METHODS: dict[str, Any] = {
    each.__name__: each
    for each in (
        *(get_sparse_iteration, sparse_reorder, sparse_fuse, hide_buffer_access, set_block_filter),
        *(unset_block_filter, cache_read, cache_write, reverse_cache_read, reverse_cache_write),
        *(decompose_reduction, sparse_tensorize, bind, compute_at, reverse_compute_at, blockize),
    )
}
