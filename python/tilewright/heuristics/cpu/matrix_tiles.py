"""Low-precision products by instructions that multiply tiles of matrices (AMX): 16 rows of one operand, each of 64
bytes, by as many groups of 16 columns of the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright import _core, ir
from tilewright.heuristics.block_info import (
    BlockInfo,
    block_info,
    coefficient,
    fusible_epilogue,
    is_parameter,
)
from tilewright.heuristics.cpu.dot_products import (
    column_axis,
    dimension_of,
    dot_axis,
    dot_product_cycles,
    pack_for_dot_products,
    packing_cycles,
    padded,
    result_loops,
)
from tilewright.heuristics.cpu.parameters import (
    AMX_BLOCKS,
    AMX_LATENCY_CYCLES,
    AMX_PADDING_CYCLES,
    AMX_ROW_CYCLES,
    AMX_ROWS,
    AMX_SETUP_CYCLES,
    DOT_LANES,
    PREFETCHED_BYTES,
    SAMPLED_AMX,
)
from tilewright.heuristics.loops import fuse_all
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import LoopRV

if TYPE_CHECKING:
    from tilewright.tensor_intrin.amx import Index, TileProduct


def has_matrix_tiles(match: Match) -> bool:
    """Return whether the target has AMX."""
    return "amx-tile" in match.target.features


def starts_at_zero(match: Match) -> bool:
    """Return whether the reduction starts at zero."""
    init = match.schedule.get(match.info.block).init
    return isinstance(init, ir.BufferStore) and getattr(init.value, "value", None) == 0


def schedule_matrix_tiles(match: Match) -> bool:
    """Schedule a contraction with AMX, if that is fastest; sizes that leave a remainder are padded."""
    ways = sorted((way for left in range(2) for way in _ways(match, left)), key=lambda way: way.cycles)
    if not ways or ways[0].cycles >= dot_product_cycles(match.info, match.target):
        return False
    try_step(_schedule, match, ways[match.sampler.choose(min(len(ways), SAMPLED_AMX))])
    return True


@dataclass(frozen=True)
class _Way:
    """A mapping of a contraction to AMX tiles.

    Attributes:
        left: number of the operand with rows.
        columns, depth_axis: the axis of the columns; the reduction axis that is taken in groups.
        along, height: the axis along which a tile of rows extends, and its number of steps.
        pair: the axis along which two tiles of rows are computed together, or None.
        wide: number of column tiles that are computed together.
        depth: number of groups in a tile.
        whole: the contraction with padded axes.
        steps: for each axis, the multiple to which it is padded.
        cycles: estimated cycles.
    """

    left: int
    columns: int
    depth_axis: int
    along: int
    height: int
    pair: int | None
    wide: int
    depth: int
    whole: BlockInfo
    steps: tuple[int, ...]
    cycles: float

    def tile(self, axis: int) -> int:
        """Return the number of steps along an axis of rows that are computed together."""
        return (self.height if axis == self.along else 1) * (2 if axis == self.pair else 1)


def _ways(match: Match, left: int) -> Iterator[_Way]:
    info, target = match.info, match.target
    a, b = info.reads[left], info.reads[1 - left]
    types = a.buffer.dtype, b.buffer.dtype, info.store.buffer.dtype
    product = _core.dot_instruction(*types, tiles=True, target=target)
    columns, depth_axis = column_axis(info, left), dot_axis(info, left)
    if product is None or columns is None or depth_axis is None:
        return
    rows = _rows(info, left)
    if not rows or any(info.periods) or not _is_plain(info, left, depth_axis):
        return
    group = 4 // a.width
    groups = math.ceil(info.extent(depth_axis) / group)
    passed = is_parameter(match.schedule, info.store.buffer)
    depths = {min(groups, AMX_ROWS), *(d for d in range(8, AMX_ROWS + 1) if groups % d == 0)}
    known: dict[tuple[int, ...], BlockInfo | None] = {}
    for along, depth, (high, wide) in itertools.product(rows, depths, AMX_BLOCKS):
        for pair in rows if high == 2 else [None]:
            for height in range(min(AMX_ROWS, info.extent(along)), 0, -1):
                steps = [1] * len(info.axes)
                steps[columns], steps[depth_axis], steps[along] = DOT_LANES * wide, depth * group, height
                if pair is not None:
                    steps[pair] *= 2
                key = tuple(steps)
                if key not in known:
                    known[key] = padded(info, steps)
                whole = known[key]
                if whole is None:
                    continue
                count = whole.size(whole.spatial) / (height * high * DOT_LANES * wide)
                sums = whole.size(whole.reduced) / (depth * group)
                step = max(height * high * wide, AMX_LATENCY_CYCLES, (high * height + wide * depth) / 2)
                direct = passed and whole is info
                leaving = high * wide * height * (1.0 if direct else 1.0 + AMX_ROW_CYCLES)
                cycles = count * (sums * step + leaving) + packing_cycles(
                    whole, 1 - left, depth_axis, whole is not info
                )
                if any(a.varies(i) and whole.extent(i) != info.extent(i) for i in range(len(steps))):
                    cycles += AMX_PADDING_CYCLES * whole.size(whole.varying(a))
                cycles += AMX_SETUP_CYCLES * count / 8
                yield _Way(left, columns, depth_axis, along, height, pair, wide, depth, whole, key, cycles)


def _rows(info: BlockInfo, left: int) -> list[int]:
    """Return the axes that only the left operand varies with, if each is an index of the results."""
    a, b = info.reads[left], info.reads[1 - left]
    return [
        i
        for i in info.spatial
        if a.strides[i] not in (0, None)
        and not b.varies(i)
        and dimension_of(info, info.store.indices, i) is not None
        and info.extent(i) > 1
    ]


def _is_plain(info: BlockInfo, left: int, depth_axis: int) -> bool:
    """Return whether the instruction can be described: the last index of the left operand is `depth_axis`, and its
    indices move by constant, nonnegative steps; the indices of the right operand and of the results are variables or
    constants."""
    a, b = info.reads[left], info.reads[1 - left]
    if dimension_of(info, (a.indices[-1],), depth_axis) is None:
        return False
    for index in (*b.indices, *info.store.indices):
        if not isinstance(index, (ir.Var, ir.IntImm)):
            return False
    steps = [coefficient(index, axis.var) for index in a.indices for axis in info.axes]
    return all(step is not None and step >= 0 for step in steps)


def _schedule(match: Match, way: _Way) -> None:
    schedule, info, target = match.schedule, match.info, match.target
    if way.whole is not info:
        schedule.pad_einsum(info.block, list(way.steps))
        again = block_info(schedule, info.block)
        if again is None:
            return
        info = again
    direct = is_parameter(schedule, info.store.buffer)
    group = 4 // info.reads[way.left].width
    rows = _rows(info, way.left)
    panels = _panels_at_a_time(info, way, target)
    inside = _rows_of_call(info, way, rows, target)
    head: dict[int, LoopRV] = {}
    inner: dict[int, LoopRV] = {}
    for i in info.spatial:
        loop, size = info.axes[i].loop, inside.get(i, 1)
        if i == way.columns:
            head[i], each, inner[i] = schedule.split(loop, [None, panels, DOT_LANES * way.wide])
        elif size == 1:
            head[i] = loop
        elif size == info.extent(i):
            inner[i] = loop
        else:
            head[i], inner[i] = schedule.split(loop, [None, size])
    batch = [i for i in head if i != way.columns and info.reads[1 - way.left].varies(i)]
    first = [*(head[i] for i in batch), head[way.columns]]
    order = [*first, *(head[i] for i in head if i not in (*batch, way.columns)), each]
    taken = [i for i in info.spatial if i in inner and i != way.columns]
    sums = [i for i in info.reduced if i != way.depth_axis] + [way.depth_axis]
    within = [*(inner[i] for i in taken), inner[way.columns]]
    schedule.reorder(*order, *within, *info.loops(sums))
    pack_for_dot_products(schedule, info, 1 - way.left, way.columns, way.depth_axis, group, first[-1])
    product = _product(info, way, taken, inside, sums)
    product.register()
    epilogue = None if direct else fusible_epilogue(schedule, info, len(info.spatial))
    if epilogue is not None:
        schedule.reverse_compute_at(epilogue, order[-1])
    # The description's axes must be in the order of its loops.
    apart = [i for i in info.spatial if i not in (*taken, way.columns)]
    axes = [*apart, *taken, way.columns, *sums]
    if axes != sorted(axes):
        schedule.reorder_block_iter_var(info.block, axes)
    begin = schedule.decompose_reduction(info.block, within[0])
    schedule.tensorize(schedule.blockize([begin, info.block]), product.name)
    if epilogue is not None:
        try_step(schedule.vectorize, result_loops(schedule, epilogue, len(order))[-1])
    try_step(schedule.parallel, fuse_all(schedule, first))


def _panels_at_a_time(info: BlockInfo, way: _Way, target: _core.Target) -> int:
    """Return how many panels of columns are packed and then used by all rows: as many as fit in L2 with the other
    operands. If all rows fit in L2, as many as make the rows of the panels as long as the hardware prefetches."""
    a, b = info.reads[way.left], info.reads[1 - way.left]
    rows = [i for i in info.spatial if a.varies(i) and not b.varies(i)]
    left = info.size([*rows, *info.reduced]) * a.width
    row = DOT_LANES * way.wide * a.width
    panel = info.size(i for i in info.reduced if b.varies(i)) * row
    count = info.extent(way.columns) // (DOT_LANES * way.wide)
    most = PREFETCHED_BYTES // row if left <= target.l2_bytes / 4 else target.l2_bytes / 2 / panel
    if target.num_cores > 1:
        most = min(most, count / target.num_cores)
    return max(size for size in range(1, max(1, min(count, int(most))) + 1) if count % size == 0)


def _rows_of_call(info: BlockInfo, way: _Way, rows: list[int], target: _core.Target) -> dict[int, int]:
    """Return how many steps of each axis of rows one call computes: as many as keep their operand in L2."""
    a = info.reads[way.left]
    inside = {i: way.tile(i) for i in rows if way.tile(i) > 1}
    deep = info.size(i for i in info.reduced if a.varies(i)) * a.width
    for i in reversed(rows):
        have = inside.get(i, 1)
        most = target.l2_bytes // (4 * deep * math.prod({**inside, i: 1}.values()))
        for size in range(min(info.extent(i), most), have, -1):
            if info.extent(i) % size == 0 and size % have == 0:
                inside[i] = size
                break
    return inside


def _product(info: BlockInfo, way: _Way, taken: list[int], inside: dict[int, int], sums: list[int]) -> TileProduct:
    """Return the product that one call computes; axes that the call does not cover are constant indices."""
    from tilewright.tensor_intrin.amx import TileProduct

    a, b = info.reads[way.left], info.reads[1 - way.left]
    numbers = {axis: n for n, axis in enumerate([*taken, way.columns, *sums])}

    def of_left(index: Any) -> Index:
        steps = ((number, coefficient(index, info.axes[axis].var) or 0) for axis, number in numbers.items())
        return tuple((number, step) for number, step in steps if step)

    def of_axis(index: object) -> int | None:
        found = (n for axis, n in numbers.items() if dimension_of(info, (index,), axis) is not None)
        return next(found, None)

    own = (numbers[way.columns], numbers[way.depth_axis])
    between = [axis for axis in map(of_axis, b.indices) if axis not in own]
    return TileProduct(
        types=(a.buffer.dtype, b.buffer.dtype, info.store.buffer.dtype),
        rows=tuple(inside[i] for i in taken),
        columns=DOT_LANES * way.wide,
        sums=tuple(info.extent(i) for i in sums),
        a=tuple(of_left(index) for index in a.indices),
        b=tuple(between),
        c=tuple(of_axis(index) for index in info.store.indices),
        along=numbers[way.along],
        height=way.height,
        pair=None if way.pair is None else numbers[way.pair],
        wide=way.wide,
        depth=way.depth,
    )
