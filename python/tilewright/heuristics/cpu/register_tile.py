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
from tilewright.heuristics.cpu.block_info import BlockInfo, Operand
from tilewright.heuristics.cpu.parameters import (
    ALIASED_BYTES,
    ALIASED_LINES,
    COPY_CYCLES,
    EXPOSED,
    HORIZONTAL_SUM_CYCLES,
    L2_BYTES_PER_CYCLE,
    L3_BYTES_PER_CYCLE,
    LINE_BYTES,
    NOT_HIDDEN,
    PACKED_USES,
    REMEMBERED,
    SPLIT_LINE_FACTOR,
    TILE_START_CYCLES,
    TRANSPOSE_CYCLES,
)
from tilewright.heuristics.cpu.strided_subproblems import interleaved_results
from tilewright.support.numpy_dtype import numpy_dtype


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


def bytes_of(info: BlockInfo, read: Operand) -> int:
    """Of all that a contraction reads of an operand."""
    elements = math.prod(axis.extent for i, axis in enumerate(info.axes) if read.varies(i))
    return elements * bits_of(read.buffer.dtype) // 8


#: tiles by what they depend on: a search asks for those of the same block for each of its candidates
_known: dict[tuple[Hashable, ...], tuple[RegisterTile, ...]] = {}


def register_tiles(info: BlockInfo, target: _core.Target) -> tuple[RegisterTile, ...]:
    """Tiles for a contraction, the one that the model expects most of first; none where no tile can be vectors."""
    limits = target.vector_bits, target.vector_registers, target.l1_bytes, target.l2_bytes
    interleaved = bool(interleaved_results(info))
    key = (info.estimate_key(), interleaved, limits)
    with contextlib.suppress(KeyError):
        return _known[key]
    tiles = tuple(_estimated_tiles(info, interleaved, target))
    if len(_known) >= REMEMBERED:
        _known.clear()
    _known[key] = tiles
    return tiles


def _estimated_tiles(info: BlockInfo, interleaved: bool, target: _core.Target) -> list[RegisterTile]:
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    tiles = [
        tile
        for axis in _vector_axes(info, lanes)
        for vectors in range(1, min(math.ceil(info.extent(axis) / lanes), 8) + 1)
        if not info.periods[axis] or info.periods[axis] % (vectors * lanes) == 0
        if _may_cut(info, interleaved, axis, vectors * lanes)
        for rows in _rows(info, interleaved, axis, vectors, target.vector_registers)
        for copied in _copies(info, axis, dict(rows))
        if (tile := _Estimate(info, target, axis, lanes, vectors, dict(rows), copied).tile()) is not None
    ]
    # Of equals the one with rows along an inner axis, where memory is near.
    return sorted(tiles, key=lambda tile: (tile.cycles, [-axis for axis, _ in tile.rows]))


def _vector_axes(info: BlockInfo, lanes: int) -> list[int]:
    """The axis that results lie along; where that is short, any."""
    axes = [i for i in _tiled(info) if info.store.strides[i] not in (0, None)]
    along = [i for i in axes if info.store.strides[i] == 1 and 2 * info.extent(i) >= lanes]
    return along or axes


def _tiled(info: BlockInfo) -> list[int]:
    """What a tile may extend along."""
    return [i for i in info.spatial if info.extent(i) > 1 and i not in info.residue_axes]


def _may_cut(info: BlockInfo, interleaved: bool, axis: int, size: int) -> bool:
    """Whether a tile of so many steps can be cut off at the end: `interleaved` results of one phase have others between
    them, so that what a part of a tile leaves there is not proved; nor is it at the end of a part of an axis."""
    whole = (not interleaved or info.store.strides[axis] == 1) and not info.axes[axis].is_part
    return whole or info.divides(size, axis)


