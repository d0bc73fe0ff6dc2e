"""SVG charts with two axes: curves, points and labels that do not overlap."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["BOTTOM", "HEIGHT", "LEFT", "RIGHT", "TOP", "WIDTH", "Axis", "Box", "Labels", "frame", "short"]

#: size of a picture, and the margins of its frame
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 440, 260, 56, 38, 12, 14
#: metrics of 11 px text: height above and below the baseline, and the width of a letter, rounded up since fonts differ
ASCENT, DESCENT, LETTER = 11.0, 3.5, 7.7


def short(value: float) -> str:
    """Return a value with three digits: "2.1 M"."""
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g}"


class Axis:
    """Map values to coordinates, on a logarithmic or a linear scale that begins at 0.

    Args:
        values: the values that have to be visible.
        low: coordinate of the axis' beginning.
        high: coordinate of the axis' end.
        powers: whether the scale is logarithmic.
        counts: whether only integers are meaningful.
    """

    def __init__(self, values: Sequence[float], low: float, high: float, *, powers: bool, counts: bool = False) -> None:
        self.powers, self.counts = powers, counts
        first, last = min(values), max(values)
        if powers:
            self.first, self.last = math.log10(first) - 0.1, math.log10(last) + 0.1
        else:
            self.first, self.last = 0.0, last * 1.05 or 1.0
        self._low, self._high = low, high

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value."""
        place = math.log10(value) if self.powers else value
        return self._low + (place - self.first) / (self.last - self.first) * (self._high - self._low)

    def ticks(self) -> list[float]:
        """Return round values for ticks."""
        if self.powers:
            found = [10.0**e for e in range(math.ceil(self.first), math.floor(self.last) + 1)]
            return found[:: max(1, math.ceil(len(found) / 6))]
        step = 10.0 ** math.floor(math.log10(self.last))
        step = next(step / part for part in (1, 2, 5, 10) if self.last / (step / part) >= 3)
        step = max(step, 1.0) if self.counts else step
        return [step * i for i in range(int(self.last / step) + 1)]


class Box(NamedTuple):
    """A rectangle of the picture."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float, radius: float) -> Box:
        """Return the box of a dot."""
        return cls(x - radius, y - radius, x + radius, y + radius)

    @classmethod
    def of_text(cls, text: str, x: float, y: float, anchor: str = "start") -> Box:
        """Return the box of a text with baseline `y` that begins or ends at `x`."""
        width = len(text) * LETTER
        left = x - width if anchor == "end" else x
        return cls(left, y - ASCENT, left + width, y + DESCENT)

    def overlaps(self, other: Box) -> bool:
        """Return whether the boxes overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: Box) -> bool:
        """Return whether the other box is inside this one."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom


class Labels:
    """Place labels in a frame: labels do not overlap each other or `taken` boxes, and cross lines only if necessary.

    Args:
        title: title of the vertical axis, which is inside the frame.
        taken: boxes that labels must not overlap.
    """

    INSIDE = Box(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)

    def __init__(self, title: str, taken: Iterable[Box] = ()) -> None:
        self.title = title
        self._taken = [Box.of_text(title, LEFT + 6, TOP + 8), *taken]
        self._lines: list[Box] = []

    def avoid(self, line: Sequence[tuple[float, float]]) -> None:
        """Add a line through these points, which labels should not cross."""
        for (x0, y0), (x1, y1) in itertools.pairwise(line):
            count = int(math.hypot(x1 - x0, y1 - y0) / 3) + 1
            steps = [n / count for n in range(count + 1)]
            self._lines += [Box.around(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t, 1) for t in steps]

    def put(self, text: str, places: Sequence[tuple[float, float, str]]) -> str:
        """Return the label at the best position: earlier ones are preferred; if none is free, below the first one.

        Args:
            places: candidate positions: coordinates and text-anchor, "start" or "end".
        """
        free = [place for place in places if self.INSIDE.holds(box := Box.of_text(text, *place)) and self._is_free(box)]
        if free:
            x, y, anchor = min(free, key=lambda place: self._crossed(Box.of_text(text, *place)))
        else:
            x, y, anchor = places[0]
            while not self._is_free(Box.of_text(text, x, y, anchor)):
                y += 1
        self._taken.append(Box.of_text(text, x, y, anchor))
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'

    def _is_free(self, box: Box) -> bool:
        return not any(box.overlaps(other) for other in self._taken)

    def _crossed(self, box: Box) -> int:
        return sum(box.overlaps(point) for point in self._lines)


def frame(x: Axis, y: Axis, titles: tuple[str, str], inside: Sequence[str], caption: str) -> str:
    """Return the picture with its axes and content.

    Args:
        titles: titles of the axes.
        caption: alternative text for readers who cannot see the picture.
    """
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    lines = [
        f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{bottom}"/>',
    ]
    lines += [f'<text x="{x(t):.1f}" y="{bottom + 17}" text-anchor="middle">{short(t)}</text>' for t in x.ticks()]
    lines += [f'<text x="{LEFT - 6}" y="{y(t) + 4:.1f}" text-anchor="end">{short(t)}</text>' for t in y.ticks()]
    lines.append(f'<text x="{right}" y="{HEIGHT - 4}" text-anchor="end">{html.escape(titles[0])}</text>')
    lines.append(f'<text x="{LEFT + 6}" y="{TOP + 8}">{html.escape(titles[1])}</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{html.escape(caption)}">{"".join([*lines, *inside])}</svg>'
    )
