"""Map the loops and buffers of a block to those of a tensor intrinsic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tilewright import _core, arith, ir
from tilewright._core import BlockRV, LoopRV
from tilewright.schedule import Schedule
from tilewright.support.nodes import nodes_of
from tilewright.tensor_intrin.table import TensorIntrin

__all__ = [
    "LayoutMapping",
    "LoopMapping",
    "block_names",
    "layout_mapping",
    "loop_mapping",
    "suggest_index_map",
    "tile_with_tensor_intrin",
]


@dataclass(frozen=True)
class LoopMapping:
    """For each loop of a description, outermost first, the corresponding loop of the program."""

    loops: list[tuple[LoopRV, ir.For]]
    #: for each axis of the block, the multiple to which its extent must be padded; None if no padding is needed
    paddings: list[int] | None = None


@dataclass(frozen=True)
class LayoutMapping:
    """For each axis of a description, the corresponding axes of the block, which are fused."""

    #: from the axes of the block to those that the description lacks, followed by those of the description
    mapping: ir.IndexMap
    #: from buffers of the block to those of the description
    buffers: dict[ir.Buffer, ir.Buffer]
    #: indices of the description's buffers
    indices: dict[ir.Buffer, list[ir.Expr]]
    block_axes: list[ir.IterVar] = field(default_factory=list)
    desc_axes: list[ir.IterVar] = field(default_factory=list)


def _constant(e: Any) -> int | None:
    return int(e.value) if isinstance(e, ir.IntImm) else None


def loop_mapping(sch: Schedule, block: BlockRV, desc: ir.PrimFunc, allow_padding: bool = False) -> LoopMapping | None:
    """Return the loops around a block that correspond to those of a description; None if there are none.

    From the last axis to the first, an axis of the description is mapped to the last unmapped axis of the block of the
    same kind. The extent of that axis' loop must be a multiple of the description's.

    Args:
        sch: the schedule.
        block: the block.
        desc: the description of a tensor intrinsic.
        allow_padding: whether extents may differ from multiples; `paddings` then has the multiples to pad to.
    """
    found = _core.loop_mapping(sch, block, desc, allow_padding)
    return None if found is None else LoopMapping(*found)


def tile_with_tensor_intrin(
    sch: Schedule, block: BlockRV, intrin_name: str, allow_padding: bool = False
) -> LoopRV | None:
    """Split and reorder the loops of a block so that the innermost ones are those of a tensor intrinsic.

    Args:
        sch: the schedule.
        block: the block.
        intrin_name: name of the intrinsic.
        allow_padding: whether to pad the block (`pad_einsum`) if extents are not multiples.

    Returns:
        The loop to pass to `tensorize`, or None if the block does not match the intrinsic.
    """
    assert TensorIntrin.get(intrin_name) is not None
    return _core.tile_with_tensor_intrin(sch, block, intrin_name, allow_padding)


def block_names(sch: Schedule) -> set[str]:
    """Return the names of all blocks of a schedule's program."""
    return {block.name_hint for block in nodes_of(sch.mod, ir.Block)}


def layout_mapping(sch: Schedule, block: BlockRV, desc: ir.PrimFunc) -> LayoutMapping | None:
    """Return the axes of a block that correspond to each axis of a description; None if the computation differs.

    An axis corresponds to the axis of the description that indexes the same buffers: in a convolution, the positions of
    the image index input and output, as the rows of a product do. Axes that index all buffers are batch axes, which are
    not mapped.
    """
    found = _core.layout_mapping(sch, block, desc)
    return None if found is None else LayoutMapping(*found)


def suggest_index_map(
    buffer: ir.Buffer, indices: Sequence[Any], loops: Sequence[ir.For], predicate: ir.Expr | None = None
) -> ir.IndexMap | None:
    """Return the layout in which loops access a buffer contiguously: one dimension for each digit of the indices.

    Args:
        buffer: the buffer, with a constant shape.
        indices: indices of the access.
        loops: the loops, outermost first.
        predicate: condition of the access, or None.

    Returns:
        The map from old indices to new ones, or None if the indices do not consist of digits of the loops.
    """
    constants = [_constant(extent) for extent in buffer.shape]
    shape = [extent for extent in constants if extent is not None]
    if len(shape) != len(constants):
        return None
    analyzer = arith.Analyzer()
    steps = [prod(shape[d + 1 :]) for d in range(len(shape))]

    def flat(of: Sequence[Any]) -> Any:
        terms = [index * step for index, step in zip(of, steps, strict=True)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    domains = {loop.loop_var: ir.Range(loop.min, loop.extent) for loop in loops}
    for loop_var, domain in domains.items():
        analyzer.bind(loop_var, domain)
    condition = predicate if isinstance(predicate, ir.Expr) else None
    found = arith.detect_iter_map([flat(indices)], domains, condition, "nocheck", analyzer)
    if not found.indices:
        return None
    order: dict[Any, int] = {loop.loop_var: position for position, loop in enumerate(loops)}
    digits: list[tuple[int, int, int, int]] = []
    for split in found.indices[0].args:
        where = order.get(split.source.var) if split.source.var is not None else None
        numbers = [_constant(analyzer.simplify(e)) for e in (split.lower_factor, split.scale, split.extent)]
        if where is None or any(number is None for number in numbers):
            return None
        lower, scale, extent = numbers
        digits.append((where, -lower, scale, extent))  # type: ignore[operator, arg-type]
    digits.sort()
    names = [ir.Var(f"i{d}", index_dtype(indices)) for d in range(len(shape))]
    inside = arith.Analyzer()
    for name, extent in zip(names, shape, strict=True):
        inside.bind(name, ir.Range(_core.const(0, name.dtype), _core.const(extent, name.dtype)))
    whole = flat(names)
    final = [inside.simplify(whole // scale % extent) for _, _, scale, extent in digits]
    return ir.IndexMap(names, final, None)


def index_dtype(indices: Sequence[Any]) -> str:
    """Return the data type of the first index that has one."""
    return next((str(index.dtype) for index in indices if isinstance(index, ir.Expr)), "int32")