def _rows(
    info: BlockInfo, interleaved: bool, axis: int, vectors: int, registers: int
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Steps of other axes, inner ones whole before outer ones begin; any may be left out."""
    # One register for each vector of the operand and one for the broadcast.
    limit = (registers - 1 - vectors) // vectors
    if limit < 1:
        return
    inner_first = [i for i in reversed(_tiled(info)) if i != axis]

    def grow(at: int, size: int, rows: dict[int, int]) -> Iterator[tuple[tuple[int, int], ...]]:
        yield tuple(sorted(rows.items()))
        if at == len(inner_first):
            return
        yield from grow(at + 1, size, rows)
        chosen, extent = inner_first[at], info.extent(inner_first[at])
        passes = 0
        for steps in range(2, min(extent, limit // size) + 1):
            divided = not info.periods[chosen] or info.periods[chosen] % steps == 0
            if not divided or not _may_cut(info, interleaved, chosen, steps):
                continue
            if math.ceil(extent / steps) == passes:
                continue  # one more would only make the last tile smaller than the others
            passes = math.ceil(extent / steps)
            if steps == extent and info.axes[chosen].is_fixed:
                yield from grow(at + 1, size * steps, rows | {chosen: steps})
            else:
                yield tuple(sorted((rows | {chosen: steps}).items()))

    yield from dict.fromkeys(grow(0, 1, {}))


def accumulator_cycles(info: BlockInfo, target: _core.Target) -> float:
    """What the model expects of partial sums in the lanes, along the last axis of the reduction; infinity where the
    operands do not lie along it."""
    last = info.reduced[-1]
    if any(read.strides[last] not in (0, 1) for read in info.reads):
        return math.inf
    return _cycles_of_accumulators(info, accumulator_tile(info, target), target)


def accumulator_tile(info: BlockInfo, target: _core.Target) -> dict[int, int]:
    """Results with partial sums in the lanes that are computed together, so that they share what they load: how many
    along which axes."""
    tiles: list[dict[int, int]] = [{}]
    for i in [i for i in info.spatial if any(not read.varies(i) for read in info.reads) and i not in info.residue_axes]:
        extent = info.extent(i)
        sizes = [size for size in (2, 4, 8) if info.divides(size, i) or 4 * size <= extent]
        if 2 < extent < 8 and info.axes[i].is_fixed:
            sizes.append(extent)
        tiles += [tile | {i: size} for tile in tiles for size in dict.fromkeys(sizes) if len(tile) < 2]
    most = target.vector_registers // 2
    return min(
        (tile for tile in tiles if math.prod(tile.values()) <= most),
        key=lambda tile: (_cycles_of_accumulators(info, tile, target), math.prod(tile.values())),
    )


def reduction_lanes(info: BlockInfo, target: _core.Target) -> int:
    """Products that a vector of partial sums takes at once: four times as many of bytes, where the target adds them in
    groups (src/lower/x86/add_in_groups.cc)."""
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    types = {read.buffer.dtype for read in info.reads}
    grouped = "avxvnni" in target.features or {"avx512vnni", "avx512vl"} <= set(target.features)
    bytes_alone = len(info.reads) == 2 and info.adds_products and "int8" in types and types <= {"int8", "uint8"}
    return 4 * lanes if bytes_alone and grouped and info.store.buffer.dtype == "int32" else lanes


def _cycles_of_accumulators(info: BlockInfo, tile: dict[int, int], target: _core.Target) -> float:
    """For all results, so many of them at a time: what the ports do, and what operands take that go through the caches
    once for each tile of rows, the shorter one mostly hidden by the longer."""
    lanes = reduction_lanes(info, target)
    results = math.prod(info.extent(i) for i in info.spatial)
    inner = math.prod(info.extent(i) for i in info.reduced if i != info.reduced[-1])
    vectors = math.ceil(info.extent(info.reduced[-1]) / lanes) * inner
    computing = results * vectors * _cycles_of_results(info, tile)
    moving = max(_cycles_to_reload(info, read, tile, target) for read in info.reads)
    return max(computing, moving) + NOT_HIDDEN * min(computing, moving) + results * HORIZONTAL_SUM_CYCLES


def _cycles_to_reload(info: BlockInfo, read: Operand, tile: dict[int, int], target: _core.Target) -> float:
    """That bringing an operand takes each time that the loops outside of it go on: from the level that holds it."""
    bytes_of_pass = math.prod(info.extent(i) for i in info.reduced if read.varies(i)) * bits_of(read.buffer.dtype) / 8
    axes = [i for i in info.spatial if info.extent(i) > 1]
    still = [i for i in axes if not read.varies(i)]
    if not still:
        return 0.0
    passes = 1.0 * math.prod(math.ceil(info.extent(i) / tile.get(i, 1)) for i in still)
    # What is brought again is all that lies inside of the innermost loop that goes on without it, and that of a tile.
    for i in (i for i in axes if read.varies(i)):
        if i > still[-1]:
            bytes_of_pass *= info.extent(i)
        else:
            bytes_of_pass *= tile.get(i, 1)
            passes *= math.ceil(info.extent(i) / tile.get(i, 1))
    if info.extent(info.reduced[-1]) * bits_of(read.buffer.dtype) // 8 % LINE_BYTES:
        passes *= SPLIT_LINE_FACTOR
    return _cycles_to_load(passes * bytes_of_pass, bytes_of_pass, target)


def _cycles_to_load(moved: float, held: float, target: _core.Target, used: float = 1.0) -> float:
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
        return moved / L3_BYTES_PER_CYCLE
    return moved / L2_BYTES_PER_CYCLE if held > near else 0.0


def _cycles_of_results(info: BlockInfo, tile: dict[int, int]) -> float:
    """For a step of each result in a tile."""
    loads = sum(math.prod(size for i, size in tile.items() if read.varies(i)) for read in info.reads)
    cut = math.prod(1.0 if info.divides(size, i) else 1 + size / info.extent(i) for i, size in tile.items())
    sums = math.prod(tile.values())
    return (max(0.5 * sums, loads / 2) + 0.35 * loads) / sums * cut


def _copies(info: BlockInfo, axis: int, rows: dict[int, int]) -> list[int | None]:
    """The reads that may be copied for a group of columns; None is no copy, where vectors lie side by side without."""
    vectors = [number for number, read in enumerate(info.reads) if read.varies(axis)]
    crossed = [number for number in vectors if info.reads[number].strides[axis] != 1]
    if not vectors or len(crossed) > 1:
        return []
    chosen: list[int | None] = [] if crossed else [None]
    for number in crossed or vectors:
        read = info.reads[number]
        known = all(stride is not None for stride in read.strides)
        others = [i for i in info.spatial if i != axis and not read.varies(i)]
        uses = math.prod(math.ceil(info.extent(i) / rows.get(i, 1)) for i in others)
        if not crossed and uses < PACKED_USES:
            continue
        if known and not any(read.varies(i) for i in rows) and any(read.varies(i) for i in info.reduced):
            chosen.append(number)
    return chosen


@dataclass(frozen=True)
class _Estimate:
    info: BlockInfo
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
        info = self.info
        sums = self.vectors * math.prod(self.rows.values())
        steps = math.prod(info.extent(i) for i in info.reduced)
        loads = sum(self._loads(read) for read in info.reads)
        moved = sum(self._cycles_beyond_l1(number) for number in range(len(info.reads)))
        step = max(sums / 2, loads / 2, 4 if sums < 8 else 0) + EXPOSED * moved + 0.15 * loads
        one = step * steps + TILE_START_CYCLES + 2 * sums
        return one + sums * self.lanes if info.store.strides[self.axis] != 1 else one

    def _loads(self, read: Operand) -> int:
        """Vectors, or broadcasts, for a step of the reduction."""
        across = math.prod(size for i, size in self.rows.items() if read.varies(i))
        return across * self.vectors if read.varies(self.axis) else across

    def _cycles_beyond_l1(self, number: int) -> float:
        """Cycles for a step that bringing what an operand has outside of the first level takes."""
        info, read = self.info, self.info.reads[number]
        width = bits_of(read.buffer.dtype) // 8
        # Lines of several rows that fall on one another are gone before they are used again.
        apart = [i for i, size in self.rows.items() if size > 1 and read.varies(i)]
        steps = [abs(read.strides[i] or 0) * width for i in apart]
        lines = math.prod(self.rows[i] for i in apart)
        falls = lines > ALIASED_LINES and any(step and step % ALIASED_BYTES == 0 for step in steps)
        if not read.varies(self.axis):
            return lines * LINE_BYTES / L2_BYTES_PER_CYCLE if falls else 0.0
        if falls:
            # Nothing hides these: each multiply-add waits for a line of its own.
            missing = 1 - ALIASED_LINES / lines
            return missing * self._loads(read) * self.lanes * width / L2_BYTES_PER_CYCLE / EXPOSED
        row = self.vectors * self.lanes * width
        panel = row * math.prod(info.extent(i) for i in info.reduced if read.varies(i))
        used = 1.0
        if number != self.copied:
            apart_bytes = [abs(read.strides[i] or 0) * width for i in info.reduced if read.strides[i]]
            # Rows that lie a multiple of many lines apart share few sets of a cache, most where each is one line.
            step = min(apart_bytes, default=0)
            if step and (step % 1024 == 0 or (step % 512 == 0 and row <= LINE_BYTES)):
                used = min(1.0, row / step)
        return _cycles_to_load(self._loads(read) * self.lanes * width, panel, self.target, used)

    def _copying(self) -> float:
        if self.copied is None:
            return 0.0
        read = self.info.reads[self.copied]
        each = COPY_CYCLES if read.strides[self.axis] == 1 else TRANSPOSE_CYCLES
        elements = math.prod(axis.extent for i, axis in enumerate(self.info.axes) if read.varies(i))
        return each * elements / (self.info.parts if self.info.is_common(read) else 1)

    def _count(self) -> float:
        """Tiles, where one that is cut off counts for what it takes."""
        count = 1.0
        for i in self.info.spatial:
            size = self.vectors * self.lanes if i == self.axis else self.rows.get(i, 1)
            whole, rest = divmod(self.info.extent(i), size)
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
