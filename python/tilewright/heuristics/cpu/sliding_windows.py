"""Reductions over a window that slides along the results: depthwise convolutions.

The reduction of a tile is unrolled completely, so that elements which several windows of the tile share are loaded
once. Padding needs no copy either: the padded elements of a tile are computed where they are used, and stay in
registers.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from tilewright import _core
from tilewright.heuristics.block_info import BlockInfo, coefficient
from tilewright.heuristics.cpu.estimates import port_cycles
from tilewright.heuristics.cpu.parameters import LOAD_CYCLES, WINDOW_ACCUMULATORS, WINDOW_TERMS_ALONG
from tilewright.heuristics.cpu.register_tile import RegisterTile
from tilewright.heuristics.parameters import WINDOW_TERMS


@dataclass(frozen=True)
class _Window:
    """A spatial axis and a reduction axis that move the same index: by `step` and by `apart` per step."""

    spatial: int
    reduced: int
    step: int
    apart: int


def window_tiles(info: BlockInfo, target: _core.Target) -> list[RegisterTile]:
    """Return tiles for a reduction over windows, the best estimate first; empty for other reductions."""
    windows = _windows(info)
    terms = info.size(info.reduced)
    lanes = info.lanes(target)
    along = info.contiguous_axes(lanes)
    if windows is None or not along:
        return []
    axis = along[-1]
    slides_along = any(window.spatial == axis for window in windows)
    if terms > WINDOW_TERMS or (slides_along and (len(windows) == 1 or terms < WINDOW_TERMS_ALONG)):
        return []
    if any(read.strides[axis] not in (0, 1) for read in info.reads):
        return []
    if any(info.periods[i] for i in (axis, *(window.spatial for window in windows))):
        return []
    sizes = [range(1, 2 if i == axis else min(8, info.extent(i)) + 1) for i in (window.spatial for window in windows)]
    tiles = []
    for steps in itertools.product(*sizes, [1, 2]):
        if math.prod(steps) > max(2, target.vector_registers * WINDOW_ACCUMULATORS):
            continue
        if steps[-1] > 1 and not info.divides(steps[-1] * lanes, axis):
            continue
        rows = {window.spatial: size for window, size in zip(windows, steps, strict=False) if size > 1}
        cycles = _cycles(info, windows, steps, lanes)
        tiles.append(RegisterTile(axis, lanes, steps[-1], tuple(sorted(rows.items())), None, cycles))
    return sorted(tiles, key=lambda tile: tile.cycles)


def _windows(info: BlockInfo) -> list[_Window] | None:
    """Return a window for each reduction axis, which must move an index of one operand together with a spatial axis;
    None if a reduction axis does not."""
    found: list[_Window] = []
    for reduced in info.reduced:
        window = _window(info, reduced) if info.axes[reduced].is_fixed else None
        if window is None or any(window.spatial == other.spatial for other in found):
            return None
        found.append(window)
    return found


def _window(info: BlockInfo, reduced: int) -> _Window | None:
    for read in info.reads:
        for index in read.indices:
            apart = coefficient(index, info.axes[reduced].var)
            for spatial in info.spatial if apart else ():
                step = coefficient(index, info.axes[spatial].var)
                if step:
                    return _Window(spatial, reduced, abs(step), abs(apart or 0))
    return None


def _cycles(info: BlockInfo, windows: list[_Window], steps: tuple[int, ...], lanes: int) -> float:
    """Return the cycles of all tiles: multiply-adds, loads, and one store for each accumulator."""
    accumulators, terms = math.prod(steps), info.size(info.reduced)
    shared, apart = steps[-1], steps[-1] * terms
    for window, size in zip(windows, steps, strict=False):
        whole = (info.extent(window.reduced) - 1) * window.apart + 1
        shared *= min((size - 1) * window.step + whole, size * info.extent(window.reduced))
    loads = shared + apart
    one = port_cycles(accumulators, loads, terms) + LOAD_CYCLES * loads + accumulators
    return one * _count(info, windows, steps, lanes)


def _count(info: BlockInfo, windows: list[_Window], steps: tuple[int, ...], lanes: int) -> float:
    """Return the number of tiles; a tail counts as the fraction of a tile's time that it takes."""
    sizes = {window.spatial: size for window, size in zip(windows, steps, strict=False)}
    count = 1.0
    for i in info.spatial:
        size = lanes * steps[-1] if info.store.strides[i] == 1 else sizes.get(i, 1)
        count *= info.extent(i) / size * (1.0 if info.extent(i) % size == 0 else 1.05)
    return count
