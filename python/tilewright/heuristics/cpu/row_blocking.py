"""Products of products (an attention): what lies between two of them is made, and used, for some rows at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tilewright import _core, ir
from tilewright.heuristics.cpu.block_info import (
    BlockInfo,
    Operand,
    Sizes,
    block_info,
    coefficient,
    constant,
    is_spatial,
    uses,
)
from tilewright.heuristics.cpu.nested_schedule import NestedSchedule
from tilewright.heuristics.cpu.parameters import (
    BLOCK_FEWEST_ROWS,
    BLOCK_L2_SHARE,
    BLOCK_MOST_ROWS,
    BLOCK_REDUCTION,
    BLOCK_ROWS_MULTIPLE,
    NEAR_L2_SHARE,
    WHOLE_BLOCK_L2_SHARE,
)
from tilewright.heuristics.cpu.register_tile import bits_of, bytes_of
from tilewright.heuristics.cpu.sampling import Sampler, try_step
from tilewright.schedule import BlockRV, Schedule


class _Plan(NamedTuple):
    """What runs in bands.

    Attributes:
        end: the last block.
        axes: of that block, over which the others are computed with it: those of a batch, and rows.
        batch: how many of these are of a batch.
        before: the other blocks, the last one first.
    """

    end: BlockInfo
    axes: list[int]
    batch: int
    before: list[BlockInfo]


def block_rows(
    schedule: Schedule, blocks: list[BlockRV], target: _core.Target, sizes: Sizes, sampler: Sampler
) -> NestedSchedule | None:
    """Moves what leads to a product to the rows of that, where what lies between does not stay near otherwise; returns
    the schedule as blocks in bands see it, None where nothing is moved."""
    if sum(not is_spatial(schedule.get(block)) for block in blocks) < 2:
        return None  # most programs: a search asks for each of its candidates
    info = [block_info(schedule, block, sizes) for block in blocks]
    for plan in _plans(info):
        size = _block_size(plan, target)
        if size is not None:
            return None if sampler.choose(2) else _run_in_blocks(schedule, plan, size)
    return None


def _plans(info: Sequence[BlockInfo | None]) -> Iterator[_Plan]:
    """For each product, the last one first: what leads to it, and to a step behind it."""
    for n, product in reversed([*enumerate(info)]):
        if product is None or not _is_product(product):
            continue
        using = [m for m, each in enumerate(info) if each is None or product.store.buffer in _read_by(each)]
        ends = [info[m] for m in (using[0] if len(using) == 1 else n, n)]
        for end, operand in itertools.product(ends, product.reads):
            batch, rows = _rows_of(product, operand)
            axes = _axes_for_results(product, [*batch, *rows], end) if rows and end is not None else []
            before = _leading_to(info, end, axes) if axes and end is not None else []
            products = [each for each in before if _is_product(each)]
            if products and end is not None and not any(_has_instructions(each) for each in (product, *products)):
                yield _Plan(end, axes, len(batch), before)


def _run_in_blocks(schedule: Schedule, plan: _Plan, size: int) -> NestedSchedule:
    end = plan.end
    *outer, row = plan.axes
    shared = [end.axes[i].loop for i in outer]
    rows = end.axes[row].loop
    if size < end.extent(row):
        first, rows = schedule.split(rows, [None, size])
        shared.append(first)
    own = [rows if i == row else axis.loop for i, axis in enumerate(end.axes) if i not in outer]
    schedule.reorder(*shared, *own)
    for each in plan.before:
        try_step(schedule.compute_at, each.block, shared[-1])
    return NestedSchedule(schedule, shared)


def _is_product(info: BlockInfo) -> bool:
    return bool(info.reduced) and info.is_contraction() and all(axis.is_fixed for axis in info.axes)


def _read_by(info: BlockInfo) -> set[ir.Buffer]:
    return {read.buffer for read in info.reads}


def _has_instructions(info: BlockInfo) -> bool:
    """Narrow operands, which are multiplied in pairs or tiles: bands have rules for others alone."""
    return any(
        not operand.buffer.dtype.startswith("float") or bits_of(operand.buffer.dtype) < 32
        for operand in (info.store, *info.reads)
    )


def _rows_of(product: BlockInfo, operand: Operand) -> tuple[list[int], list[int]]:
    """Axes of a batch, with which all operands vary, in groups (`h // 4`) too; those of rows, with which one does."""

    def is_index(read: Operand, axis: int) -> bool:
        return any(uses(index, product.axes[axis].var) for index in read.indices)

    batch = [i for i in product.spatial if all(is_index(read, i) for read in product.reads)]
    others = [read for read in product.reads if read is not operand]
    rows = [i for i in product.spatial if operand.varies(i) and not any(is_index(read, i) for read in others)]
    return batch, sorted(rows, key=product.extent)  # bands are parts of the longest


def _axes_for_results(product: BlockInfo, axes: list[int], end: BlockInfo) -> list[int]:
    """The axes of a step behind a product that go through results as these do; none where it has others."""
    if end is product:
        return axes
    taken = next((read for read in end.reads if read.buffer.same_as(product.store.buffer)), None)
    places = [_place(product.store.indices, product.axes[i].var) for i in axes]
    if taken is None or end.reduced or None in places:
        return []
    indices = [taken.indices[place] for place in places if place is not None]
    return [n for index in indices for n, axis in enumerate(end.axes) if axis.var.same_as(index)]


def _leading_to(info: Sequence[BlockInfo | None], end: BlockInfo, axes: list[int]) -> list[BlockInfo]:
    """The blocks that can be computed for each value of the axes of the last one alone, as far as they are needed
    there, the last one first; what others need, too, or all values have in common, is computed before. Empty where
    there is a block of which that is not known."""
    found: list[BlockInfo] = []
    places: dict[ir.Buffer, list[int | None]] = {}
    common: set[ir.Buffer] = set()
    for each in reversed(info[: info.index(end) + 1]):
        if each is None:
            return []
        if each is end:
            variables: list[Any] = [end.axes[i].var for i in axes]
        elif each.store.buffer in common or each.store.buffer not in places:
            common |= _read_by(each)
            continue
        else:
            variables = [each.store.indices[place] for place in places[each.store.buffer] if place is not None]
            if not all(_is_axis(each, variable) for variable in variables):
                return []
            found.append(each)
        for read in each.reads:
            there = [_place(read.indices, variable) for variable in variables]
            if None in there or places.setdefault(read.buffer, there) != there:
                common.add(read.buffer)
    return found


def _is_axis(info: BlockInfo, index: Any) -> bool:
    return any(axis.is_spatial and axis.var.same_as(index) for axis in info.axes if isinstance(index, ir.Var))


def _place(indices: Sequence[Any], variable: ir.Var) -> int | None:
    """The dimension that a variable is the index of, where it is in none of the others."""
    using = [n for n, index in enumerate(indices) if coefficient(index, variable) != 0]
    is_index = len(using) == 1 and isinstance(indices[using[0]], ir.Var)
    return using[0] if is_index else None


def _block_size(plan: _Plan, target: _core.Target) -> int | None:
    """So many that what lies between stays near; None where it does so anyway, or never, or where that does not matter:
    long sums take longer than it does to bring their operands."""
    end, made = plan.end, [each.store.buffer for each in plan.before]
    held = max(_bytes_of_all(buffer) for buffer in made)
    if held <= target.l2_bytes * NEAR_L2_SHARE:
        return None
    *outer, row = plan.axes
    of_row = held / math.prod(end.extent(i) for i in plan.axes)
    batch = math.prod(end.extent(i) for i in plan.axes[: plan.batch])
    products = [each for each in (end, *plan.before) if _is_product(each)]
    common = sum(bytes_of(each, read) / batch for each in products for read in each.reads if read.buffer not in made)
    steps = min(math.prod(each.extent(i) for i in each.reduced) for each in products)
    if common > target.l2_bytes * NEAR_L2_SHARE and steps > BLOCK_REDUCTION:
        return None
    extent = end.extent(row)
    most = min(target.l2_bytes * BLOCK_L2_SHARE / of_row, BLOCK_MOST_ROWS)
    ways = [size for size in range(BLOCK_FEWEST_ROWS, extent + 1) if extent % size == 0 and size <= most]
    if ways:
        return max(ways, key=lambda size: (size % BLOCK_ROWS_MULTIPLE == 0, size))
    is_near = of_row * extent <= target.l2_bytes * WHOLE_BLOCK_L2_SHARE
    return extent if outer and extent >= BLOCK_FEWEST_ROWS and is_near else None


def _bytes_of_all(buffer: ir.Buffer) -> int:
    """Of all its elements."""
    return math.prod(constant(extent) or 1 for extent in buffer.shape) * bits_of(buffer.dtype) // 8
