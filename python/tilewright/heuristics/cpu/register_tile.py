"""Choose the tile of results to keep in vector registers, by a model of one core.

A step of the reduction performs `rows * vectors` multiply-adds. It loads each vector, or broadcasts each element, of
the operands that vary with the tile once. The accumulators stay in registers, so `rows * vectors` accumulators, the
vectors of one operand and a broadcast have to fit.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from tilewright import _core
from tilewright.heuristics.block_info import BlockInfo, Operand
from tilewright.heuristics.cpu.estimates import load_cycles, port_cycles
from tilewright.heuristics.cpu.parameters import (
    ALIASED_BYTES,
    ALIASED_LINES,
    COPY_CYCLES,
    EXPOSED,
    L2_BYTES_PER_CYCLE,
    LINE_BYTES,
    LOAD_CYCLES,
    PACKED_USES,
    TILE_START_CYCLES,
    TRANSPOSE_CYCLES,
)
from tilewright.heuristics.cpu.strided_subproblems import interleaved_results
from tilewright.heuristics.parameters import REMEMBERED


@dataclass(frozen=True)
class RegisterTile:
    """A tile of results in registers.

    Attributes:
        axis: axis of the vectors.
        vectors: number of vectors along that axis.
        rows: (axis, steps) for the other axes of the tile, in the order of the axes.
        copied: number of the read that is packed so that its vectors are contiguous; None if no read is packed.
        cycles: estimated cycles of the whole block.
    """

    axis: int
    lanes: int
    vectors: int
    rows: tuple[tuple[int, int], ...]
    copied: int | None
    cycles: float

    @property
    def columns(self) -> int:
        """Return the number of steps along the axis of the vectors."""
        return self.vectors * self.lanes

    @property
    def height(self) -> int:
        """Return the number of steps along the other axes."""
        return math.prod(size for _, size in self.rows)

    def size(self, axis: int) -> int:
        """Return the number of steps along an axis."""
        return self.columns if axis == self.axis else dict(self.rows).get(axis, 1)


#: tiles by the key of their arguments: a search requests those of the same block for each of its candidates
_known: dict[tuple[Hashable, ...], tuple[RegisterTile, ...]] = {}


def register_tiles(info: BlockInfo, target: _core.Target) -> tuple[RegisterTile, ...]:
    """Return tiles for a contraction, the best estimate first; empty if no tile can be vectorized."""
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
    lanes = info.lanes(target)
    tiles = [
        _Estimate(info, target, axis, lanes, vectors, dict(rows), copied).tile()
        for axis in _vector_axes(info, lanes)
        for vectors in range(1, min(math.ceil(info.extent(axis) / lanes), 8) + 1)
        if not info.periods[axis] or info.periods[axis] % (vectors * lanes) == 0
        if _may_cut(info, interleaved, axis, vectors * lanes)
        for rows in _rows(info, interleaved, axis, vectors, target.vector_registers)
        for copied in _copies(info, axis, dict(rows))
    ]
    # Among equal estimates, prefer rows along an inner axis, whose elements are closer in memory.
    return sorted(tiles, key=lambda tile: (tile.cycles, [-axis for axis, _ in tile.rows]))


def _vector_axes(info: BlockInfo, lanes: int) -> list[int]:
    """Return the axis along which results are contiguous; if it is short, all axes."""
    axes = [i for i in _tiled(info) if info.store.strides[i] not in (0, None)]
    return [i for i in info.contiguous_axes(lanes) if i in axes] or axes


def _tiled(info: BlockInfo) -> list[int]:
    """Return the axes along which a tile may extend."""
    return [i for i in info.spatial if info.extent(i) > 1 and i not in info.residue_axes]


def _may_cut(info: BlockInfo, interleaved: bool, axis: int, size: int) -> bool:
    """Return whether a tile of `size` steps may have a tail. It may not if other results are stored between
    `interleaved` ones, because what a partial tile leaves there cannot be proved, and not at the end of a part of an
    axis."""
    whole = (not interleaved or info.store.strides[axis] == 1) and not info.axes[axis].is_part
    return whole or info.divides(size, axis)


def _rows(
    info: BlockInfo, interleaved: bool, axis: int, vectors: int, registers: int
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the steps along other axes: inner axes are used completely before outer ones; any axis may be omitted."""
    # The operand's vectors need a register each, and the broadcast one more.
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
                continue  # one more step would only make the last tile smaller than the others
            passes = math.ceil(extent / steps)
            if steps == extent and info.axes[chosen].is_fixed:
                yield from grow(at + 1, size * steps, rows | {chosen: steps})
            else:
                yield tuple(sorted((rows | {chosen: steps}).items()))

    yield from dict.fromkeys(grow(0, 1, {}))


