"""The read regions of blocks in the order of SparseTIR's implementation, whose scripts refer to them by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.support.nodes import nodes_of

#: where a schedule keeps the names of what a block reads, by the block's name
_READS = "_published_reads"


def position_of(schedule: Any, block: Any, index: Any) -> Any:
    """Return the index, in the reads of a block, of the read that a script refers to by `index`; None if it is gone.

    Only in programs lowered from sparse iterations do the two differ.
    """
    if not isinstance(index, int) or not is_lowered(schedule):
        return index
    own = schedule.get(block)
    names = names_of_reads(schedule, own)
    if index >= len(names):
        return None
    found = [at for at, region in enumerate(own.reads) if region.buffer.name == names[index]]
    return found[0] if found else None


def names_of_reads(schedule: Any, block: ir.Block) -> list[str]:
    """Return the names of the buffers that a block reads, in the order of SparseTIR's implementation.

    There, ``indptr`` arrays are read in the extents of loops only, so those in indices are omitted. The buffer of a
    reduction is read only once its init is decomposed. Arrays of indices are listed even if a copy does without them.
    """
    known: dict[str, list[str]] = getattr(schedule, _READS, {})
    if block.name_hint in known:
        return known[block.name_hint]
    written = [] if block.name_hint.endswith("_update") else [region.buffer for region in block.writes]
    return [
        region.buffer.name
        for region in block.reads
        if not _is_only_in_indices(block, region.buffer) and not any(region.buffer.same_as(each) for each in written)
    ]


def remember(schedule: Any, block: str, names: Sequence[str]) -> None:
    """Store the names of the buffers that a block reads."""
    setattr(schedule, _READS, {**getattr(schedule, _READS, {}), block: list(names)})


def is_gathered(block: ir.Block, position: Any) -> bool:
    """Return whether a read of a block without inner blocks is a gather: its indices are loaded from memory."""
    if not isinstance(position, int) or position >= len(block.reads):
        return False
    loads = (load for dim in block.reads[position].region for load in nodes_of(dim.min, ir.BufferLoad))
    is_loaded = any(not load.buffer.name.endswith("_indptr") for load in loads)
    return is_loaded and not nodes_of(block.body, ir.Block)


def join_axes(schedule: Any, block: Any) -> None:
    """Fuse the loops of a gathering copy until there is one per dimension of the copied buffer, as in other copies.

    Loops whose variables form one index, such as ``k0 * 16 + k1``, are fused in this order.
    """
    own = schedule.get(block)
    realize = _realize_in(schedule, block)
    moves: dict[Any, Any] = {}
    for loop in schedule.get_loops(block):
        node = schedule.get(loop)
        if len(schedule.get_child_blocks(loop)) > 1:
            continue
        drives = [
            axis.var
            for axis, value in zip(own.iter_vars, realize.iter_values, strict=True)
            if any(node.loop_var.same_as(each) for each in _core.undefined_vars(value))
        ]
        if len(drives) == 1 and not any(drives[0].same_as(each) for each in moves):
            moves[drives[0]] = loop
    for dim in own.reads[0].region:
        axes = [axis.var for axis in own.iter_vars]
        factors = {var: _factor(dim.min, var, axes) for var in moves}
        mine = [moves[var] for var in sorted(factors, key=lambda var: -(factors[var] or 0)) if factors[var]]
        if len(mine) > 1:
            schedule.reorder(*[loop for loop in moves.values() if loop not in mine], *mine)
            schedule.fuse(*mine)
            return


def _factor(index: Any, variable: Any, axes: Sequence[Any]) -> int | None:
    """Return the coefficient of an axis in an affine index; None if the axis does not occur."""
    if not any(variable.same_as(each) for each in _core.undefined_vars(index)):
        return None
    at: list[Any] = [
        _core.substitute(index, {each: int(each.same_as(variable)) * one for each in axes}) for one in (0, 1)
    ]
    step: Any = _core.Analyzer().simplify(at[1] - at[0])
    return int(step.value) if isinstance(step, ir.IntImm) else None


def _realize_in(schedule: Any, block: Any) -> Any:
    own = schedule.get(block)
    return next(node for node in nodes_of(schedule.mod, ir.BlockRealize) if node.block.same_as(own))


def is_lowered(schedule: Any) -> bool:
    """Return whether a program was lowered from sparse iterations."""
    functions: list[Any] = list(schedule.mod.functions.values())
    return any("sparse_arrays" in func.attrs for func in functions)


def _is_only_in_indices(block: ir.Block, buffer: ir.Buffer) -> bool:
    if not buffer.name.endswith("_indptr"):
        return False
    read = {load for loop in nodes_of(block.body, ir.For) for load in nodes_of(loop.extent, ir.BufferLoad)}
    in_indices = {inner for load in read for index in load.indices for inner in nodes_of(index, ir.BufferLoad)}
    return not any(each.buffer.same_as(buffer) for each in read - in_indices)
