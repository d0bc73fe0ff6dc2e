"""Curves and points in a frame with two axes, as SVG: what pages and pictures are drawn with."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

__all__ = ["BOTTOM", "HEIGHT", "LEFT", "RIGHT", "TOP", "WIDTH", "Axis", "frame", "short"]

#: of a picture, and what its frame leaves free at its sides
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 440, 260, 56, 34, 12, 14


def short(value: float) -> str:
    """Three digits: "2.1 M"."""
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g}"


class Axis:
    """Maps values to places, on a scale of powers of ten or an even one from 0.

    Args:
        values: that it has to show.
        low: place of its beginning.
        high: place of its end.
        powers: whether equal factors are equal distances.
    """

    def __init__(self, values: Sequence[float], low: float, high: float, *, powers: bool) -> None:
        self.powers = powers
        first, last = min(values), max(values)
        if powers:
            self.first, self.last = math.log10(first) - 0.1, math.log10(last) + 0.1
        else:
            self.first, self.last = 0.0, last * 1.05 or 1.0
        self._low, self._high = low, high

    def __call__(self, value: float) -> float:
        """The place of a value."""
        place = math.log10(value) if self.powers else value
        return self._low + (place - self.first) / (self.last - self.first) * (self._high - self._low)

    def ticks(self) -> list[float]:
        """Round values."""
        if self.powers:
            found = [10.0**e for e in range(math.ceil(self.first), math.floor(self.last) + 1)]
            return found[:: max(1, len(found) // 5)]
        step = 10.0 ** math.floor(math.log10(self.last))
        step = next(step / part for part in (1, 2, 5, 10) if self.last / (step / part) >= 3)
        return [step * i for i in range(int(self.last / step) + 1)]


def frame(x: Axis, y: Axis, titles: tuple[str, str], inside: Sequence[str], caption: str) -> str:
    """The picture with its axes, and what is drawn inside.

    Args:
        titles: of the axes.
        caption: for who cannot see it.
    """
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    lines = [
        f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{bottom}"/>',
    ]
    lines += [f'<text x="{x(t):.1f}" y="{bottom + 14}" text-anchor="middle">{short(t)}</text>' for t in x.ticks()]
    lines += [f'<text x="{LEFT - 6}" y="{y(t) + 4:.1f}" text-anchor="end">{short(t)}</text>' for t in y.ticks()]
    lines.append(f'<text x="{right}" y="{HEIGHT - 4}" text-anchor="end">{html.escape(titles[0])}</text>')
    lines.append(f'<text x="{LEFT + 6}" y="{TOP + 8}">{html.escape(titles[1])}</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{html.escape(caption)}">{"".join([*lines, *inside])}</svg>'
    )
