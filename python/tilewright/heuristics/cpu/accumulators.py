"""Reductions whose lanes are partial sums of one result; several results share the vectors that they load."""

from __future__ import annotations

import math

from tilewright import _core
from tilewright.heuristics.block_info import BlockInfo, Operand
from tilewright.heuristics.cpu.estimates import load_cycles
from tilewright.heuristics.cpu.parameters import HORIZONTAL_SUM_CYCLES, LINE_BYTES, NOT_HIDDEN, SPLIT_LINE_FACTOR


def accumulator_cycles(info: BlockInfo, target: _core.Target) -> float:
    """Return the estimated cycles of vector accumulators along the last axis of the reduction; infinity if the operands
    are not contiguous along it."""
    last = info.reduced[-1]
    if any(read.strides[last] not in (0, 1) for read in info.reads):
        return math.inf
    return _cycles(info, accumulator_tile(info, target), target)


def accumulator_tile(info: BlockInfo, target: _core.Target) -> dict[int, int]:
    """Return the number of results along each axis that are computed together and share the vectors that they load."""
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
        key=lambda tile: (_cycles(info, tile, target), math.prod(tile.values())),
    )


def reduction_lanes(info: BlockInfo, target: _core.Target) -> int:
    """Return the number of products that a vector of accumulators adds at once: four times as many for bytes, if the
    target has
    dot-product instructions (src/lower/x86/form_dot_products.cc)."""
    lanes = info.lanes(target)
    types = {read.buffer.dtype for read in info.reads}
    has_dot = _core.dot_instruction("uint8", "int8", "int32", lanes=target.vector_bits // 32, target=target)
    bytes_alone = len(info.reads) == 2 and info.adds_products and "int8" in types and types <= {"int8", "uint8"}
    return 4 * lanes if bytes_alone and has_dot and info.store.buffer.dtype == "int32" else lanes


def _cycles(info: BlockInfo, tile: dict[int, int], target: _core.Target) -> float:
    """Return the estimated cycles for all results, one tile at a time: port cycles and the loads of operands for each
    tile. The shorter of the two is mostly hidden by the longer."""
    lanes, last = reduction_lanes(info, target), info.reduced[-1]
    results = info.size(info.spatial)
    vectors = math.ceil(info.extent(last) / lanes) * info.size(i for i in info.reduced if i != last)
    computing = results * vectors * _cycles_of_result(info, tile)
    moving = max(_cycles_of_operand(info, read, tile, target) for read in info.reads)
    return max(computing, moving) + NOT_HIDDEN * min(computing, moving) + results * HORIZONTAL_SUM_CYCLES


def _cycles_of_operand(info: BlockInfo, read: Operand, tile: dict[int, int], target: _core.Target) -> float:
    """Return the cycles for loading an operand for each pass of the loops outside it, from the cache that holds it."""
    bytes_of_pass = info.size(i for i in info.reduced if read.varies(i)) * read.width * 1.0
    axes = [i for i in info.spatial if info.extent(i) > 1]
    still = [i for i in axes if not read.varies(i)]
    if not still:
        return 0.0
    passes = 1.0 * math.prod(math.ceil(info.extent(i) / tile.get(i, 1)) for i in still)
    # The bytes of one pass are those inside the innermost loop that the operand does not vary with, or inside a tile.
    for i in (i for i in axes if read.varies(i)):
        if i > still[-1]:
            bytes_of_pass *= info.extent(i)
        else:
            bytes_of_pass *= tile.get(i, 1)
            passes *= math.ceil(info.extent(i) / tile.get(i, 1))
    if info.extent(info.reduced[-1]) * read.width % LINE_BYTES:
        passes *= SPLIT_LINE_FACTOR
    return load_cycles(passes * bytes_of_pass, bytes_of_pass, target)


def _cycles_of_result(info: BlockInfo, tile: dict[int, int]) -> float:
    """Return the cycles for one step of one result in a tile."""
    loads = sum(math.prod(size for i, size in tile.items() if read.varies(i)) for read in info.reads)
    cut = math.prod(1.0 if info.divides(size, i) else 1 + size / info.extent(i) for i, size in tile.items())
    accumulators = math.prod(tile.values())
    return (max(0.5 * accumulators, loads / 2) + 0.35 * loads) / accumulators * cut
