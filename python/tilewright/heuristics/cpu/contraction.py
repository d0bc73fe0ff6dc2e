"""Contractions with a register tile: a tile of results in vector registers, the reduction around it, and an epilogue
that takes results away when a tile is complete."""

from __future__ import annotations

import math

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
from tilewright.schedule import BlockRV, LoopRV

#: the annotation that lets lowering skip terms of padding
SKIPS_PADDING = "skip_zero_terms_of_padding"


def schedule_register_tile(match: Match) -> bool:
    """Schedule a contraction with one of the best register tiles; return whether there is one."""
    tiles = register_tiles(match.info, match.target)
    near = [tile for tile in tiles[:SAMPLED_TILES] if tile.cycles <= 2 * tiles[0].cycles]
    if near:
        _Contraction(match, near[match.sampler.choose(len(near))]).run()
    return bool(near)


def schedule_window(match: Match) -> bool:
    """Schedule a reduction over sliding windows, unrolled as a whole; return whether it is one."""
    tiles = window_tiles(match.info, match.target)
    if not tiles or match.sampler.choose(2):
        return False
    _Contraction(match, tiles[match.sampler.choose(min(len(tiles), SAMPLED_TILES))], unrolled=True).run()
    return True


class _Contraction:
    """Args:
    match: the contraction.
    tile: of its results.
    unrolled: unroll the whole reduction of a tile, and make its padding there.
    """

    def __init__(self, match: Match, tile: RegisterTile, unrolled: bool = False) -> None:
        self.schedule, self.info, self.target = match.schedule, match.info, match.target
        self.match, self.tile, self.unrolled = match, tile, unrolled

    def run(self) -> None:
        schedule, info, tile, choose = self.schedule, self.info, self.tile, self.match.sampler.choose
        epilogue = self._epilogue()
        copied = tile.copied
        # A panel is copied once for each value of the axes that it varies with.
        batch = [i for i in info.spatial if copied is not None and i != tile.axis and info.reads[copied].varies(i)]
        outer: dict[int, LoopRV] = {}
        inner: dict[int, LoopRV] = {}
        for i in info.spatial:
            loop, size = info.axes[i].loop, tile.size(i)
            if size == 1:
                outer[i] = loop
            elif size == info.extent(i) and info.axes[i].is_fixed:
                inner[i] = loop
            else:
                outer[i], inner[i] = schedule.split(loop, [None, size])
        reduced = info.loops(info.reduced)
        ways = [*(steps for steps in (4, 2) if not self.unrolled and info.divides(steps, info.reduced[-1])), 1]
        if copied is None and any(info.bytes_read(read) > self.target.l2_bytes for read in info.reads):
            ways.reverse()  # its rows are prefetched step by step
        steps = ways[choose(len(ways))]
        unrolled: list[LoopRV] = reduced if self.unrolled else []
        if steps > 1:
            reduced[-1], last = schedule.split(reduced[-1], [None, steps])
            unrolled = [last]
        # Loops with a tail stay inside: the tail of a fused loop cannot be peeled.
        with_tail = {i for i in outer if tile.size(i) > 1 and not info.divides(tile.size(i), i)}
        columns = [tile.axis] if tile.axis in outer else []
        orders = [self._order(list(outer), with_tail, batch, first) for first in (False, True)]
        columns_first = not self.unrolled and (copied is not None or self._columns_first())
        if copied is None and not self.unrolled and orders[0] != orders[1] and choose(2):
            columns_first = not columns_first
        order = orders[columns_first]
        if copied is not None and tile.axis in with_tail:
            order = batch + columns + [i for i in order if i not in batch and i != tile.axis]
        tiles = [inner[i] for i in sorted(inner) if i != tile.axis]
        vector = inner.get(tile.axis, info.axes[tile.axis].loop)
        head = [outer[i] for i in order]
        at = None
        # What all parts share is copied once, before them.
        if copied is not None and columns and not info.is_common(info.reads[copied]):
            at = outer[tile.axis]
            panels = panels_at_a_time(self.match, tile, copied)
            if panels > 1:
                # Rows of tiles pass over several panels while what they share is near.
                at, each = schedule.split(at, [None, panels])
                head[order.index(tile.axis)] = outer[tile.axis] = at
                head.append(each)
        elif copied is not None and batch and order[: len(batch)] == batch:
            # One panel is all columns: it is copied once for each value of those axes.
            at = outer[batch[-1]]
        padded = self._padded_rows(order, with_tail) if at is None and not self.unrolled and not info.parts else None
        if padded is not None:
            axis, size = padded
            outer[axis], each = schedule.split(outer[axis], [None, size])
            head[order.index(axis) : order.index(axis) + 1] = [outer[axis], each]
        schedule.reorder(*head, *([] if self.unrolled else reduced), *unrolled, *tiles, vector)
        # Without such axes the copy of the one panel is made before.
        packed = pack(self.match, copied, at) if copied is not None and (at is not None or not batch) else None
        depth = len(head)
        fused = [epilogue] if self._fuse_epilogue(epilogue, head) else []
        for block in fused:
            self._vector_last(schedule.get_loops(block)[depth:], sorted(inner, key=self._result_dimension))
        begin = None
        # An empty reduction would start results on a condition, which no parallel loop is proved with.
        if reduced and all(info.axes[i].is_fixed for i in info.reduced):
            begin = try_step(schedule.decompose_reduction, info.block, reduced[0])
        for block in [*fused, *([] if begin is None else [begin])]:
            vectorize_last(schedule, schedule.get_loops(block)[depth:])
        vectorize_last(schedule, [*unrolled, *tiles, vector])
        if packed is not None and copied is not None:
            depth = head.index(at) + 1 if at is not None else 0
            copy_in_vectors(self.match, tile, copied, packed, depth)
            if isinstance(schedule, NestedSchedule) and not schedule.contains(packed):
                try_step(schedule.parallel, schedule.get_loops(packed)[0])
        elif reduced and not self.unrolled:
            prefetch_rows(self.match, tile, reduced[-1])
        self._avoid_aliasing()
        if self.unrolled:
            if head:
                self._compute_padding(head[-1], len(head))
            self._parallelize_windows(head, [outer[i] for i in with_tail])
            return
        if self._padding():
            schedule.annotate(info.block, SKIPS_PADDING, 1)
        if padded is not None:
            self._compute_padding(outer[padded[0]])
        innermost = padded[0] if padded is not None else None
        if packed is not None and at is not None:
            innermost = tile.axis if columns else batch[-1]
        self._parallelize(order, outer, with_tail, innermost)

    def _padding(self) -> list[BlockRV]:
        """Blocks that make operands on a condition, for this one alone."""
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
        """Return for how many steps of the outermost axis padded elements are made at a time, so that they stay in L2;
        None if they are used often."""
        info = self.info
        padding = self._padding()
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
        each = elements * width_of(written.dtype) / extent
        most = self.target.l2_bytes / 4 / each
        if self.target.num_cores > 1:
            most = min(most, extent / (2 * self.target.num_cores))
        size = largest_divisor(extent, min(extent - 1, int(most)), 2)
        return None if size is None else (longer[0], size)

    def _compute_padding(self, at: LoopRV, unrolled_below: int | None = None) -> None:
        schedule = self.schedule
        for block in self._padding():
            try_step(schedule.compute_at, block, at)
            loops = schedule.get_loops(block)
            vectorize_last(schedule, loops[-1:] if unrolled_below is None else loops[unrolled_below:])

    def _avoid_aliasing(self) -> None:
        """Rows of a tile that are a power of two apart map to few sets of L1; those of a padded copy get a line of
        distance each."""
        schedule, tile, info = self.schedule, self.tile, self.info
        for block in self._padding():
            written = schedule.get(block).writes[0].buffer
            number = named_alike([each.buffer for each in info.reads], written)
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

    def _parallelize(self, order: list[int], outer: dict[int, LoopRV], with_tail: set[int], last: int | None) -> None:
        """Fuse outer loops into a parallel one: those before the first with a tail, none below the loop that a copy is
        made in, and two if the extent of one is symbolic: fused indices are divided by it."""
        schedule, loops, count, is_open = self.schedule, [], 1, False
        if self.info.parts or self.info.work < PARALLEL_MULTIPLY_ADDS:
            return
        for i in order:
            if i in with_tail:
                break
            loops.append(outer[i])
            extent = constant(schedule.get(outer[i]).extent)
            is_open |= extent is None
            count *= extent or 1
            if i == last or (is_open and len(loops) > 1):
                break
        is_few = not is_open and count < 2 * self.target.num_cores
        if self.tile.copied is not None and share_of_busy_cores(count, self.target) >= BALANCED:
            is_few = False  # each core copies its own
        if is_few and len(loops) < len(order) and order[len(loops)] in with_tail:
            loops = [outer[order[len(loops)]]]
        if loops:
            try_step(schedule.parallel, fuse_all(schedule, loops))

    def _parallelize_windows(self, head: list[LoopRV], with_tail: list[LoopRV]) -> None:
        """Fuse as few outer loops as keep the threads busy: the indices of a tile are affine in what is not fused, and
        tiles at the boundary are known. A loop over tiles with a tail of symbolic size is not
        fused: each access of a tile would divide by sizes, and ask whether it is inside."""
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

    def _order(self, outer: list[int], with_tail: set[int], batch: list[int], columns_first: bool) -> list[int]:
        """Return the axes of the loops around a tile, the outermost first."""
        if columns_first and self.tile.copied is None:
            batch = [i for i in self._batch_of_columns() if i in outer]
        rows = [i for i in outer if i not in batch and i != self.tile.axis]
        residues = [i for i in rows if i in self.info.residue_axes]
        if residues and self._rows_are_larger(rows):
            # What threads share a lot of is read once, for all residues.
            rows = [i for i in rows if i not in residues]
            first = next((n for n, i in enumerate(rows) if self.info.extent(i) > self.tile.size(i)), 0)
            rows[first + 1 : first + 1] = residues
        columns = [self.tile.axis] if self.tile.axis in outer else []
        order = batch + (columns + rows if columns_first else rows + columns)
        if self.unrolled:
            return order
        return [i for i in order if i not in with_tail] + [i for i in order if i in with_tail]

    def _rows_are_larger(self, rows: list[int]) -> bool:
        """Whether what differs from row to row is more than what all rows share."""
        apart, common = 0, 0
        for read in self.info.reads:
            elements = math.prod(constant(extent) or 1 for extent in read.buffer.shape)
            if any(read.varies(i) for i in rows if i not in self.info.residue_axes):
                apart += elements
            else:
                common += elements
        return apart > common

    def _columns_first(self) -> bool:
        """Whether what a panel of columns needs stays in L2 while the rows pass, and all columns do not."""
        info, tile = self.info, self.tile
        batch = self._batch_of_columns()
        for read in info.reads:
            if read.varies(tile.axis) and any(info.extent(i) > 1 and not read.varies(i) for i in info.spatial):
                return info.size(i for i in info.varying(read) if i not in batch) * 4 > self.target.l2_bytes // 2
        return False

    def _batch_of_columns(self) -> list[int]:
        """Axes that columns differ in: the parts of a split reduction."""
        return [
            i
            for i in self.info.spatial
            if i != self.tile.axis and any(read.varies(i) and read.varies(self.tile.axis) for read in self.info.reads)
        ]

    def _epilogue(self) -> BlockRV:
        """Return the block that takes results out of the registers: the only consumer, else a copy."""
        schedule, info = self.schedule, self.info
        strides, groups, rank = interleaved_results(info), grouped_results(info), len(info.store.indices)
        epilogue = epilogue_or_copy(schedule, info, len(info.spatial) - len(strides))
        if strides or groups is not None:
            # Results of one residue class or group are contiguous in the accumulators and strided in memory.
            layout = residue_index_map(rank, strides) if strides else group_index_map(rank, *(groups or (0, 1)))
            try_step(schedule.transform_block_layout, epilogue, layout)
            try_step(schedule.transform_layout, info.block, ("write", 0), layout)
        return epilogue

    def _fuse_epilogue(self, epilogue: BlockRV, head: list[LoopRV]) -> bool:
        """Move it to where a tile is complete; return whether it can be."""
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
        """Return the dimension of the results that an axis runs along, which is the order of the epilogue's loops.
        Residues and groups come first, as :meth:`_epilogue` has it."""
        variable = self.info.axes[axis].var
        indices = self.info.store.indices
        groups = None if interleaved_results(self.info) else grouped_results(self.info)
        if axis in self.info.residue_axes or (groups and coefficient(indices[groups[0]], variable) == groups[1]):
            return -1
        return next((n for n, index in enumerate(indices) if coefficient(index, variable) != 0), len(indices))

    def _vector_last(self, own: list[LoopRV], axes: list[int]) -> None:
        """Vectorize the epilogue along the axis of the vectors, too."""
        if len(own) == len(axes) and axes.index(self.tile.axis) < len(own) - 1:
            place = axes.index(self.tile.axis)
            try_step(self.schedule.reorder, *own[place + 1 :], own[place])
