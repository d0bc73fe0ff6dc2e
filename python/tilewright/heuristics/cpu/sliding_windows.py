"""Sums over a window that slides along the results: depthwise convolutions.

What the windows of a tile of results share is loaded once for all of them, so the whole sum of a tile is written out:
its loads are then plain to see. Padding is no copy either: a tile's padded elements are made where they are used, and
stay in registers.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from tilewright import _core
from tilewright.heuristics.cpu.block_info import BlockInfo, coefficient
from tilewright.heuristics.cpu.parameters import WINDOW_ACCUMULATORS, WINDOW_TERMS, WINDOW_TERMS_ALONG
from tilewright.heuristics.cpu.register_tile import RegisterTile, bits_of


@dataclass(frozen=True)
class _Window:
    """A spatial axis and the reduced one that moves along it: they move an index by so much for a step."""

    spatial: int
    reduced: int
    step: int
    apart: int


def window_tiles(info: BlockInfo, target: _core.Target) -> list[RegisterTile]:
    """Tiles for a sum over windows, the one that takes least for each result first; none for another sum."""
    windows = _windows(info)
    terms = math.prod(info.extent(i) for i in info.reduced)
    lanes = target.vector_bits // bits_of(info.store.buffer.dtype)
    along = [i for i in info.spatial if info.store.strides[i] == 1 and 2 * info.extent(i) >= lanes]
    if windows is None or not along or info.residue_axes:
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
        sums = math.prod(steps)
        if sums > max(2, target.vector_registers * WINDOW_ACCUMULATORS):
            continue
        if steps[-1] > 1 and not info.divides(steps[-1] * lanes, axis):
            continue
        rows = {window.spatial: size for window, size in zip(windows, steps, strict=False) if size > 1}
        tiles.append(
            RegisterTile(
                axis, lanes, steps[-1], tuple(sorted(rows.items())), None, _cycles(info, windows, steps, lanes)
            )
        )
    return sorted(tiles, key=lambda tile: tile.cycles)


def _windows(info: BlockInfo) -> list[_Window] | None:
    """One for each axis of the sum, which moves an index of one operand together with a spatial axis; None where an
    axis of the sum does not."""
    found: list[_Window] = []
    for reduced in info.reduced:
        if not info.axes[reduced].is_fixed:
            return None
        window = _window(info, reduced)
        if window is None or any(window.spatial == other.spatial for other in found):
            return None
        found.append(window)
    return found


def _window(info: BlockInfo, reduced: int) -> _Window | None:
    variable = info.axes[reduced].var
    for read in info.reads:
        for index in read.indices:
            apart = coefficient(index, variable)
            if not apart:
                continue
            for spatial in info.spatial:
                step = coefficient(index, info.axes[spatial].var)
                if step:
                    return _Window(spatial, reduced, abs(step), abs(apart))
    return None


def _cycles(info: BlockInfo, windows: list[_Window], steps: tuple[int, ...], lanes: int) -> float:
    """Two multiply-adds, or loads, in a cycle; and a store."""
    sums = math.prod(steps)
    terms = math.prod(info.extent(i) for i in info.reduced)
    shared, apart = steps[-1], steps[-1] * terms
    for window, size in zip(windows, steps, strict=False):
        whole = (info.extent(window.reduced) - 1) * window.apart + 1
        shared *= min((size - 1) * window.step + whole, size * info.extent(window.reduced))
    # Sums that are few wait for one another.
    one = max(sums * terms / 2, (shared + apart) / 2, 4 * terms if sums < 8 else 0) + 0.3 * (shared + apart) / 2 + sums
    return one * _count(info, windows, steps, lanes)


def _count(info: BlockInfo, windows: list[_Window], steps: tuple[int, ...], lanes: int) -> float:
    """Tiles; of one that is cut off at the end, what it takes."""
    sizes = {window.spatial: size for window, size in zip(windows, steps, strict=False)}
    count = 1.0
    for i in info.spatial:
        size = lanes * steps[-1] if info.store.strides[i] == 1 else sizes.get(i, 1)
        count *= info.extent(i) / size * (1.0 if info.extent(i) % size == 0 else 1.05)
    return count