def _copies(info: BlockInfo, axis: int, rows: dict[int, int]) -> list[int | None]:
    """Return the reads that may be packed in panels of columns; None stands for no packing, if vectors are contiguous
    without."""
    vectors = [number for number, read in enumerate(info.reads) if read.varies(axis)]
    strided = [number for number in vectors if info.reads[number].strides[axis] != 1]
    if not vectors or len(strided) > 1:
        return []
    chosen: list[int | None] = [] if strided else [None]
    for number in strided or vectors:
        read = info.reads[number]
        known = all(stride is not None for stride in read.strides)
        others = [i for i in info.spatial if i != axis and not read.varies(i)]
        uses = math.prod(math.ceil(info.extent(i) / rows.get(i, 1)) for i in others)
        if not strided and uses < PACKED_USES:
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
        accumulators = self.vectors * math.prod(self.rows.values())
        loads = sum(self._loads(read) for read in info.reads)
        moved = sum(self._cycles_beyond_l1(number) for number in range(len(info.reads)))
        step = port_cycles(accumulators, loads) + EXPOSED * moved + LOAD_CYCLES * loads
        one = step * info.size(info.reduced) + TILE_START_CYCLES + 2 * accumulators
        return one + accumulators * self.lanes if info.store.strides[self.axis] != 1 else one

    def _loads(self, read: Operand) -> int:
        """Return the number of vectors or broadcasts that a reduction step loads of an operand."""
        across = math.prod(size for i, size in self.rows.items() if read.varies(i))
        return across * self.vectors if read.varies(self.axis) else across

    def _cycles_beyond_l1(self, number: int) -> float:
        """Return the cycles for loading an operand's elements of one step from beyond L1."""
        info, read = self.info, self.info.reads[number]
        # If several rows map to one set, their lines are evicted before they are used again.
        apart = [i for i, size in self.rows.items() if size > 1 and read.varies(i)]
        steps = [abs(read.strides[i] or 0) * read.width for i in apart]
        lines = math.prod(self.rows[i] for i in apart)
        conflicts = lines > ALIASED_LINES and any(step and step % ALIASED_BYTES == 0 for step in steps)
        if not read.varies(self.axis):
            return lines * LINE_BYTES / L2_BYTES_PER_CYCLE if conflicts else 0.0
        if conflicts:
            # These misses are not hidden: each multiply-add waits for its own line.
            missing = 1 - ALIASED_LINES / lines
            return missing * self._loads(read) * self.lanes * read.width / L2_BYTES_PER_CYCLE / EXPOSED
        row = self.vectors * self.lanes * read.width
        panel = row * info.size(i for i in info.reduced if read.varies(i))
        used = 1.0
        if number != self.copied:
            # Rows at a distance of a multiple of many lines map to few sets of a cache; the effect is strongest for
            # rows of one line.
            step = min((abs(read.strides[i] or 0) * read.width for i in info.reduced if read.strides[i]), default=0)
            if step and (step % 1024 == 0 or (step % 512 == 0 and row <= LINE_BYTES)):
                used = min(1.0, row / step)
        return load_cycles(self._loads(read) * self.lanes * read.width, panel, self.target, used)

    def _copying(self) -> float:
        if self.copied is None:
            return 0.0
        read = self.info.reads[self.copied]
        each = COPY_CYCLES if read.strides[self.axis] == 1 else TRANSPOSE_CYCLES
        elements = self.info.size(self.info.varying(read))
        return each * elements / (self.info.parts if self.info.is_common(read) else 1)

    def _count(self) -> float:
        """Return the number of tiles; a tail counts as the fraction of a tile's time that it takes."""
        count = 1.0
        for i in self.info.spatial:
            size = self.vectors * self.lanes if i == self.axis else self.rows.get(i, 1)
            whole, rest = divmod(self.info.extent(i), size)
            if i == self.axis and rest:
                # Panels of a packed operand are not contiguous then.
                cut = 1.02 if self.copied is None else 1.15
                count *= (whole + math.ceil(rest / self.lanes) / self.vectors) * cut
            elif rest:
                # A tail has fewer rows, but loads all vectors for them.
                tail = replace(self, rows=self.rows | {i: rest})
                count *= (whole + tail._cycles_of_one() / self._cycles_of_one()) * 1.02
            else:
                count *= whole
        return count
