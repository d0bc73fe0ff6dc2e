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


def _description(desc: ir.PrimFunc) -> tuple[list[ir.For], ir.BlockRealize]:
    """The loops of a description, and the one block below them."""
    loops: list[ir.For] = []
    found: list[ir.BlockRealize] = []

    def visit(node: Any) -> bool:
        if isinstance(node, ir.For):
            loops.append(node)
        elif isinstance(node, ir.BlockRealize) and node.block.iter_vars:
            found.append(node)
        return True

    ir.pre_order_visit(desc.body, visit)
    if len(found) != 1:
        raise ValueError(f"the description has {len(found)} blocks with axes, not one")
    return loops, found[0]


def _constant(e: Any) -> int | None:
    return int(e.value) if isinstance(e, ir.IntImm) else None


def _extent(axis: Any) -> Any:
    """A number if it is one."""
    extent = axis.dom.extent
    return extent if _constant(extent) is None else _constant(extent)


def _drives(loop: ir.Var, value: Any, analyzer: arith.Analyzer) -> bool:
    """The value is the loop plus something else."""
    return not _uses(analyzer.simplify(value - loop), {loop}) if _uses(value, {loop}) else False


def _uses(e: Any, variables: set[Any]) -> bool:
    found = False

    def visit(node: Any) -> None:
        nonlocal found
        found = found or (isinstance(node, ir.Var) and any(node.same_as(v) for v in variables))

    ir.post_order_visit(ir.Evaluate(e), visit)
    return found


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
    desc_loops, said = _description(desc)
    analyzer = arith.Analyzer()
    realize = _realize_of(sch, block)
    loops = [(rv, sch.get(rv)) for rv in sch.get_loops(block)]
    axes = realize.block.iter_vars
    paddings = [1] * len(axes)
    mapping: list[tuple[LoopRV, ir.For]] = []
    position = len(axes) - 1
    for desc_loop in reversed(desc_loops):
        size = _constant(desc_loop.extent)
        kind = next(
            (
                axis.iter_type
                for axis, value in zip(said.block.iter_vars, said.iter_values, strict=True)
                if _drives(desc_loop.loop_var, value, analyzer)
            ),
            None,
        )
        while position >= 0 and axes[position].iter_type != kind:
            position -= 1
        if kind is None or size is None or position < 0:
            return None
        value = realize.iter_values[position]
        loop = next((rv for rv, node in loops if _drives(node.loop_var, value, analyzer)), None)
        if loop is None or any(loop == taken for taken, _ in mapping):
            return None
        extent = _constant(sch.get(loop).extent)
        if extent is None:
            return None
        if extent % size:
            if not allow_padding:
                return None
            paddings[position] = size
        mapping.append((loop, desc_loop))
        position -= 1
    mapping.reverse()
    return LoopMapping(mapping, paddings if any(p != 1 for p in paddings) else None)


