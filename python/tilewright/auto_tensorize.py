"""How a block could be computed by a tensor intrinsic: which loops to tile, which layouts its buffers need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tilewright import _core, arith, ir
from tilewright._core import BlockRV, LoopRV
from tilewright.schedule import Schedule
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
    """For each loop of a description, outermost first, the loop of the program that stands for it."""

    loops: list[tuple[LoopRV, ir.For]]
    #: For each axis of the block, what its extent has to become a multiple of; None where all of them divide.
    paddings: list[int] | None = None


@dataclass(frozen=True)
class LayoutMapping:
    """For each axis of a description, the axes of the block that are joined for it."""

    #: From the axes of the block to those that the description does not have, and then its own.
    mapping: ir.IndexMap
    #: From buffers of the block to those of the description.
    buffers: dict[ir.Buffer, ir.Buffer]
    #: Of the description's buffers.
    indices: dict[ir.Buffer, list[ir.Expr]]
    block_axes: list[ir.IterVar] = field(default_factory=list)
    desc_axes: list[ir.IterVar] = field(default_factory=list)


def _constant(e: Any) -> int | None:
    return int(e.value) if isinstance(e, ir.IntImm) else None


def loop_mapping(sch: Schedule, block: BlockRV, desc: ir.PrimFunc, allow_padding: bool = False) -> LoopMapping | None:
    """The loops around a block that stand for those of a description; None where there are none.

    From the last axes to the first, an axis of the description takes the last axis of the block that is left and of the
    same kind, and its loop, whose extent has to be a multiple.

    Args:
        sch: the schedule.
        block: the block.
        desc: the description of a tensor intrinsic.
        allow_padding: an extent need not be a multiple; `paddings` says what it has to become one of.
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
        intrin_name: the name of the intrinsic.
        allow_padding: pad the block (`pad_einsum`) where extents are no multiples.

    Returns:
        The loop to hand to `tensorize`, or None where the block does not fit the intrinsic.
    """
    assert TensorIntrin.get(intrin_name) is not None
    return _core.tile_with_tensor_intrin(sch, block, intrin_name, allow_padding)


def block_names(sch: Schedule) -> set[str]:
    """The names of all blocks of a schedule's program."""
    names: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, ir.Block):
            names.add(node.name_hint)

    for function in sch.mod.functions.values():
        if isinstance(function, ir.PrimFunc):
            ir.post_order_visit(function.body, visit)
    return names


def layout_mapping(sch: Schedule, block: BlockRV, desc: ir.PrimFunc) -> LayoutMapping | None:
    """How the axes of a block join to those of a description; None where it computes something else.

    An axis belongs to the axis of the description that moves in the same buffers: in a convolution, the positions of
    the image move in input and output, as the rows of a product do. Axes that move in all buffers are batches; they
    stay.
    """
    found = _core.layout_mapping(sch, block, desc)
    return None if found is None else LayoutMapping(*found)


def suggest_index_map(
    buffer: ir.Buffer, indices: Sequence[Any], loops: Sequence[ir.For], predicate: ir.Expr | None = None
) -> ir.IndexMap | None:
    """The layout in which loops walk through a buffer in order: one dimension for each digit that a loop gives.

    Args:
        buffer: the buffer, of constant shape.
        indices: how the loops access it.
        loops: the loops, outermost first.
        predicate: under which condition; None: always.

    Returns:
        The map from old indices to new ones, or None where the access is not made of digits of the loops.
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
        inside.bind(name, ir.Range(0, extent))
    whole = flat(names)
    final = [inside.simplify(whole // scale % extent) for _, _, scale, extent in digits]
    return ir.IndexMap(names, final, None)


def index_dtype(indices: Sequence[Any]) -> str:
    """The type of the first index that says one."""
    return next((str(index.dtype) for index in indices if isinstance(index, ir.Expr)), "int32")
