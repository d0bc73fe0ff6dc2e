"""Contractions: a tile of results in vector registers, the reduction around it, results leave when it is complete."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.heuristics.cpu.block_info import (
    BlockInfo,
    coefficient,
    constant,
    epilogue_or_copy,
    is_conditional,
    is_parameter,
    is_plain,
    is_spatial,
    named_alike,
)
from tilewright.heuristics.cpu.channel_groups import group_index_map, grouped_results, split_channel_groups
from tilewright.heuristics.cpu.deinterleave import deinterleave
from tilewright.heuristics.cpu.dot_products import schedule_dot_products
from tilewright.heuristics.cpu.matrix_tiles import schedule_matrix_tiles
from tilewright.heuristics.cpu.nested_schedule import NestedSchedule
from tilewright.heuristics.cpu.operand_layout import transpose_along_reduction, transpose_for_vectors
from tilewright.heuristics.cpu.operand_upcast import schedule_upcasts, upcast_operands
from tilewright.heuristics.cpu.packing import (
    copy_in_vectors,
    pack,
    panels_at_a_time,
    prefetch_rows,
    share_of_busy_cores,
)
from tilewright.heuristics.cpu.parameters import (
    ACCUMULATORS_BETTER,
    ALIASED_BYTES,
    ALIASED_LINES,
    BALANCED,
    ESTIMATES_CLOSE,
    GEMV_VECTORS,
    LINE_BYTES,
    PADDING_USES,
    PARALLEL_MULTIPLY_ADDS,
    PARTITIONED_TILES,
    SAMPLED_TILES,
)
from tilewright.heuristics.cpu.register_tile import (
    RegisterTile,
    accumulator_cycles,
    bits_of,
    bytes_of,
    register_tiles,
)
from tilewright.heuristics.cpu.sampling import Sampler, try_step
from tilewright.heuristics.cpu.single_blocks import accumulate_rows, schedule_reduction, vectorized_result_axis
from tilewright.heuristics.cpu.skinny_gemm import schedule_skinny_gemm
from tilewright.heuristics.cpu.sliding_windows import window_tiles
from tilewright.heuristics.cpu.split_k import split_accumulators, split_reduction
from tilewright.heuristics.cpu.strided_subproblems import interleaved_results, residue_index_map
from tilewright.schedule import BlockRV, LoopRV, Schedule

#: what asks lowering to leave out terms of padding
SKIPS_PADDING = "skip_zero_terms_of_padding"


def schedule_contraction(schedule: Schedule, info: BlockInfo, target: _core.Target, sampler: Sampler) -> None:
    """Tiles a contraction; one that no tile of registers fits stays as it is."""
    if info.parts:
        _in_registers(schedule, info, target, sampler)
        return
    if schedule_matrix_tiles(schedule, info, target, sampler) or schedule_dot_products(schedule, info, target, sampler):
        return
    info, widened = upcast_operands(schedule, info)
    _schedule(schedule, info, target, sampler)
    schedule_upcasts(schedule, widened, target, sampler)


def _schedule(schedule: Schedule, info: BlockInfo, target: _core.Target, sampler: Sampler) -> None:
    """One without instructions of its own."""
    info = split_channel_groups(schedule, info, target)
    windows = window_tiles(info, target)
    if windows and not sampler.choose(2):
        _Contraction(schedule, info, windows[sampler.choose(min(len(windows), SAMPLED_TILES))], target, sampler).run(
            True
        )
        return
    along = vectorized_result_axis(info, target)
    if along is not None and _is_matrix_vector(info, along, target) and accumulate_rows(schedule, info, along, target):
        return
    info = transpose_for_vectors(schedule, info, target)
    if not info.reduced:
        return  # of one step, whose axis is gone with the old layout
    info = deinterleave(schedule, info, target)
    if schedule_skinny_gemm(schedule, info, target, sampler):
        return
    info = split_reduction(schedule, info, target, sampler)
    _in_registers(schedule, split_accumulators(schedule, info, target), target, sampler)


def _in_registers(schedule: Schedule, info: BlockInfo, target: _core.Target, sampler: Sampler) -> None:
    tiles = register_tiles(info, target)
    if tiles and _takes_accumulators(tiles[0].cycles, accumulator_cycles(info, target), sampler):
        # Here: parts of sums are a block that nobody else knows.
        schedule_reduction(schedule, info, target, sampler)
        return
    if tiles and not info.parts and transpose_along_reduction(schedule, info, target, tiles[0].cycles / 2):
        return
    near = [tile for tile in tiles[:SAMPLED_TILES] if tile.cycles <= 2 * tiles[0].cycles]
    if near:
        _Contraction(schedule, info, near[sampler.choose(len(near))], target, sampler).run()


def _takes_accumulators(of_tile: float, of_lanes: float, sampler: Sampler) -> bool:
    """Whether partial sums of one result lie in the lanes, and not sums of several: where the estimate expects so, or
    nearly so and drawn."""
    better = of_tile > ACCUMULATORS_BETTER * of_lanes
    is_close = of_tile < ESTIMATES_CLOSE * of_lanes and of_lanes < ESTIMATES_CLOSE * of_tile
    return better != (is_close and sampler.choose(2) == 1)


def _is_matrix_vector(info: BlockInfo, along: int, target: _core.Target) -> bool:
    """Whether most of the work is to bring an operand of which each element takes part in one product only, as the
    matrix of a vector times a matrix."""
    for read in info.reads:
        shape = [constant(extent) for extent in read.buffer.shape]
        if None in shape or read.strides[along] != 1:
            continue
        elements = math.prod(extent or 1 for extent in shape)
        if (
            elements * bits_of(read.buffer.dtype) // 8 > target.l1_bytes
            and info.extent(along) * bits_of(info.store.buffer.dtype) > GEMV_VECTORS * target.vector_bits
            and math.prod(axis.extent for axis in info.axes) <= 1.5 * elements
            and all(read.varies(i) for i in (*info.spatial, *info.reduced) if info.extent(i) > 1)
        ):
            return True
    return False


class _Contraction:
    def __init__(
        self, schedule: Schedule, info: BlockInfo, tile: RegisterTile, target: _core.Target, sampler: Sampler
    ) -> None:
        self.schedule, self.info, self.tile, self.target, self.sampler = schedule, info, tile, target, sampler

    def run(self, windows: bool = False) -> None:
        """`windows`: write out the whole sum of a tile, and make its padding there."""
        schedule, info, tile, target, sampler = self.schedule, self.info, self.tile, self.target, self.sampler
        leaving = self._epilogue()
        copied = tile.copied
        # The copy is made for one group of columns, once for each value of the axes that it varies with.
        batch = [i for i in info.spatial if copied is not None and i != tile.axis and info.reads[copied].varies(i)]
        outer: dict[int, LoopRV] = {}
        inner: dict[int, LoopRV] = {}
        for i in info.spatial:
            loop, size, extent = info.axes[i].loop, tile.size(i), info.extent(i)
            if size == 1:
                outer[i] = loop
            elif size == extent and info.axes[i].is_fixed:
                inner[i] = loop
            else:
                outer[i], inner[i] = schedule.split(loop, [None, size])
        reduced = [info.axes[i].loop for i in info.reduced]
        ways = [*(steps for steps in (4, 2) if not windows and info.divides(steps, info.reduced[-1])), 1]
        if copied is None and any(bytes_of(info, read) > target.l2_bytes for read in info.reads):
            ways.reverse()  # its rows are asked for step by step
        steps = ways[sampler.choose(len(ways))]
        unrolled: list[LoopRV] = reduced if windows else []
        if steps > 1:
            reduced[-1], last = schedule.split(reduced[-1], [None, steps])
            unrolled = [last]
        # Loops with a tail stay inside: fused with others, their tails cannot be told apart any more.
        with_tail = {i for i in outer if tile.size(i) > 1 and not info.divides(tile.size(i), i)}
        columns = [tile.axis] if tile.axis in outer else []
        orders = [self._order(list(outer), with_tail, batch, first, windows) for first in (False, True)]
        columns_first = not windows and (copied is not None or self._columns_first())
        if copied is None and not windows and orders[0] != orders[1] and sampler.choose(2):
            columns_first = not columns_first
        order = orders[columns_first]
        if copied is not None and tile.axis in with_tail:
            order = batch + columns + [i for i in order if i not in batch and i != tile.axis]
        tiles = [inner[i] for i in sorted(inner) if i != tile.axis]
        vector = inner.get(tile.axis, info.axes[tile.axis].loop)
        head = [outer[i] for i in order]
        at = None
        # What all parts have in common is copied once, before them.
        if copied is not None and columns and not info.is_common(info.reads[copied]):
            at = outer[tile.axis]
            panels = panels_at_a_time(info, tile, copied, target, sampler)
            if panels > 1:
                # Rows of tiles pass over several groups of columns while what they share is near.
                at, each = schedule.split(at, [None, panels])
                head[order.index(tile.axis)] = outer[tile.axis] = at
                head.append(each)
        elif copied is not None and batch and order[: len(batch)] == batch:
            # One group of columns is all of them: the copy is made once for each value of those axes.
            at = outer[batch[-1]]
        band = self._padding_block(order, outer, with_tail) if at is None and not windows and not info.parts else None
        if band is not None:
            axis, size = band
            outer[axis], each = schedule.split(outer[axis], [None, size])
            head[order.index(axis) : order.index(axis) + 1] = [outer[axis], each]
        schedule.reorder(*head, *([] if windows else reduced), *unrolled, *tiles, vector)
        # Without such axes the copy of the one group is made before.
        packed = pack(schedule, info, copied, at) if copied is not None and (at is not None or not batch) else None
        store = self._fuse_epilogue(leaving, head)
        depth = len(head)
        if store is not None:
            self._vector_last(schedule.get_loops(store)[depth:], sorted(inner, key=self._result_dimension))
        begin = None
        # Where the reduction may be empty, results would begin on a condition, which no parallel loop is proved with.
        if reduced and all(info.axes[i].is_fixed for i in info.reduced):
            begin = try_step(schedule.decompose_reduction, info.block, reduced[0])
        for block in (store, begin):
            if block is not None:
                self._vectors(schedule.get_loops(block)[depth:])
        self._vectors([*unrolled, *tiles, vector])
        if packed is not None and copied is not None:
            depth = head.index(at) + 1 if at is not None else 0
            copy_in_vectors(schedule, info, tile, copied, packed, depth, target)
            if isinstance(schedule, NestedSchedule) and not schedule.contains(packed):
                try_step(schedule.parallel, schedule.get_loops(packed)[0])
        elif reduced and not windows:
            prefetch_rows(schedule, info, tile, reduced[-1], target)
        self._avoid_aliasing()
        if not windows and self._padding():
            schedule.annotate(info.block, SKIPS_PADDING, 1)
        if windows and head:
            self._compute_padding(head[-1], len(head))
        elif band is not None:
            self._compute_padding(outer[band[0]])
        if windows:
            self._parallelize_windows(head, [outer[i] for i in with_tail])
            return
        innermost = band[0] if band is not None else None
        if packed is not None and at is not None:
            innermost = tile.axis if columns else batch[-1]
        self._parallelize(order, outer, with_tail, innermost)

    def _padding(self) -> list[BlockRV]:
        """Blocks that make operands on a condition, for this one alone."""
        schedule = self.schedule
        producers = schedule.get_producers(self.info.block)
        return [
            block
            for block in producers
            if schedule.get(block).writes
            and is_spatial(schedule.get(block))
            and is_conditional(schedule.get(block))
            and is_plain(schedule, schedule.get_loops(block))
            and len(schedule.get_consumers(block)) == 1
            and not is_parameter(schedule, schedule.get(block).writes[0].buffer)
        ]

    def _padding_block(self, order: list[int], outer: dict[int, LoopRV], with_tail: set[int]) -> tuple[int, int] | None:
        """Where padded elements are used a few times only: how many steps of the outermost axis they are made for at a
        time, so that they need not leave the second level."""
        info, schedule = self.info, self.schedule
        padding = self._padding()
        longer = [i for i in order if info.extent(i) > 1]
        if len(padding) != 1 or not longer or longer[0] in (*with_tail, self.tile.axis, *info.residue_axes):
            return None
        written = schedule.get(padding[0]).writes[0].buffer
        shape = [constant(extent) for extent in written.shape]
        if None in shape or self.tile.size(longer[0]) > 1 or not info.axes[longer[0]].is_fixed:
            return None
        elements = math.prod(extent or 1 for extent in shape)
        if math.prod(axis.extent for axis in info.axes) >= PADDING_USES * elements:
            return None
        extent = info.extent(longer[0])
        each = elements * (bits_of(written.dtype) // 8) / extent
        most = self.target.l2_bytes / 4 / each
        if self.target.num_cores > 1:
            most = min(most, extent / (2 * self.target.num_cores))
        sizes = [size for size in range(1, extent) if extent % size == 0 and size <= most]
        return (longer[0], sizes[-1]) if sizes and sizes[-1] > 1 else None

    def _compute_padding(self, at: LoopRV, unrolled_below: int | None = None) -> None:
        schedule = self.schedule
        for block in self._padding():
            try_step(schedule.compute_at, block, at)
            loops = schedule.get_loops(block)
            if unrolled_below is None:
                try_step(schedule.vectorize, loops[-1])
            else:
                self._vectors(loops[unrolled_below:])

    def _avoid_aliasing(self) -> None:
        """Rows of a tile that lie a power of two apart fall on few sets of the first level; those of a padded copy get
        a line of distance each."""
        schedule, tile = self.schedule, self.tile
        for block in self._padding():
            written = schedule.get(block).writes[0].buffer
            width = bits_of(written.dtype) // 8
            number = named_alike([each.buffer for each in self.info.reads], written)
            read = None if number is None else self.info.reads[number]
            if read is None or read.varies(tile.axis):
                continue
            steps = {i: abs(read.strides[i] or 0) * width for i, _ in tile.rows if read.strides[i]}
            lines = math.prod(tile.size(i) for i in steps)
            together = math.gcd(ALIASED_BYTES, *steps.values())
            if lines * together <= ALIASED_BYTES * ALIASED_LINES // 2:
                continue
            nearest = self.info.axes[min(steps, key=lambda i: steps[i])].var
            place = next((n for n, index in enumerate(read.indices) if coefficient(index, nearest) != 0), None)
            if place is not None:
                try_step(schedule.storage_align, block, 0, place, together // width, LINE_BYTES // width)

    def _parallelize(self, order: list[int], outer: dict[int, LoopRV], with_tail: set[int], last: int | None) -> None:
        """Outer loops in parallel: those before the first with a tail, none below the loop that a copy is made in, and
        two where the length of one is open: what is fused has to be divided by it again."""
        schedule, loops, count, is_unscheduled = self.schedule, [], 1, False
        if self.info.parts or math.prod(axis.extent for axis in self.info.axes) < PARALLEL_MULTIPLY_ADDS:
            return
        for i in order:
            if i in with_tail:
                break
            loops.append(outer[i])
            extent = constant(schedule.get(outer[i]).extent)
            is_unscheduled |= extent is None
            count *= extent or 1
            if i == last or (is_unscheduled and len(loops) > 1):
                break
        is_few = not is_unscheduled and count < 2 * self.target.num_cores
        if self.tile.copied is not None and share_of_busy_cores(count, self.target) >= BALANCED:
            is_few = False  # each copies its own
        if is_few and len(loops) < len(order) and order[len(loops)] in with_tail:
            loops = [outer[order[len(loops)]]]
        if loops:
            fused = schedule.fuse(*loops) if len(loops) > 1 else loops[0]
            try_step(schedule.parallel, fused)

    def _parallelize_windows(self, head: list[LoopRV], with_tail: list[LoopRV]) -> None:
        """As few outer loops as keep the threads busy: in what is not fused, the indices of a tile are plain, and
        tiles at the edges can be told from those between them. One loop over tiles of an open size is not fused: each
        access of a tile would divide by sizes, and ask whether it is inside."""
        schedule, count, is_unscheduled = self.schedule, 1, False
        loops: list[LoopRV] = []
        for loop in head[:-1]:
            extent = constant(schedule.get(loop).extent)
            is_unscheduled |= extent is None
            if extent is None and loop in with_tail:
                loops = loops if len(loops) > 1 else [loop]
                break
            loops.append(loop)
            count *= extent or 1
            if count >= 4 * self.target.num_cores or (is_unscheduled and len(loops) > 1):
                break
        if loops and math.prod(axis.extent for axis in self.info.axes) >= PARALLEL_MULTIPLY_ADDS:
            shared = schedule.fuse(*loops) if len(loops) > 1 else loops[0]
            try_step(schedule.parallel, shared)
            head = [shared, *head[head.index(loops[-1]) + 1 :]]
        for loop in head[:-1]:
            if (constant(schedule.get(loop).extent) or 0) >= PARTITIONED_TILES:
                try_step(schedule.annotate, loop, "pragma_loop_partition_hint", 1)

    def _order(
        self, outer: list[int], with_tail: set[int], batch: list[int], columns_first: bool, windows: bool
    ) -> list[int]:
        """Of the loops around a tile."""
        if columns_first and self.tile.copied is None:
            batch = [i for i in self._batch_of_columns() if i in outer]
        rows = [i for i in outer if i not in batch and i != self.tile.axis]
        residue_axes = [i for i in rows if i in self.info.residue_axes]
        if residue_axes and self._rows_are_larger(rows):
            # What threads share a lot of is gone through once, all phases at a time.
            rows = [i for i in rows if i not in residue_axes]
            first = next((n for n, i in enumerate(rows) if self.info.extent(i) > self.tile.size(i)), 0)
            rows[first + 1 : first + 1] = residue_axes
        columns = [self.tile.axis] if self.tile.axis in outer else []
        order = batch + (columns + rows if columns_first else rows + columns)
        if windows:
            return order
        return [i for i in order if i not in with_tail] + [i for i in order if i in with_tail]

    def _rows_are_larger(self, rows: list[int]) -> bool:
        """Whether what differs from row to row is more than what all rows have in common."""
        apart, common = 0, 0
        for read in self.info.reads:
            elements = math.prod(constant(extent) or 1 for extent in read.buffer.shape)
            if any(read.varies(i) for i in rows if i not in self.info.residue_axes):
                apart += elements
            else:
                common += elements
        return apart > common

    def _columns_first(self) -> bool:
        """Whether what a group of columns needs stays in the second level while the rows pass, and all does not."""
        info, tile = self.info, self.tile
        apart = self._batch_of_columns()
        for read in info.reads:
            if read.varies(tile.axis) and any(info.extent(i) > 1 and not read.varies(i) for i in info.spatial):
                every = math.prod(axis.extent for i, axis in enumerate(info.axes) if read.varies(i) and i not in apart)
                return every * 4 > self.target.l2_bytes // 2
        return False

    def _batch_of_columns(self) -> list[int]:
        """Axes that columns differ in: the parts of a long sum."""
        info, tile = self.info, self.tile
        return [
            i
            for i in info.spatial
            if i != tile.axis and any(read.varies(i) and read.varies(tile.axis) for read in info.reads)
        ]

    def _epilogue(self) -> BlockRV:
        """The block that takes results out of the registers: the only consumer, else a copy."""
        schedule, info = self.schedule, self.info
        apart = interleaved_results(info)
        chosen = epilogue_or_copy(schedule, info, len(info.spatial) - len(apart))
        if apart:
            # The results of one phase lie apart from one another in memory, and together in registers.
            layout = residue_index_map(len(info.store.indices), apart)
            try_step(schedule.transform_block_layout, chosen, layout)
            try_step(schedule.transform_layout, info.block, ("write", 0), layout)
        elif (groups := grouped_results(info)) is not None:
            layout = group_index_map(len(info.store.indices), *groups)
            try_step(schedule.transform_block_layout, chosen, layout)
            try_step(schedule.transform_layout, info.block, ("write", 0), layout)
        return chosen

    def _fuse_epilogue(self, leaving: BlockRV, head: list[LoopRV]) -> BlockRV | None:
        """Moves it to where a tile is complete; None where it has to stay."""
        schedule = self.schedule
        if not head and isinstance(schedule, NestedSchedule):
            try_step(schedule.reverse_compute_at, leaving, schedule.shared[-1])
            if not schedule.contains(leaving):
                return None
        if head:
            try_step(schedule.reverse_compute_at, leaving, head[-1])
            own = schedule.get_loops(leaving)
            if not own or not schedule.get(own[0]).loop_var.same_as(schedule.get(head[0]).loop_var):
                return None
        try_step(schedule.set_scope, self.info.block, 0, "local")
        return leaving

    def _result_dimension(self, axis: int) -> int:
        """The dimension of the results that it runs along: that is how the loops are ordered with which they leave.
        Phases and groups come first, as :meth:`_epilogue` has it."""
        variable = self.info.axes[axis].var
        indices = self.info.store.indices
        groups = None if interleaved_results(self.info) else grouped_results(self.info)
        if axis in self.info.residue_axes or (groups and coefficient(indices[groups[0]], variable) == groups[1]):
            return -1
        return next((n for n, index in enumerate(indices) if coefficient(index, variable) != 0), len(indices))

    def _vector_last(self, own: list[LoopRV], axes: list[int]) -> None:
        """Results leave along the axis of the vectors, too, where that is not the last one."""
        if len(own) == len(axes) and axes.index(self.tile.axis) < len(own) - 1:
            place = axes.index(self.tile.axis)
            try_step(self.schedule.reorder, *own[place + 1 :], own[place])

    def _vectors(self, loops: list[LoopRV]) -> None:
        if not loops:
            return
        try_step(self.schedule.vectorize, loops[-1])
        for loop in loops[:-1]:
            try_step(self.schedule.unroll, loop)
