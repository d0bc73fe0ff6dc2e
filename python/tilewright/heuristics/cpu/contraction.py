"""Contractions with a register tile: a tile of results in vector registers, the reduction around it, and an epilogue
that stores the results of a complete tile."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tilewright.heuristics.block_info import (
    coefficient,
    constant,
    epilogue_or_copy,
    is_conditional,
    is_plain,
    is_spatial,
    named_alike,
    size_of,
    width_of,
)
from tilewright.heuristics.channel_groups import group_index_map, grouped_results
from tilewright.heuristics.cpu.execution import vectorize_last
from tilewright.heuristics.cpu.packing import (
    copy_in_vectors,
    pack,
    panels_at_a_time,
    prefetch_rows,
    share_of_busy_cores,
)
from tilewright.heuristics.cpu.parameters import (
    ALIASED_BYTES,
    ALIASED_LINES,
    BALANCED,
    LINE_BYTES,
    PADDING_USES,
    PARALLEL_MULTIPLY_ADDS,
    PARTITIONED_TILES,
    SAMPLED_TILES,
)
from tilewright.heuristics.cpu.register_tile import RegisterTile, register_tiles
from tilewright.heuristics.cpu.sliding_windows import window_tiles
from tilewright.heuristics.cpu.strided_subproblems import interleaved_results, residue_index_map
from tilewright.heuristics.loops import fuse_all, is_private, largest_divisor, starts_with
from tilewright.heuristics.nested_schedule import NestedSchedule
from tilewright.heuristics.pattern import Match
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule

#: annotation that lets lowering skip terms whose operand is padding
SKIPS_PADDING = "skip_zero_terms_of_padding"


def schedule_register_tile(match: Match) -> bool:
    """Schedule a contraction with one of the best register tiles; return whether there is one."""
    tiles = register_tiles(match.info, match.target)
    near = [tile for tile in tiles[:SAMPLED_TILES] if tile.cycles <= 2 * tiles[0].cycles]
    if near:
        _Contraction(match, near[match.sampler.choose(len(near))]).run()
    return bool(near)


def schedule_window(match: Match) -> bool:
    """Schedule a reduction over sliding windows, unrolled completely; return whether it is scheduled."""
    tiles = window_tiles(match.info, match.target)
    if not tiles:
        return False
    if match.sampler.choose(2):
        return False  # a search also samples the patterns below
    _Contraction(match, tiles[match.sampler.choose(min(len(tiles), SAMPLED_TILES))], unrolled=True).run()
    return True


@dataclass
class _Loops:
    """The loops of a contraction.

    Attributes:
        outer: for each axis that has several tiles, the loop over them.
        inner: for each axis that a tile extends along, the loop within a tile.
        with_tail: axes whose last tile may be smaller.
        reduced: loops of the reduction.
        unrolled: the innermost of these loops, which are unrolled.
        order: the axes in `outer`, the outermost loop first.
        head: the loops around a tile, outermost first: those of `outer`, and others split from them.
    """

    outer: dict[int, LoopRV]
    inner: dict[int, LoopRV]
    with_tail: set[int]
    reduced: list[LoopRV]
    unrolled: list[LoopRV] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    head: list[LoopRV] = field(default_factory=list)

    def split_outer(self, schedule: Schedule, axis: int, size: int) -> LoopRV:
        """Split the outer loop of an axis into blocks of `size` tiles; return the loop over the tiles of a block."""
        whole = self.outer[axis]
        self.outer[axis], tiles = schedule.split(whole, [None, size])
        self.head[self.head.index(whole)] = self.outer[axis]
        return tiles


class _Contraction:
    """Schedule one contraction with one register tile.

    Args:
        match: the contraction.
        tile: register tile of the results.
        unrolled: unroll the whole reduction of a tile, and compute the padding of its operands inside the tile.
    """

    def __init__(self, match: Match, tile: RegisterTile, unrolled: bool = False) -> None:
        self.schedule, self.info, self.target = match.schedule, match.info, match.target
        self.match, self.tile, self.unrolled = match, tile, unrolled
        packed = None if tile.copied is None else self.info.reads[tile.copied]
        #: axes that the packed operand varies with besides the columns: each of their values has its own panels
        self.batch = [i for i in self.info.spatial if packed is not None and i != tile.axis and packed.varies(i)]

    def run(self) -> None:
        """Apply the steps to the schedule."""
        schedule, tile = self.schedule, self.tile
        epilogue = self._epilogue()
        loops = self._split()
        self._unroll_reduction(loops)
        self._order_outer(loops)
        packing_axis = self._packing_axis(loops)
        if packing_axis == tile.axis:
            self._split_panels(loops)
        # Without a loop to pack at, the whole operand is packed before all loops.
        at = None if packing_axis is None else loops.outer[packing_axis]
        padded_axis = self._split_padded_rows(loops) if at is None else None
        tiles = [loops.inner[i] for i in sorted(loops.inner) if i != tile.axis]
        vector = loops.inner.get(tile.axis, self.info.axes[tile.axis].loop)
        reduced = [] if self.unrolled else loops.reduced
        schedule.reorder(*loops.head, *reduced, *loops.unrolled, *tiles, vector)
        packed = None
        if tile.copied is not None and (at is not None or not self.batch):
            packed = pack(self.match, tile.copied, at)
        self._schedule_epilogue_and_init(epilogue, loops)
        vectorize_last(schedule, [*loops.unrolled, *tiles, vector])
        if packed is not None and tile.copied is not None:
            copy_in_vectors(self.match, tile, tile.copied, packed, 0 if at is None else loops.head.index(at) + 1)
            if isinstance(schedule, NestedSchedule) and not schedule.contains(packed):
                try_step(schedule.parallel, schedule.get_loops(packed)[0])
        elif reduced:
            prefetch_rows(self.match, tile, reduced[-1])
        self._avoid_aliasing()
        if self.unrolled:
            if loops.head:
                self._compute_padding(loops.head[-1], len(loops.head))
            self._parallelize_windows(loops.head, [loops.outer[i] for i in loops.with_tail])
            return
        if self._padding_blocks():
            schedule.annotate(self.info.block, SKIPS_PADDING, 1)
        if padded_axis is not None:
            self._compute_padding(loops.outer[padded_axis])
        self._parallelize(loops, packing_axis if padded_axis is None else padded_axis)

    def _split(self) -> _Loops:
        """Split the loops of the results into loops over tiles and loops within a tile."""
        info, tile = self.info, self.tile
        outer: dict[int, LoopRV] = {}
        inner: dict[int, LoopRV] = {}
        for i in info.spatial:
            loop, size = info.axes[i].loop, tile.size(i)
            if size == 1:
                outer[i] = loop
            elif size == info.extent(i) and info.axes[i].is_fixed:
                inner[i] = loop
            else:
                outer[i], inner[i] = self.schedule.split(loop, [None, size])
        with_tail = {i for i in outer if tile.size(i) > 1 and not info.divides(tile.size(i), i)}
        return _Loops(outer, inner, with_tail, info.loops(info.reduced))

    def _unroll_reduction(self, loops: _Loops) -> None:
        """Choose how many steps of the reduction are unrolled: all, or some of the last axis."""
        info = self.info
        if self.unrolled:
            loops.unrolled = loops.reduced
            return
        factors = [*(steps for steps in (4, 2) if info.divides(steps, info.reduced[-1])), 1]
        if self.tile.copied is None and any(info.bytes_read(read) > self.target.l2_bytes for read in info.reads):
            factors.reverse()  # rows of such an operand are prefetched step by step
        steps = factors[self.match.sampler.choose(len(factors))]
        if steps > 1:
            loops.reduced[-1], last = self.schedule.split(loops.reduced[-1], [None, steps])
            loops.unrolled = [last]

    def _order_outer(self, loops: _Loops) -> None:
        """Choose the order of the loops around a tile."""
        axis, is_packed = self.tile.axis, self.tile.copied is not None
        orders = [self._order(list(loops.outer), loops.with_tail, is_first) for is_first in (False, True)]
        columns_first = not self.unrolled and (is_packed or self._columns_first())
        if not is_packed and not self.unrolled and orders[0] != orders[1] and self.match.sampler.choose(2):
            columns_first = not columns_first
        loops.order = orders[columns_first]
        if is_packed and axis in loops.with_tail:
            others = [i for i in loops.order if i not in self.batch and i != axis]
            loops.order = [*self.batch, axis, *others]
        loops.head = [loops.outer[i] for i in loops.order]

    def _packing_axis(self, loops: _Loops) -> int | None:
        """Return the axis in whose outer loop panels are packed; None if the whole operand is packed, or no operand."""
        copied, axis = self.tile.copied, self.tile.axis
        if copied is None:
            return None
        # An operand that all parts of the reduction read is packed once, before the loops over parts.
        if axis in loops.outer and not self.info.is_common(self.info.reads[copied]):
            return axis
        # One panel has all columns: it is packed once for each value of the batch axes.
        is_batch_outside = loops.order[: len(self.batch)] == self.batch
        return self.batch[-1] if self.batch and is_batch_outside else None

    def _split_panels(self, loops: _Loops) -> None:
        """Pack several panels at a time: a row of tiles uses all of them while its own operands are in a cache."""
        if self.tile.copied is not None:
            panels = panels_at_a_time(self.match, self.tile, self.tile.copied)
            if panels > 1:
                loops.head.append(loops.split_outer(self.schedule, self.tile.axis, panels))

    def _split_padded_rows(self, loops: _Loops) -> int | None:
        """Split the outermost axis into blocks whose padded elements fit in L2; return the axis, or None."""
        padded = self._padded_rows(loops.order, loops.with_tail) if not self.unrolled and not self.info.parts else None
        if padded is None:
            return None
        axis, size = padded
        tiles = loops.split_outer(self.schedule, axis, size)
        loops.head.insert(loops.head.index(loops.outer[axis]) + 1, tiles)
        return axis

    def _schedule_epilogue_and_init(self, epilogue: BlockRV, loops: _Loops) -> None:
        """Fuse the epilogue with the loops around a tile, take the init out of the reduction, and vectorize both."""
        schedule, info = self.schedule, self.info
        depth = len(loops.head)
        blocks = []
        if self._fuse_epilogue(epilogue, loops.head):
            blocks.append(epilogue)
            self._vector_last(schedule.get_loops(epilogue)[depth:], sorted(loops.inner, key=self._result_dimension))
        # Symbolic reductions may be empty. The init is then conditional, and parallel iterations cannot be proved to be
        # independent.
        if loops.reduced and all(info.axes[i].is_fixed for i in info.reduced):
            init = try_step(schedule.decompose_reduction, info.block, loops.reduced[0])
            blocks += [] if init is None else [init]
        for block in blocks:
            vectorize_last(schedule, schedule.get_loops(block)[depth:])

    def _padding_blocks(self) -> list[BlockRV]:
        """Return the producers that pad an operand conditionally and have no other consumer."""
        schedule = self.schedule
        return [
            block
            for block in schedule.get_producers(self.info.block)
            if schedule.get(block).writes
            and is_spatial(schedule.get(block))
            and is_conditional(schedule.get(block))
            and is_plain(schedule, schedule.get_loops(block))
            and is_private(schedule, block)
        ]

    def _padded_rows(self, order: list[int], with_tail: set[int]) -> tuple[int, int] | None:
        """Return the outermost axis, and for how many of its steps padded elements are computed at a time, so that they
        stay in L2. Return None if an element has PADDING_USES uses or more, or if the axis cannot be split."""
        info = self.info
        padding = self._padding_blocks()
        longer = [i for i in order if info.extent(i) > 1]
        if len(padding) != 1 or not longer or longer[0] in (*with_tail, self.tile.axis, *info.residue_axes):
            return None
        written = self.schedule.get(padding[0]).writes[0].buffer
        elements = size_of(written)
        if elements is None or self.tile.size(longer[0]) > 1 or not info.axes[longer[0]].is_fixed:
            return None
        if info.work >= PADDING_USES * elements:
            return None
        extent = info.extent(longer[0])
        bytes_per_step = elements * width_of(written.dtype) / extent
        most = self.target.l2_bytes / 4 / bytes_per_step
        if self.target.num_cores > 1:
            most = min(most, extent / (2 * self.target.num_cores))
        size = largest_divisor(extent, min(extent - 1, int(most)), 2)
        return None if size is None else (longer[0], size)

    def _compute_padding(self, at: LoopRV, unrolled_below: int | None = None) -> None:
        schedule = self.schedule
        for block in self._padding_blocks():
            try_step(schedule.compute_at, block, at)
            loops = schedule.get_loops(block)
            vectorize_last(schedule, loops[-1:] if unrolled_below is None else loops[unrolled_below:])

    def _avoid_aliasing(self) -> None:
        """Store the rows of a padded copy one cache line further apart if a tile's rows fill more than half of the L1
        sets that their lines map to, as rows at a distance of a power of two do."""
        schedule, tile, info = self.schedule, self.tile, self.info
        for block in self._padding_blocks():
            written = schedule.get(block).writes[0].buffer
            number = named_alike([read.buffer for read in info.reads], written)
            read = None if number is None else info.reads[number]
            if read is None or read.varies(tile.axis):
                continue
            width = width_of(written.dtype)
            steps = {i: abs(read.strides[i] or 0) * width for i, _ in tile.rows if read.strides[i]}
            lines = math.prod(tile.size(i) for i in steps)
            together = math.gcd(ALIASED_BYTES, *steps.values())
            if lines * together <= ALIASED_BYTES * ALIASED_LINES // 2:
                continue
            nearest = info.axes[min(steps, key=lambda i: steps[i])].var
            dimension = next((n for n, index in enumerate(read.indices) if coefficient(index, nearest) != 0), None)
            if dimension is not None:
                try_step(schedule.storage_align, block, 0, dimension, together // width, LINE_BYTES // width)

    def _parallelize(self, loops: _Loops, last: int | None) -> None:
        """Fuse outer loops into one parallel loop.

        Loops from the first one with a tail on are not fused, nor are those inside the loop of axis `last`, in which
        operands are packed or padded. At most two loops are fused if one has a symbolic extent, because fused indices
        are divided by it.
        """
        schedule, fused, count, is_open = self.schedule, [], 1, False
        if self.info.parts or self.info.work < PARALLEL_MULTIPLY_ADDS:
            return
        for i in loops.order:
            if i in loops.with_tail:
                break
            fused.append(loops.outer[i])
            extent = constant(schedule.get(loops.outer[i]).extent)
            is_open |= extent is None
            count *= extent or 1
            if i == last or (is_open and len(fused) > 1):
                break
        is_few = not is_open and count < 2 * self.target.num_cores
        if self.tile.copied is not None and share_of_busy_cores(count, self.target) >= BALANCED:
            is_few = False  # each core packs its own panels
        if is_few and len(fused) < len(loops.order) and loops.order[len(fused)] in loops.with_tail:
            fused = [loops.outer[loops.order[len(fused)]]]
        if fused:
            try_step(schedule.parallel, fuse_all(schedule, fused))

    def _parallelize_windows(self, head: list[LoopRV], with_tail: list[LoopRV]) -> None:
        """Fuse only as many outer loops as keep the threads busy, and make the result parallel.

        Indices are affine in loops that are not fused, so that lowering can separate the tiles at the boundary. A loop
        with a symbolic extent and a tail is not fused: each access of a tile would divide by sizes and check bounds.
        """
        schedule, count, is_open = self.schedule, 1, False
        loops: list[LoopRV] = []
        for loop in head[:-1]:
            extent = constant(schedule.get(loop).extent)
            is_open |= extent is None
            if extent is None and loop in with_tail:
                loops = loops if len(loops) > 1 else [loop]
                break
            loops.append(loop)
            count *= extent or 1
            if count >= 4 * self.target.num_cores or (is_open and len(loops) > 1):
                break
        if loops and self.info.work >= PARALLEL_MULTIPLY_ADDS:
            fused = fuse_all(schedule, loops)
            try_step(schedule.parallel, fused)
            head = [fused, *head[head.index(loops[-1]) + 1 :]]
        for loop in head[:-1]:
            if (constant(schedule.get(loop).extent) or 0) >= PARTITIONED_TILES:
                try_step(schedule.annotate, loop, "pragma_loop_partition_hint", 1)

    def _order(self, outer: list[int], with_tail: set[int], columns_first: bool) -> list[int]:
        """Return the axes of the loops around a tile, the outermost first. Loops with a tail are the innermost ones,
        because the tail of a fused loop cannot be peeled."""
        batch = self.batch
        if columns_first and self.tile.copied is None:
            batch = [i for i in self._batch_of_columns() if i in outer]
        rows = [i for i in outer if i not in batch and i != self.tile.axis]
        residues = [i for i in rows if i in self.info.residue_axes]
        if residues and self._rows_are_larger(rows):
            # The rows vary with large operands, which are then read once for all residues.
            rows = [i for i in rows if i not in residues]
            first = next((n for n, i in enumerate(rows) if self.info.extent(i) > self.tile.size(i)), 0)
            rows[first + 1 : first + 1] = residues
        columns = [self.tile.axis] if self.tile.axis in outer else []
        order = batch + (columns + rows if columns_first else rows + columns)
        if self.unrolled:
            return order
        return [i for i in order if i not in with_tail] + [i for i in order if i in with_tail]

    def _rows_are_larger(self, rows: list[int]) -> bool:
        """Return whether operands that vary with the rows have more elements than the other operands."""
        varying, common = 0, 0
        for read in self.info.reads:
            elements = math.prod(constant(extent) or 1 for extent in read.buffer.shape)
            if any(read.varies(i) for i in rows if i not in self.info.residue_axes):
                varying += elements
            else:
                common += elements
        return varying > common

    def _columns_first(self) -> bool:
        """Return whether the operand with columns exceeds half of L2, so that only a panel of it stays there for all
        rows."""
        info, tile = self.info, self.tile
        batch = self._batch_of_columns()
        for read in info.reads:
            if read.varies(tile.axis) and any(info.extent(i) > 1 and not read.varies(i) for i in info.spatial):
                return info.size(i for i in info.varying(read) if i not in batch) * 4 > self.target.l2_bytes // 2
        return False

    def _batch_of_columns(self) -> list[int]:
        """Return the spatial axes that an operand with columns varies with: batch axes and parts of split-K."""
        return [
            i
            for i in self.info.spatial
            if i != self.tile.axis and any(read.varies(i) and read.varies(self.tile.axis) for read in self.info.reads)
        ]

    def _epilogue(self) -> BlockRV:
        """Return the block that stores results from registers to memory: the only consumer, or a new copy."""
        schedule, info = self.schedule, self.info
        strides, groups, rank = interleaved_results(info), grouped_results(info), len(info.store.indices)
        epilogue = epilogue_or_copy(schedule, info, len(info.spatial) - len(strides))
        if strides or groups is not None:
            # In the accumulators, results of one residue or channel group are contiguous; in memory, they are strided.
            layout = residue_index_map(rank, strides) if strides else group_index_map(rank, *(groups or (0, 1)))
            try_step(schedule.transform_block_layout, epilogue, layout)
            try_step(schedule.transform_layout, info.block, ("write", 0), layout)
        return epilogue

    def _fuse_epilogue(self, epilogue: BlockRV, head: list[LoopRV]) -> bool:
        """Move the epilogue to the end of each tile; return whether the schedule accepts this."""
        schedule = self.schedule
        if head:
            try_step(schedule.reverse_compute_at, epilogue, head[-1])
            if not starts_with(schedule, epilogue, head[0]):
                return False
        elif isinstance(schedule, NestedSchedule):
            try_step(schedule.reverse_compute_at, epilogue, schedule.shared[-1])
            if not schedule.contains(epilogue):
                return False
        try_step(schedule.set_scope, self.info.block, 0, "local")
        return True

    def _result_dimension(self, axis: int) -> int:
        """Return the dimension of the results that an axis moves; the epilogue's loops are in this order. Residues and
        channel groups come first (-1), as :meth:`_epilogue` moves them to the front."""
        variable = self.info.axes[axis].var
        indices = self.info.store.indices
        groups = None if interleaved_results(self.info) else grouped_results(self.info)
        if axis in self.info.residue_axes or (groups and coefficient(indices[groups[0]], variable) == groups[1]):
            return -1
        return next((n for n, index in enumerate(indices) if coefficient(index, variable) != 0), len(indices))

    def _vector_last(self, loops: list[LoopRV], axes: list[int]) -> None:
        """Make the axis of the vectors the innermost one of the epilogue's loops, if they are not in that order."""
        if len(loops) == len(axes) and axes.index(self.tile.axis) < len(loops) - 1:
            position = axes.index(self.tile.axis)
            try_step(self.schedule.reorder, *loops[position + 1 :], loops[position])
