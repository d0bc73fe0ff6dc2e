"""Which tile of results to keep in vector registers, by a model of one core.

A step of the reduction does `rows * vectors` multiply-adds on two ports; it loads what varies with the tile, each
vector or broadcast once, through two more. The sums stay in registers, so `rows * vectors` of them, the vectors of one
operand and a broadcast have to fit. Fewer than eight sums wait for one another: a multiply-add takes four cycles.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from tilewright import _core
from tilewright.cpu_space.facts import Facts, Operand
from tilewright.cpu_space.phases import phases_of_results
from tilewright.support.numpy_dtype import numpy_dtype

#: bytes that a cycle brings from the second level, and from what is behind it
_L2_BYTES_PER_CYCLE = 32
_L3_BYTES_PER_CYCLE = 10
#: share of the time that these take which the multiply-adds do not hide
_EXPOSED = 0.35
#: share of the shorter that two things take which go on side by side
_NOT_HIDDEN = 0.1
#: cycles that copying one element of an operand takes, with its vectors as they lie, and turned round
_COPY_CYCLES, _TURN_CYCLES = 0.25, 0.7
#: tiles that have to use a copy whose vectors lie side by side without it: fewer do not pay for the way to memory
_LEAST_USES = 6
#: of adding up the lanes of one result
_END_CYCLES = 4.0
#: cycles of a tile besides its steps
_START_CYCLES = 30
#: of a line of a cache
LINE_BYTES = 64
#: how many times as long it takes to bring vectors that lie across two lines each
_ACROSS_LINES = 1.5
#: lines of the first level that fall on one another when they are this many bytes apart, and how many can
ALIASED_BYTES, ALIASED_LINES = 4096, 8


@dataclass(frozen=True)
class RegisterTile:
    """A tile: `vectors` side by side along one axis, and so many steps of others.

    Attributes:
        axis: of the vectors.
        rows: steps by axis, in the order of the axes.
        copied: the number of the read that is copied before it is used, so that its vectors lie side by side.
        cycles: that the model expects for all of the block.
    """

    axis: int
    lanes: int
    vectors: int
    rows: tuple[tuple[int, int], ...]
    copied: int | None
    cycles: float

    @property
    def columns(self) -> int:
        """Steps along the axis of the vectors."""
        return self.vectors * self.lanes

    def size(self, axis: int) -> int:
        """Steps along an axis."""
        return self.columns if axis == self.axis else dict(self.rows).get(axis, 1)


def bits_of(dtype: str) -> int:
    """Of one element."""
    return numpy_dtype(dtype).itemsize * 8


def bytes_of(facts: Facts, read: Operand) -> int:
    """Of all that a contraction reads of an operand."""
    elements = math.prod(axis.extent for i, axis in enumerate(facts.axes) if read.varies(i))
    return elements * bits_of(read.buffer.dtype) // 8


#: tiles by what they depend on: a search asks for those of the same block for each of its candidates
_known: dict[tuple[Hashable, ...], tuple[RegisterTile, ...]] = {}
_MOST_KNOWN = 64


def register_tiles(facts: Facts, target: _core.Target) -> tuple[RegisterTile, ...]:
    """Tiles for a contraction, the one that the model expects most of first; none where no tile can be vectors."""
    limits = target.vector_bits, target.vector_registers, target.l1_bytes, target.l2_bytes
    interleaved = bool(phases_of_results(facts))
    key = (facts.sizes_and_strides(), interleaved, limits)
    with contextlib.suppress(KeyError):
        return _known[key]
    tiles = tuple(_estimated_tiles(facts, interleaved, target))
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = tiles
    return tiles


def _estimated_tiles(facts: Facts, interleaved: bool, target: _core.Target) -> list[RegisterTile]:
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    tiles = [
        tile
        for axis in _vector_axes(facts, lanes)
        for vectors in range(1, min(math.ceil(facts.extent(axis) / lanes), 8) + 1)
        if not facts.periods[axis] or facts.periods[axis] % (vectors * lanes) == 0
        if _may_cut(facts, interleaved, axis, vectors * lanes)
        for rows in _rows(facts, interleaved, axis, vectors, target.vector_registers)
        for copied in _copies(facts, axis, dict(rows))
        if (tile := _Estimate(facts, target, axis, lanes, vectors, dict(rows), copied).tile()) is not None
    ]
    # Of equals the one with rows along an inner axis, where memory is near.
    return sorted(tiles, key=lambda tile: (tile.cycles, [-axis for axis, _ in tile.rows]))


def _vector_axes(facts: Facts, lanes: int) -> list[int]:
    """The axis that results lie along; where that is short, any."""
    axes = [i for i in _tiled(facts) if facts.store.strides[i] not in (0, None)]
    along = [i for i in axes if facts.store.strides[i] == 1 and 2 * facts.extent(i) >= lanes]
    return along or axes


def _tiled(facts: Facts) -> list[int]:
    """What a tile may extend along."""
    return [i for i in facts.spatial if facts.extent(i) > 1 and i not in facts.phases]


def _may_cut(facts: Facts, interleaved: bool, axis: int, size: int) -> bool:
    """Whether a tile of so many steps can be cut off at the end: `interleaved` results of one phase have others between
    them, so that what a part of a tile leaves there is not proved; nor is it at the end of a part of an axis."""
    whole = (not interleaved or facts.store.strides[axis] == 1) and not facts.axes[axis].is_part
    return whole or facts.divides(size, axis)


def _rows(
    facts: Facts, interleaved: bool, axis: int, vectors: int, registers: int
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Steps of other axes, inner ones whole before outer ones begin; any may be left out."""
    # One register for each vector of the operand and one for the broadcast.
    limit = (registers - 1 - vectors) // vectors
    if limit < 1:
        return
    inner_first = [i for i in reversed(_tiled(facts)) if i != axis]

    def grow(at: int, size: int, rows: dict[int, int]) -> Iterator[tuple[tuple[int, int], ...]]:
        yield tuple(sorted(rows.items()))
        if at == len(inner_first):
            return
        yield from grow(at + 1, size, rows)
        chosen, extent = inner_first[at], facts.extent(inner_first[at])
        passes = 0
        for steps in range(2, min(extent, limit // size) + 1):
            divided = not facts.periods[chosen] or facts.periods[chosen] % steps == 0
            if not divided or not _may_cut(facts, interleaved, chosen, steps):
                continue
            if math.ceil(extent / steps) == passes:
                continue  # one more would only make the last tile smaller than the others
            passes = math.ceil(extent / steps)
            if steps == extent and facts.axes[chosen].is_fixed:
                yield from grow(at + 1, size * steps, rows | {chosen: steps})
            else:
                yield tuple(sorted((rows | {chosen: steps}).items()))

    yield from dict.fromkeys(grow(0, 1, {}))


def cycles_of_lanes_along(facts: Facts, target: _core.Target) -> float:
    """What the model expects of partial sums in the lanes, along the last axis of the reduction; infinity where the
    operands do not lie along it."""
    last = facts.reduced[-1]
    if any(read.strides[last] not in (0, 1) for read in facts.reads):
        return math.inf
    return _cycles_of_lanes(facts, tile_of_lanes_along(facts, target), target)


def tile_of_lanes_along(facts: Facts, target: _core.Target) -> dict[int, int]:
    """Results with partial sums in the lanes that are computed together, so that they share what they load: how many
    along which axes."""
    tiles: list[dict[int, int]] = [{}]
    for i in [i for i in facts.spatial if any(not read.varies(i) for read in facts.reads) and i not in facts.phases]:
        extent = facts.extent(i)
        sizes = [size for size in (2, 4, 8) if facts.divides(size, i) or 4 * size <= extent]
        if 2 < extent < 8 and facts.axes[i].is_fixed:
            sizes.append(extent)
        tiles += [tile | {i: size} for tile in tiles for size in dict.fromkeys(sizes) if len(tile) < 2]
    most = target.vector_registers // 2
    return min(
        (tile for tile in tiles if math.prod(tile.values()) <= most),
        key=lambda tile: (_cycles_of_lanes(facts, tile, target), math.prod(tile.values())),
    )


def lanes_along(facts: Facts, target: _core.Target) -> int:
    """Products that a vector of partial sums takes at once: four times as many of bytes, where the target adds them in
    groups (src/lower/x86/add_in_groups.cc)."""
    lanes = target.vector_bits // bits_of(facts.store.buffer.dtype)
    types = {read.buffer.dtype for read in facts.reads}
    grouped = "avxvnni" in target.features or {"avx512vnni", "avx512vl"} <= set(target.features)
    bytes_alone = len(facts.reads) == 2 and facts.adds_products and "int8" in types and types <= {"int8", "uint8"}
    return 4 * lanes if bytes_alone and grouped and facts.store.buffer.dtype == "int32" else lanes


def _cycles_of_lanes(facts: Facts, tile: dict[int, int], target: _core.Target) -> float:
    """For all results, so many of them at a time: what the ports do, and what operands take that go through the caches
    once for each tile of rows, the shorter one mostly hidden by the longer."""
    lanes = lanes_along(facts, target)
    results = math.prod(facts.extent(i) for i in facts.spatial)
    inner = math.prod(facts.extent(i) for i in facts.reduced if i != facts.reduced[-1])
    vectors = math.ceil(facts.extent(facts.reduced[-1]) / lanes) * inner
    computing = results * vectors * _cycles_of_results(facts, tile)
    moving = max(_cycles_of_passes(facts, read, tile, target) for read in facts.reads)
    return max(computing, moving) + _NOT_HIDDEN * min(computing, moving) + results * _END_CYCLES


def _cycles_of_passes(facts: Facts, read: Operand, tile: dict[int, int], target: _core.Target) -> float:
    """That bringing an operand takes each time that the loops outside of it go on: from the level that holds it."""
    bytes_of_pass = math.prod(facts.extent(i) for i in facts.reduced if read.varies(i)) * bits_of(read.buffer.dtype) / 8
    axes = [i for i in facts.spatial if facts.extent(i) > 1]
    still = [i for i in axes if not read.varies(i)]
    if not still:
        return 0.0
    passes = 1.0 * math.prod(math.ceil(facts.extent(i) / tile.get(i, 1)) for i in still)
    # What is brought again is all that lies inside of the innermost loop that goes on without it, and that of a tile.
    for i in (i for i in axes if read.varies(i)):
        if i > still[-1]:
            bytes_of_pass *= facts.extent(i)
        else:
            bytes_of_pass *= tile.get(i, 1)
            passes *= math.ceil(facts.extent(i) / tile.get(i, 1))
    if facts.extent(facts.reduced[-1]) * bits_of(read.buffer.dtype) // 8 % LINE_BYTES:
        passes *= _ACROSS_LINES
    return _cycles_to_bring(passes * bytes_of_pass, bytes_of_pass, target)


def _cycles_to_bring(moved: float, held: float, target: _core.Target, used: float = 1.0) -> float:
    """Cycles for so many bytes from the level that holds what they are a part of; none from the first one.

    Args:
        moved: bytes that are brought.
        held: bytes of all that they are a part of.
        target: whose caches count.
        used: share of the sets of a cache that these fall on.
    """
    near = target.l1_bytes * used / 2
    # Of lines that share few sets, the second level keeps what the pages leave to it.
    if held > target.l2_bytes * used * 0.7 or (used < 0.5 and held > near):
        return moved / _L3_BYTES_PER_CYCLE
    return moved / _L2_BYTES_PER_CYCLE if held > near else 0.0


def _cycles_of_results(facts: Facts, tile: dict[int, int]) -> float:
    """For a step of each result in a tile."""
    loads = sum(math.prod(size for i, size in tile.items() if read.varies(i)) for read in facts.reads)
    cut = math.prod(1.0 if facts.divides(size, i) else 1 + size / facts.extent(i) for i, size in tile.items())
    sums = math.prod(tile.values())
    return (max(0.5 * sums, loads / 2) + 0.35 * loads) / sums * cut


def _copies(facts: Facts, axis: int, rows: dict[int, int]) -> list[int | None]:
    """The reads that may be copied for a group of columns; None is no copy, where vectors lie side by side without."""
    vectors = [number for number, read in enumerate(facts.reads) if read.varies(axis)]
    crossed = [number for number in vectors if facts.reads[number].strides[axis] != 1]
    if not vectors or len(crossed) > 1:
        return []
    chosen: list[int | None] = [] if crossed else [None]
    for number in crossed or vectors:
        read = facts.reads[number]
        known = all(stride is not None for stride in read.strides)
        others = [i for i in facts.spatial if i != axis and not read.varies(i)]
        uses = math.prod(math.ceil(facts.extent(i) / rows.get(i, 1)) for i in others)
        if not crossed and uses < _LEAST_USES:
            continue
        if known and not any(read.varies(i) for i in rows) and any(read.varies(i) for i in facts.reduced):
            chosen.append(number)
    return chosen


@dataclass(frozen=True)
class _Estimate:
    facts: Facts
    target: _core.Target
    axis: int
    lanes: int
    vectors: int
    rows: dict[int, int]
    copied: int | None

    def tile(self) -> RegisterTile:
        rows = tuple(sorted(self.rows.items()))
        cycles = self._cycles_of_one() * self._count() + self._copying()
        return RegisterTile(self.axis, self.lanes, self.vectors, rows, self.copied, cycles)

    def _cycles_of_one(self) -> float:
        facts = self.facts
        sums = self.vectors * math.prod(self.rows.values())
        steps = math.prod(facts.extent(i) for i in facts.reduced)
        loads = sum(self._loads(read) for read in facts.reads)
        moved = sum(self._beyond_first_level(number) for number in range(len(facts.reads)))
        step = max(sums / 2, loads / 2, 4 if sums < 8 else 0) + _EXPOSED * moved + 0.15 * loads
        one = step * steps + _START_CYCLES + 2 * sums
        return one + sums * self.lanes if facts.store.strides[self.axis] != 1 else one

    def _loads(self, read: Operand) -> int:
        """Vectors, or broadcasts, for a step of the reduction."""
        across = math.prod(size for i, size in self.rows.items() if read.varies(i))
        return across * self.vectors if read.varies(self.axis) else across

    def _beyond_first_level(self, number: int) -> float:
        """Cycles for a step that bringing what an operand has outside of the first level takes."""
        facts, read = self.facts, self.facts.reads[number]
        width = bits_of(read.buffer.dtype) // 8
        # Lines of several rows that fall on one another are gone before they are used again.
        apart = [i for i, size in self.rows.items() if size > 1 and read.varies(i)]
        steps = [abs(read.strides[i] or 0) * width for i in apart]
        lines = math.prod(self.rows[i] for i in apart)
        falls = lines > ALIASED_LINES and any(step and step % ALIASED_BYTES == 0 for step in steps)
        if not read.varies(self.axis):
            return lines * LINE_BYTES / _L2_BYTES_PER_CYCLE if falls else 0.0
        if falls:
            # Nothing hides these: each multiply-add waits for a line of its own.
            missing = 1 - ALIASED_LINES / lines
            return missing * self._loads(read) * self.lanes * width / _L2_BYTES_PER_CYCLE / _EXPOSED
        row = self.vectors * self.lanes * width
        panel = row * math.prod(facts.extent(i) for i in facts.reduced if read.varies(i))
        used = 1.0
        if number != self.copied:
            apart_bytes = [abs(read.strides[i] or 0) * width for i in facts.reduced if read.strides[i]]
            # Rows that lie a multiple of many lines apart share few sets of a cache, most where each is one line.
            step = min(apart_bytes, default=0)
            if step and (step % 1024 == 0 or (step % 512 == 0 and row <= LINE_BYTES)):
                used = min(1.0, row / step)
        return _cycles_to_bring(self._loads(read) * self.lanes * width, panel, self.target, used)

    def _copying(self) -> float:
        if self.copied is None:
            return 0.0
        read = self.facts.reads[self.copied]
        each = _COPY_CYCLES if read.strides[self.axis] == 1 else _TURN_CYCLES
        elements = math.prod(axis.extent for i, axis in enumerate(self.facts.axes) if read.varies(i))
        return each * elements / (self.facts.parts if self.facts.is_common(read) else 1)

    def _count(self) -> float:
        """Tiles, where one that is cut off counts for what it takes."""
        count = 1.0
        for i in self.facts.spatial:
            size = self.vectors * self.lanes if i == self.axis else self.rows.get(i, 1)
            whole, rest = divmod(self.facts.extent(i), size)
            if i == self.axis and rest:
                # Groups of columns in a copy do not lie one after the other then.
                cut = 1.02 if self.copied is None else 1.15
                count *= (whole + math.ceil(rest / self.lanes) / self.vectors) * cut
            elif rest:
                # What is left over runs with fewer sums at a time, and needs all of the vectors for them.
                cut_off = replace(self, rows=self.rows | {i: rest})
                count *= (whole + cut_off._cycles_of_one() / self._cycles_of_one()) * 1.02
            else:
                count *= whole
        return count