def _realize_of(sch: Schedule, block: BlockRV) -> ir.BlockRealize:
    node = sch.get(block)
    found: list[ir.BlockRealize] = []

    def visit(candidate: Any) -> None:
        if isinstance(candidate, ir.BlockRealize) and candidate.block.id == node.id:
            found.append(candidate)

    for function in sch.mod.functions.values():
        if isinstance(function, ir.PrimFunc):
            ir.post_order_visit(function.body, visit)
    return found[0]


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
    intrin = TensorIntrin.get(intrin_name)
    assert intrin is not None
    mapping = loop_mapping(sch, block, intrin.desc, allow_padding)
    if mapping is None:
        return None
    if mapping.paddings is not None:
        schedule: Any = sch
        schedule.pad_einsum(block, mapping.paddings)
        mapping = loop_mapping(sch, block, intrin.desc)
        if mapping is None:
            return None
    inner: list[LoopRV] = []
    for loop, said in mapping.loops:
        size, extent = _constant(said.extent), _constant(sch.get(loop).extent)
        assert size is not None and extent is not None
        inner.append(sch.split(loop, [extent // size, size])[1])
    order: list[LoopRV] = []
    for loop in sch.get_loops(block):
        if any(loop_is(sch, loop, tile) for tile in inner) or order:
            order.append(loop)
    outside = [loop for loop in order if not any(loop_is(sch, loop, tile) for tile in inner)]
    sch.reorder(*outside, *inner)
    return inner[0]


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


def loop_is(sch: Schedule, a: LoopRV, b: LoopRV) -> bool:
    """Whether two handles mean one loop."""
    return bool(sch.get(a).same_as(sch.get(b)))


class _Alike:
    """Walks a block's computation beside a description's, and collects which buffers stand for which."""

    def __init__(self, analyzer: arith.Analyzer) -> None:
        self.analyzer = analyzer
        self.buffers: dict[ir.Buffer, ir.Buffer] = {}
        self.mine: dict[ir.Buffer, list[ir.Expr]] = {}
        self.said: dict[ir.Buffer, list[ir.Expr]] = {}

    def access(self, a: Any, d: Any) -> bool:
        if a.buffer.dtype != d.buffer.dtype:
            return False
        known = self.buffers.get(a.buffer)
        if known is None:
            if any(d.buffer.same_as(taken) for taken in self.buffers.values()):
                return False
            self.buffers[a.buffer] = d.buffer
            self.mine[a.buffer] = [self.analyzer.simplify(index) for index in a.indices]
            self.said[d.buffer] = [self.analyzer.simplify(index) for index in d.indices]
            return True
        return bool(known.same_as(d.buffer)) and all(
            self.analyzer.can_prove_equal(x, y) for x, y in zip(self.mine[a.buffer], a.indices, strict=True)
        )

    def match(self, a: Any, d: Any) -> bool:
        if type(a) is not type(d):
            return False
        if isinstance(a, ir.BufferStore):
            return self.access(a, d) and self.match(a.value, d.value)
        if isinstance(a, ir.BufferLoad):
            return self.access(a, d)
        if isinstance(a, ir.Cast):
            return a.dtype == d.dtype and self.match(a.value, d.value)
        if isinstance(a, ir.Add | ir.Mul | ir.Min | ir.Max):
            before = (dict(self.buffers), dict(self.mine), dict(self.said))
            if self.match(a.a, d.a) and self.match(a.b, d.b):
                return True
            self.buffers, self.mine, self.said = before
            return self.match(a.a, d.b) and self.match(a.b, d.a)
        if isinstance(a, ir.Sub):
            return self.match(a.a, d.a) and self.match(a.b, d.b)
        return bool(ir.structural_equal(a, d))


def layout_mapping(sch: Schedule, block: BlockRV, desc: ir.PrimFunc) -> LayoutMapping | None:
    """How the axes of a block join to those of a description; None where it computes something else.

    An axis belongs to the axis of the description that moves in the same buffers: in a convolution, the positions of
    the image move in input and output, as the rows of a product do. Axes that move in all buffers are batches; they
    stay.
    """
    _, said = _description(desc)
    node = sch.get(block)
    analyzer = arith.Analyzer()
    for axis in [*node.iter_vars, *said.block.iter_vars]:
        if _extent(axis) != 1:  # axes with one value keep their names
            analyzer.bind(axis.var, axis.dom)
    alike = _Alike(analyzer)
    if not alike.match(node.body, said.block.body):
        return None

    def moves_in(axis: ir.IterVar, accesses: dict[ir.Buffer, list[ir.Expr]]) -> frozenset[ir.Buffer]:
        return frozenset(
            buffer for buffer, indices in accesses.items() if any(_uses(index, {axis.var}) for index in indices)
        )

    targets = {moves_in(axis, alike.said): axis for axis in said.block.iter_vars}
    if len(targets) != len(said.block.iter_vars):
        return None
    joined: dict[ir.Var, list[ir.IterVar]] = {axis.var: [] for axis in said.block.iter_vars}
    batches: list[ir.IterVar] = []
    for axis in node.iter_vars:
        mine = moves_in(axis, alike.mine)
        target = targets.get(frozenset(alike.buffers[buffer] for buffer in mine))
        if target is not None and target.iter_type == axis.iter_type:
            joined[target.var].append(axis)
        elif len(mine) == len(alike.mine) and axis.iter_type == _core.IterType.DATA_PAR:
            batches.append(axis)
        else:
            return None
    if not all(joined.values()):
        return None
    final: list[Any] = [axis.var for axis in batches]
    for axis in said.block.iter_vars:
        value: Any = None
        for part in joined[axis.var]:
            value = part.var if value is None else value * _extent(part) + part.var
        final.append(value)
    names = [ir.Var(axis.var.name_hint, axis.var.dtype) for axis in node.iter_vars]
    renamed = dict(zip([axis.var for axis in node.iter_vars], names, strict=True))
    final = [ir.substitute(value, renamed) for value in final]
    mapping = ir.IndexMap(names, final, None)
    return LayoutMapping(mapping, alike.buffers, alike.said, list(node.iter_vars), list(said.block.iter_vars))


def suggest_index_map(
    buffer: ir.Buffer, indices: Sequence[Any], loops: Sequence[ir.For], predicate: Any = None
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
