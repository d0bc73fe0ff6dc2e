"""Row blocking of chained products (attention): a block of rows of each intermediate is computed and used at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tilewright import _core, ir
from tilewright.heuristics.block_info import (
    BlockInfo,
    Operand,
    Sizes,
    block_info,
    coefficient,
    is_spatial,
    size_of,
    width_of,
)
from tilewright.heuristics.cpu.parameters import (
    BLOCK_FEWEST_ROWS,
    BLOCK_L2_SHARE,
    BLOCK_MOST_ROWS,
    BLOCK_REDUCTION,
    BLOCK_ROWS_MULTIPLE,
    NEAR_L2_SHARE,
    WHOLE_BLOCK_L2_SHARE,
)
from tilewright.heuristics.nested_schedule import NestedSchedule
from tilewright.heuristics.sampling import Sampler, try_step
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.nodes import uses


class _Plan(NamedTuple):
    """The blocks that are computed together in row blocks.

    Attributes:
        end: the last block.
        axes: axes of the last block over which the others are computed with it: batch axes, then row axes.
        batch: number of batch axes among them.
        before: the other blocks, the last one first.
    """

    end: BlockInfo
    axes: list[int]
    batch: int
    before: list[BlockInfo]


def block_rows(
    schedule: Schedule, blocks: list[BlockRV], target: _core.Target, sizes: Sizes, sampler: Sampler
) -> NestedSchedule | None:
    """Compute the producers of a product in its row blocks if intermediate results would exceed L2 otherwise. Return
    the schedule that blocks inside the shared loops use; None if nothing is moved."""
    if sum(not is_spatial(schedule.get(block)) for block in blocks) < 2:
        return None  # fast path for most programs: a search calls this for each candidate
    infos = [block_info(schedule, block, sizes) for block in blocks]
    for plan in _plans(infos):
        size = _block_size(plan, target)
        if size is not None:
            return None if sampler.choose(2) else _run_in_blocks(schedule, plan, size)
    return None


def _plans(infos: Sequence[BlockInfo | None]) -> Iterator[_Plan]:
    """Yield plans for each product, the last one first: one that ends at the product, and one that ends at its
    consumer."""
    for n, product in reversed([*enumerate(infos)]):
        if product is None or not _is_product(product):
            continue
        using = [m for m, each in enumerate(infos) if each is None or product.store.buffer in _read_by(each)]
        ends = [infos[m] for m in (using[0] if len(using) == 1 else n, n)]
        for end, operand in itertools.product(ends, product.reads):
            batch, rows = _rows_of(product, operand)
            axes = _axes_for_results(product, [*batch, *rows], end) if rows and end is not None else []
            before = _leading_to(infos, end, axes) if axes and end is not None else []
            products = [each for each in before if _is_product(each)]
            if products and end is not None and not any(_has_instructions(each) for each in (product, *products)):
                yield _Plan(end, axes, len(batch), before)


def _run_in_blocks(schedule: Schedule, plan: _Plan, size: int) -> NestedSchedule:
    end = plan.end
    *outer, row = plan.axes
    shared = end.loops(outer)
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
    return bool(info.reduced) and info.is_contraction() and info.is_fixed


def _read_by(info: BlockInfo) -> set[ir.Buffer]:
    return {read.buffer for read in info.reads}


def _has_instructions(info: BlockInfo) -> bool:
    """Return whether operands have dot-product instructions or AMX, which row blocking does not support."""
    return any(
        not operand.buffer.dtype.startswith("float") or operand.width < 4 for operand in (info.store, *info.reads)
    )


def _rows_of(product: BlockInfo, operand: Operand) -> tuple[list[int], list[int]]:
    """Return the batch axes, with which all operands vary, also in groups (`h // 4`), and the row axes, with which one
    operand varies."""

    def is_index(read: Operand, axis: int) -> bool:
        return any(uses(index, product.axes[axis].var) for index in read.indices)

    batch = [i for i in product.spatial if all(is_index(read, i) for read in product.reads)]
    others = [read for read in product.reads if read is not operand]
    rows = [i for i in product.spatial if operand.varies(i) and not any(is_index(read, i) for read in others)]
    return batch, sorted(rows, key=product.extent)  # the longest axis is blocked


def _axes_for_results(product: BlockInfo, axes: list[int], end: BlockInfo) -> list[int]:
    """Return the axes of a product's consumer that index the results as these axes do; empty if one has no such
    axis."""
    if end is product:
        return axes
    taken = next((read for read in end.reads if read.buffer.same_as(product.store.buffer)), None)
    dimensions = [_dimension(product.store.indices, product.axes[i].var) for i in axes]
    if taken is None or end.reduced or None in dimensions:
        return []
    indices = [taken.indices[dimension] for dimension in dimensions if dimension is not None]
    return [n for index in indices for n, axis in enumerate(end.axes) if axis.var.same_as(index)]


def _leading_to(infos: Sequence[BlockInfo | None], end: BlockInfo, axes: list[int]) -> list[BlockInfo]:
    """Return the blocks that can be computed inside the given axes of the last block, as far as it needs their results,
    the last block first. Results that other blocks need, or that all iterations share, are computed before. Return no
    blocks if this cannot be decided for one of them."""
    found: list[BlockInfo] = []
    dimensions: dict[ir.Buffer, list[int | None]] = {}
    common: set[ir.Buffer] = set()
    for each in reversed(infos[: infos.index(end) + 1]):
        if each is None:
            return []
        if each is end:
            variables: list[Any] = [end.axes[i].var for i in axes]
        elif each.store.buffer in common or each.store.buffer not in dimensions:
            common |= _read_by(each)
            continue
        else:
            variables = [
                each.store.indices[dimension] for dimension in dimensions[each.store.buffer] if dimension is not None
            ]
            if not all(_is_axis(each, variable) for variable in variables):
                return []
            found.append(each)
        for read in each.reads:
            there = [_dimension(read.indices, variable) for variable in variables]
            if None in there or dimensions.setdefault(read.buffer, there) != there:
                common.add(read.buffer)
    return found


def _is_axis(info: BlockInfo, index: Any) -> bool:
    return any(axis.is_spatial and axis.var.same_as(index) for axis in info.axes if isinstance(index, ir.Var))


def _dimension(indices: Sequence[Any], variable: ir.Var) -> int | None:
    """Return the only dimension whose index contains a variable, if that index is the variable."""
    using = [n for n, index in enumerate(indices) if coefficient(index, variable) != 0]
    is_index = len(using) == 1 and isinstance(indices[using[0]], ir.Var)
    return using[0] if is_index else None


def _block_size(plan: _Plan, target: _core.Target) -> int | None:
    """Return the largest number of rows with which intermediate results fit in L2. Return None if they fit in L2
    without blocking or with no block size, or if reductions are so long that loading their operands does not matter."""
    end, made = plan.end, [each.store.buffer for each in plan.before]
    held = max((size_of(buffer) or 0) * width_of(buffer.dtype) for buffer in made)
    if held <= target.l2_bytes * NEAR_L2_SHARE:
        return None
    *outer, row = plan.axes
    of_row = held / end.size(plan.axes)
    batch = end.size(plan.axes[: plan.batch])
    products = [each for each in (end, *plan.before) if _is_product(each)]
    common = sum(each.bytes_read(read) / batch for each in products for read in each.reads if read.buffer not in made)
    steps = min(each.size(each.reduced) for each in products)
    if common > target.l2_bytes * NEAR_L2_SHARE and steps > BLOCK_REDUCTION:
        return None
    extent = end.extent(row)
    most = min(target.l2_bytes * BLOCK_L2_SHARE / of_row, BLOCK_MOST_ROWS)
    ways = [size for size in range(BLOCK_FEWEST_ROWS, min(extent, int(most)) + 1) if extent % size == 0]
    if ways:
        return max(ways, key=lambda size: (size % BLOCK_ROWS_MULTIPLE == 0, size))
    is_near = of_row * extent <= target.l2_bytes * WHOLE_BLOCK_L2_SHARE
    return extent if outer and extent >= BLOCK_FEWEST_ROWS and is_near else None
