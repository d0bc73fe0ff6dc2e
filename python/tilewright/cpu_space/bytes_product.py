"""Sums of products of bytes, by instructions that add four of them to each of sixteen sums at once."""

from __future__ import annotations

from tilewright import _core, ir
from tilewright.cpu_space.draw import Draw, attempt
from tilewright.cpu_space.facts import Facts
from tilewright.cpu_space.register_tile import RegisterTile, register_tiles
from tilewright.schedule import LoopRV, Schedule

#: sums, and products for each of them, of one instruction
_LANES, _GROUP = 16, 4


def schedule_bytes(schedule: Schedule, facts: Facts, target: _core.Target, draw: Draw) -> bool:
    """Whether a contraction of bytes has an instruction, and takes it."""
    if len(facts.reads) != 2 or facts.store.buffer.dtype != "int32" or facts.phases:
        return False
    # The instructions are scripts; reading them takes longer than most schedules.
    from tilewright.tensor_intrin.x86 import best_dot_16x4

    for left in range(2):
        types = facts.reads[left].buffer.dtype, facts.reads[1 - left].buffer.dtype
        intrin = best_dot_16x4(target, types[0]) if types[1] == "int8" else None
        fitting = _fitting(facts, left, target) if intrin is not None else []
        if intrin is not None and fitting:
            tile = fitting[draw.choose(len(fitting))]
            return bool(attempt(_Bytes(schedule, facts, left, tile, intrin).run))
    return False


def _group_axis(facts: Facts, left: int, axis: int) -> int | None:
    """The reduction along which four bytes of the left operand lie side by side."""
    a, b = facts.reads[left], facts.reads[1 - left]
    for i in facts.reduced:
        if (
            a.strides[i] == 1
            and facts.divides(_GROUP, i)
            and all(_dimension(facts, b.indices, j) is not None for j in (i, axis))
        ):
            return i
    return None


def _dimension(facts: Facts, indices: tuple[object, ...], axis: int) -> int | None:
    """The one index that an axis is."""
    own = [n for n, index in enumerate(indices) if isinstance(index, ir.Var) and index.same_as(facts.axes[axis].var)]
    return own[0] if len(own) == 1 else None


def _fitting(facts: Facts, left: int, target: _core.Target) -> list[RegisterTile]:
    """Tiles of whole instructions, the one that the model expects most of first."""
    a, b = facts.reads[left], facts.reads[1 - left]
    found: list[RegisterTile] = []
    for tile in register_tiles(facts, target):
        rows = dict(tile.rows)
        if (
            tile.columns % _LANES == 0
            and facts.divides(tile.columns, tile.axis)
            and not a.varies(tile.axis)
            and not any(b.varies(i) for i in facts.spatial if i != tile.axis)
            and _group_axis(facts, left, tile.axis) is not None
            and rows not in [dict(other.rows) for other in found if other.columns == tile.columns]
        ):
            found.append(tile)
    return found[:16]


class _Bytes:
    def __init__(self, schedule: Schedule, facts: Facts, left: int, tile: RegisterTile, intrin: str) -> None:
        self.schedule, self.facts, self.left, self.tile, self.intrin = schedule, facts, left, tile, intrin

    def run(self) -> bool:
        schedule, facts, tile = self.schedule, self.facts, self.tile
        group_axis = _group_axis(facts, self.left, tile.axis)
        assert group_axis is not None
        self._pack(group_axis)
        # Loops with a tail stay inside: fused with others, their tails cannot be told apart any more.
        head: list[LoopRV] = []
        with_tail: list[LoopRV] = []
        rows: list[LoopRV] = []
        for i in [tile.axis, *(i for i in facts.spatial if i != tile.axis)]:
            loop = facts.axes[i].loop
            if i == tile.axis:
                outer, vectors, lanes = schedule.split(loop, [None, tile.columns // _LANES, _LANES])
                head.append(outer)
            elif tile.size(i) > 1:
                outer, inner = schedule.split(loop, [None, tile.size(i)])
                (head if facts.divides(tile.size(i), i) else with_tail).append(outer)
                rows.append(inner)
            else:
                head.append(loop)
        reduced = [facts.axes[i].loop for i in facts.reduced if i != group_axis]
        steps, group = schedule.split(facts.axes[group_axis].loop, [None, _GROUP])
        every = [*head, *with_tail]
        schedule.reorder(*every, *reduced, steps, *rows, vectors, lanes, group)
        leaving = schedule.cache_write(facts.block, 0, "local")
        schedule.reverse_compute_at(leaving, every[-1])
        begin = schedule.decompose_reduction(facts.block, [*reduced, steps][0])
        schedule.tensorize(lanes, self.intrin)
        for block in (begin, leaving):
            own = schedule.get_loops(block)[len(every) :]
            attempt(schedule.vectorize, own[-1])
            for loop in own[:-1]:
                attempt(schedule.unroll, loop)
        for loop in (*rows, vectors):
            schedule.unroll(loop)
        attempt(schedule.parallel, schedule.fuse(*head) if len(head) > 1 else head[0])
        return True

    def _pack(self, group_axis: int) -> None:
        schedule, facts, tile = self.schedule, self.facts, self.tile
        operand = facts.reads[1 - self.left]
        number = next(
            n for n, region in enumerate(schedule.get(facts.block).reads) if region.buffer.same_as(operand.buffer)
        )
        packed = schedule.cache_read(facts.block, number, "global")
        indices = [ir.Var(f"i{n}", "int32") for n in range(len(operand.indices))]
        j, k = (indices[_dimension(facts, operand.indices, i) or 0] for i in (tile.axis, group_axis))
        others = [index for index in indices if index is not j and index is not k]
        layout = ir.IndexMap(indices, [j // _LANES, *others, k // _GROUP, j % _LANES, k % _GROUP])
        schedule.transform_layout(packed, ("write", 0), layout)
