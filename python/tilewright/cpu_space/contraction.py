"""Contractions: a tile of results in vector registers, the reduction around it, results leave when it is complete."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.cpu_space.draw import Draw, attempt
from tilewright.cpu_space.facts import (
    Facts,
    coefficient,
    constant,
    is_conditional,
    is_parameter,
    is_plain,
    is_spatial,
    named_alike,
    step_after,
)
from tilewright.cpu_space.few_rows import schedule_few_rows
from tilewright.cpu_space.gaps import close_gaps
from tilewright.cpu_space.grouped_product import schedule_groups
from tilewright.cpu_space.groups import apart_by_groups, by_groups, groups_of_results
from tilewright.cpu_space.inside import Inside
from tilewright.cpu_space.long_sums import in_parts, in_several_sums
from tilewright.cpu_space.matrix_tiles import schedule_tiles
from tilewright.cpu_space.narrow import lay_out_along_vectors, turn_along_sums
from tilewright.cpu_space.packing import (
    BALANCED,
    ask_for_rows_ahead,
    copy_in_vectors,
    pack,
    panels_at_a_time,
    share_of_busy_cores,
)
from tilewright.cpu_space.phases import apart_by_phases, phases_of_results
from tilewright.cpu_space.plain import along_results, row_after_row, schedule_reduction
from tilewright.cpu_space.register_tile import (
    ALIASED_BYTES,
    ALIASED_LINES,
    LINE_BYTES,
    RegisterTile,
    bits_of,
    bytes_of,
    cycles_of_lanes_along,
    register_tiles,
)
from tilewright.cpu_space.widening import convert, widen
from tilewright.cpu_space.windows import window_tiles
from tilewright.schedule import BlockRV, LoopRV, Schedule

#: what asks lowering to leave out terms of padding
SKIPS_PADDING = "skip_zero_terms_of_padding"
#: tiles that a search draws from
_TILES = 16
#: padded elements that are used less often are made where they are used
_FEW_USES = 16
#: sums that stay in registers while rows are added to them
_FEW_VECTORS = 8
#: tiles side by side of which those at the edges are worth code of their own
_BETWEEN_EDGES = 8
#: by how much an estimate has to be better to be taken for that
_NEARLY = 1.15
#: estimates of which one is at most so many times the other leave both to a search
_CLOSE = 2.0
#: least multiply-adds that are worth waking other threads
_SHARED_WORK = 1 << 19


def schedule_contraction(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> None:
    """Tiles a contraction; one that no tile of registers fits stays as it is."""
    if facts.parts:
        _in_registers(schedule, facts, target, draw)
        return
    if schedule_tiles(schedule, facts, target, draw) or schedule_groups(schedule, facts, target, draw):
        return
    facts, widened = widen(schedule, facts)
    _schedule(schedule, facts, target, draw)
    convert(schedule, widened, target, draw)


def _schedule(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> None:
    """One without instructions of its own."""
    facts = apart_by_groups(schedule, facts, target)
    windows = window_tiles(facts, target)
    if windows and not draw.choose(2):
        _Contraction(schedule, facts, windows[draw.choose(min(len(windows), _TILES))], target, draw).run(True)
        return
    along = along_results(facts, target)
    if along is not None and _is_used_once(facts, along, target) and row_after_row(schedule, facts, along, target):
        return
    facts = lay_out_along_vectors(schedule, facts, target)
    if not facts.reduced:
        return  # of one step, whose axis is gone with the old layout
    facts = close_gaps(schedule, facts, target)
    if schedule_few_rows(schedule, facts, target, draw):
        return
    facts = in_parts(schedule, facts, target, draw)
    _in_registers(schedule, in_several_sums(schedule, facts, target), target, draw)


def _in_registers(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> None:
    tiles = register_tiles(facts, target)
    if tiles and _takes_lanes_along(tiles[0].cycles, cycles_of_lanes_along(facts, target), draw):
        # Here: parts of sums are a block that nobody else knows.
        schedule_reduction(schedule, facts, target, draw)
        return
    if tiles and not facts.parts and turn_along_sums(schedule, facts, target, tiles[0].cycles / 2):
        return
    near = [tile for tile in tiles[:_TILES] if tile.cycles <= 2 * tiles[0].cycles]
    if near:
        _Contraction(schedule, facts, near[draw.choose(len(near))], target, draw).run()


def _takes_lanes_along(of_tile: float, of_lanes: float, draw: Draw) -> bool:
    """Whether partial sums of one result lie in the lanes, and not sums of several: where the estimate expects so, or
    nearly so and drawn."""
    better = of_tile > _NEARLY * of_lanes
    is_close = of_tile < _CLOSE * of_lanes and of_lanes < _CLOSE * of_tile
    return better != (is_close and draw.choose(2) == 1)


def _is_used_once(facts: Facts, along: int, target: _core.Target) -> bool:
    """Whether most of the work is to bring an operand of which each element takes part in one product only, as the
    matrix of a vector times a matrix."""
    for read in facts.reads:
        shape = [constant(extent) for extent in read.buffer.shape]
        if None in shape or read.strides[along] != 1:
            continue
        elements = math.prod(extent or 1 for extent in shape)
        if (
            elements * bits_of(read.buffer.dtype) // 8 > target.l1_bytes
            and facts.extent(along) * bits_of(facts.store.buffer.dtype) > _FEW_VECTORS * target.vector_bits
            and math.prod(axis.extent for axis in facts.axes) <= 1.5 * elements
            and all(read.varies(i) for i in (*facts.spatial, *facts.reduced) if facts.extent(i) > 1)
        ):
            return True
    return False


class _Contraction:
    def __init__(self, schedule: Schedule, facts: Facts, tile: RegisterTile, target: _core.Target, draw: Draw) -> None:
        self.schedule, self.facts, self.tile, self.target, self.draw = schedule, facts, tile, target, draw

    def run(self, windows: bool = False) -> None:
        """`windows`: write out the whole sum of a tile, and make its padding there."""
        schedule, facts, tile, target, draw = self.schedule, self.facts, self.tile, self.target, self.draw
        leaving = self._leaving()
        copied = tile.copied
        # The copy is made for one group of columns, once for each value of the axes that it varies with.
        batch = [i for i in facts.spatial if copied is not None and i != tile.axis and facts.reads[copied].varies(i)]
        outer: dict[int, LoopRV] = {}
        inner: dict[int, LoopRV] = {}
        for i in facts.spatial:
            loop, size, extent = facts.axes[i].loop, tile.size(i), facts.extent(i)
            if size == 1:
                outer[i] = loop
            elif size == extent and facts.axes[i].is_fixed:
                inner[i] = loop
            else:
                outer[i], inner[i] = schedule.split(loop, [None, size])
        reduced = [facts.axes[i].loop for i in facts.reduced]
        ways = [*(steps for steps in (4, 2) if not windows and facts.divides(steps, facts.reduced[-1])), 1]
        if copied is None and any(bytes_of(facts, read) > target.l2_bytes for read in facts.reads):
            ways.reverse()  # its rows are asked for step by step
        steps = ways[draw.choose(len(ways))]
        unrolled: list[LoopRV] = reduced if windows else []
        if steps > 1:
            reduced[-1], last = schedule.split(reduced[-1], [None, steps])
            unrolled = [last]
        # Loops with a tail stay inside: fused with others, their tails cannot be told apart any more.
        with_tail = {i for i in outer if tile.size(i) > 1 and not facts.divides(tile.size(i), i)}
        columns = [tile.axis] if tile.axis in outer else []
        orders = [self._order(list(outer), with_tail, batch, first, windows) for first in (False, True)]
        columns_first = not windows and (copied is not None or self._columns_first())
        if copied is None and not windows and orders[0] != orders[1] and draw.choose(2):
            columns_first = not columns_first
        order = orders[columns_first]
        if copied is not None and tile.axis in with_tail:
            order = batch + columns + [i for i in order if i not in batch and i != tile.axis]
        tiles = [inner[i] for i in sorted(inner) if i != tile.axis]
        vector = inner.get(tile.axis, facts.axes[tile.axis].loop)
        head = [outer[i] for i in order]
        at = None
        # What all parts have in common is copied once, before them.
        if copied is not None and columns and not facts.is_common(facts.reads[copied]):
            at = outer[tile.axis]
            panels = panels_at_a_time(facts, tile, copied, target, draw)
            if panels > 1:
                # Rows of tiles pass over several groups of columns while what they share is near.
                at, each = schedule.split(at, [None, panels])
                head[order.index(tile.axis)] = outer[tile.axis] = at
                head.append(each)
        elif copied is not None and batch and order[: len(batch)] == batch:
            # One group of columns is all of them: the copy is made once for each value of those axes.
            at = outer[batch[-1]]
        band = self._band(order, outer, with_tail) if at is None and not windows and not facts.parts else None
        if band is not None:
            axis, size = band
            outer[axis], each = schedule.split(outer[axis], [None, size])
            head[order.index(axis) : order.index(axis) + 1] = [outer[axis], each]
        schedule.reorder(*head, *([] if windows else reduced), *unrolled, *tiles, vector)
        # Without such axes the copy of the one group is made before.
        packed = pack(schedule, facts, copied, at) if copied is not None and (at is not None or not batch) else None
        store = self._leave(leaving, head)
        depth = len(head)
        if store is not None:
            self._lanes_last(schedule.get_loops(store)[depth:], sorted(inner, key=self._place_in_results))
        begin = None
        # Where the reduction may be empty, results would begin on a condition, which no parallel loop is proved with.
        if reduced and all(facts.axes[i].is_fixed for i in facts.reduced):
            begin = attempt(schedule.decompose_reduction, facts.block, reduced[0])
        for block in (store, begin):
            if block is not None:
                self._vectors(schedule.get_loops(block)[depth:])
        self._vectors([*unrolled, *tiles, vector])
        if packed is not None and copied is not None:
            depth = head.index(at) + 1 if at is not None else 0
            copy_in_vectors(schedule, facts, tile, copied, packed, depth, target)
            if isinstance(schedule, Inside) and not schedule.runs(packed):
                attempt(schedule.parallel, schedule.get_loops(packed)[0])
        elif reduced and not windows:
            ask_for_rows_ahead(schedule, facts, tile, reduced[-1], target)
        self._keep_rows_apart()
        if not windows and self._padding():
            schedule.annotate(facts.block, SKIPS_PADDING, 1)
        if windows and head:
            self._compute_padding(head[-1], len(head))
        elif band is not None:
            self._compute_padding(outer[band[0]])
        if windows:
            self._share_outermost(head, [outer[i] for i in with_tail])
            return
        innermost = band[0] if band is not None else None
        if packed is not None and at is not None:
            innermost = tile.axis if columns else batch[-1]
        self._share(order, outer, with_tail, innermost)

    def _padding(self) -> list[BlockRV]:
        """Blocks that make operands on a condition, for this one alone."""
        schedule = self.schedule
        producers = schedule.get_producers(self.facts.block)
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

    def _band(self, order: list[int], outer: dict[int, LoopRV], with_tail: set[int]) -> tuple[int, int] | None:
        """Where padded elements are used a few times only: how many steps of the outermost axis they are made for at a
        time, so that they need not leave the second level."""
        facts, schedule = self.facts, self.schedule
        padding = self._padding()
        longer = [i for i in order if facts.extent(i) > 1]
        if len(padding) != 1 or not longer or longer[0] in (*with_tail, self.tile.axis, *facts.phases):
            return None
        written = schedule.get(padding[0]).writes[0].buffer
        shape = [constant(extent) for extent in written.shape]
        if None in shape or self.tile.size(longer[0]) > 1 or not facts.axes[longer[0]].is_fixed:
            return None
        elements = math.prod(extent or 1 for extent in shape)
        if math.prod(axis.extent for axis in facts.axes) >= _FEW_USES * elements:
            return None
        extent = facts.extent(longer[0])
        each = elements * (bits_of(written.dtype) // 8) / extent
        most = self.target.l2_bytes / 4 / each
        if self.target.num_cores > 1:
            most = min(most, extent / (2 * self.target.num_cores))
        sizes = [size for size in range(1, extent) if extent % size == 0 and size <= most]
        return (longer[0], sizes[-1]) if sizes and sizes[-1] > 1 else None

    def _compute_padding(self, at: LoopRV, unrolled_below: int | None = None) -> None:
        schedule = self.schedule
        for block in self._padding():
            attempt(schedule.compute_at, block, at)
            loops = schedule.get_loops(block)
            if unrolled_below is None:
                attempt(schedule.vectorize, loops[-1])
            else:
                self._vectors(loops[unrolled_below:])

    def _keep_rows_apart(self) -> None:
        """Rows of a tile that lie a power of two apart fall on few sets of the first level; those of a padded copy get
        a line of distance each."""
        schedule, tile = self.schedule, self.tile
        for block in self._padding():
            written = schedule.get(block).writes[0].buffer
            width = bits_of(written.dtype) // 8
            number = named_alike([each.buffer for each in self.facts.reads], written)
            read = None if number is None else self.facts.reads[number]
            if read is None or read.varies(tile.axis):
                continue
            steps = {i: abs(read.strides[i] or 0) * width for i, _ in tile.rows if read.strides[i]}
            lines = math.prod(tile.size(i) for i in steps)
            together = math.gcd(ALIASED_BYTES, *steps.values())
            if lines * together <= ALIASED_BYTES * ALIASED_LINES // 2:
                continue
            nearest = self.facts.axes[min(steps, key=lambda i: steps[i])].var
            place = next((n for n, index in enumerate(read.indices) if coefficient(index, nearest) != 0), None)
            if place is not None:
                attempt(schedule.storage_align, block, 0, place, together // width, LINE_BYTES // width)

    def _share(self, order: list[int], outer: dict[int, LoopRV], with_tail: set[int], last: int | None) -> None:
        """Outer loops in parallel: those before the first with a tail, none below the loop that a copy is made in, and
        two where the length of one is open: what is fused has to be divided by it again."""
        schedule, loops, count, is_open = self.schedule, [], 1, False
        if self.facts.parts or math.prod(axis.extent for axis in self.facts.axes) < _SHARED_WORK:
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
            is_few = False  # each copies its own
        if is_few and len(loops) < len(order) and order[len(loops)] in with_tail:
            loops = [outer[order[len(loops)]]]
        if loops:
            fused = schedule.fuse(*loops) if len(loops) > 1 else loops[0]
            attempt(schedule.parallel, fused)

    def _share_outermost(self, head: list[LoopRV], with_tail: list[LoopRV]) -> None:
        """As few outer loops as keep the threads busy: in what is not fused, the indices of a tile are plain, and
        tiles at the edges can be told from those between them. One loop over tiles of an open size is not fused: each
        access of a tile would divide by sizes, and ask whether it is inside."""
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
        if loops and math.prod(axis.extent for axis in self.facts.axes) >= _SHARED_WORK:
            shared = schedule.fuse(*loops) if len(loops) > 1 else loops[0]
            attempt(schedule.parallel, shared)
            head = [shared, *head[head.index(loops[-1]) + 1 :]]
        for loop in head[:-1]:
            if (constant(schedule.get(loop).extent) or 0) >= _BETWEEN_EDGES:
                attempt(schedule.annotate, loop, "pragma_loop_partition_hint", 1)

    def _order(
        self, outer: list[int], with_tail: set[int], batch: list[int], columns_first: bool, windows: bool
    ) -> list[int]:
        """Of the loops around a tile."""
        if columns_first and self.tile.copied is None:
            batch = [i for i in self._apart_from_columns() if i in outer]
        rows = [i for i in outer if i not in batch and i != self.tile.axis]
        phases = [i for i in rows if i in self.facts.phases]
        if phases and self._rows_are_larger(rows):
            # What threads share a lot of is gone through once, all phases at a time.
            rows = [i for i in rows if i not in phases]
            first = next((n for n, i in enumerate(rows) if self.facts.extent(i) > self.tile.size(i)), 0)
            rows[first + 1 : first + 1] = phases
        columns = [self.tile.axis] if self.tile.axis in outer else []
        order = batch + (columns + rows if columns_first else rows + columns)
        if windows:
            return order
        return [i for i in order if i not in with_tail] + [i for i in order if i in with_tail]

    def _rows_are_larger(self, rows: list[int]) -> bool:
        """Whether what differs from row to row is more than what all rows have in common."""
        apart, common = 0, 0
        for read in self.facts.reads:
            elements = math.prod(constant(extent) or 1 for extent in read.buffer.shape)
            if any(read.varies(i) for i in rows if i not in self.facts.phases):
                apart += elements
            else:
                common += elements
        return apart > common

    def _columns_first(self) -> bool:
        """Whether what a group of columns needs stays in the second level while the rows pass, and all does not."""
        facts, tile = self.facts, self.tile
        apart = self._apart_from_columns()
        for read in facts.reads:
            if read.varies(tile.axis) and any(facts.extent(i) > 1 and not read.varies(i) for i in facts.spatial):
                every = math.prod(axis.extent for i, axis in enumerate(facts.axes) if read.varies(i) and i not in apart)
                return every * 4 > self.target.l2_bytes // 2
        return False

    def _apart_from_columns(self) -> list[int]:
        """Axes that columns differ in: the parts of a long sum."""
        facts, tile = self.facts, self.tile
        return [
            i
            for i in facts.spatial
            if i != tile.axis and any(read.varies(i) and read.varies(tile.axis) for read in facts.reads)
        ]

    def _leaving(self) -> BlockRV:
        """The block that takes results out of the registers: the only consumer, else a copy."""
        schedule, facts = self.schedule, self.facts
        apart = phases_of_results(facts)
        chosen = step_after(schedule, facts, len(facts.spatial) - len(apart))
        if apart:
            # The results of one phase lie apart from one another in memory, and together in registers.
            layout = apart_by_phases(len(facts.store.indices), apart)
            attempt(schedule.transform_block_layout, chosen, layout)
            attempt(schedule.transform_layout, facts.block, ("write", 0), layout)
        elif (groups := groups_of_results(facts)) is not None:
            layout = by_groups(len(facts.store.indices), *groups)
            attempt(schedule.transform_block_layout, chosen, layout)
            attempt(schedule.transform_layout, facts.block, ("write", 0), layout)
        return chosen

    def _leave(self, leaving: BlockRV, head: list[LoopRV]) -> BlockRV | None:
        """Moves it to where a tile is complete; None where it has to stay."""
        schedule = self.schedule
        if not head and isinstance(schedule, Inside):
            attempt(schedule.reverse_compute_at, leaving, schedule.shared[-1])
            if not schedule.runs(leaving):
                return None
        if head:
            attempt(schedule.reverse_compute_at, leaving, head[-1])
            own = schedule.get_loops(leaving)
            if not own or not schedule.get(own[0]).loop_var.same_as(schedule.get(head[0]).loop_var):
                return None
        attempt(schedule.set_scope, self.facts.block, 0, "local")
        return leaving

    def _place_in_results(self, axis: int) -> int:
        """The dimension of the results that it runs along: that is how the loops are ordered with which they leave.
        Phases and groups come first, as :meth:`_leaving` has it."""
        variable = self.facts.axes[axis].var
        indices = self.facts.store.indices
        groups = None if phases_of_results(self.facts) else groups_of_results(self.facts)
        if axis in self.facts.phases or (groups and coefficient(indices[groups[0]], variable) == groups[1]):
            return -1
        return next((n for n, index in enumerate(indices) if coefficient(index, variable) != 0), len(indices))

    def _lanes_last(self, own: list[LoopRV], axes: list[int]) -> None:
        """Results leave along the axis of the vectors, too, where that is not the last one."""
        if len(own) == len(axes) and axes.index(self.tile.axis) < len(own) - 1:
            place = axes.index(self.tile.axis)
            attempt(self.schedule.reorder, *own[place + 1 :], own[place])

    def _vectors(self, loops: list[LoopRV]) -> None:
        if not loops:
            return
        attempt(self.schedule.vectorize, loops[-1])
        for loop in loops[:-1]:
            attempt(self.schedule.unroll, loop)
