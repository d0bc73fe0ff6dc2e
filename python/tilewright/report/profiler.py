"""Profiler of a session: seconds by part."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tilewright.support.thread_stack import ThreadStack
from tilewright.tables import Table
from tilewright.timing import format_seconds

__all__ = ["CONCURRENT", "PartTimes", "Profiler", "time_table", "total_seconds"]

#: prefix of the names of parts that run concurrently in other processes, which are not included in the total
CONCURRENT = "beside/"


class PartTimes(dict[str, float]):
    """Seconds by part of a session. Old databases have the part "drawing" for sampling; reading it returns "sampling"
    plus "reporting"."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        super().__init__(seconds)
        if "drawing" in self:
            self["sampling"] = self.get("sampling", 0.0) + self.pop("drawing")

    def __missing__(self, part: str) -> float:
        if part == "drawing":
            return self.get("sampling", 0.0) + self.get("reporting", 0.0)
        raise KeyError(part)


_ACTIVE: ThreadStack[Profiler] = ThreadStack()


class Profiler:
    """Add up seconds by name while its ``with`` block runs; "Total" is the time of the whole block.

    :func:`tilewright.tune` records its parts, which do not overlap. ``tune_tir`` and ``tune_tasks`` record the scopes
    of TVM, where "GenerateCandidates" contains "EvoSearch" and its parts. Concurrent work of helper processes is
    "beside/building" (the sum over all of them), "beside/checking" and "beside/measuring".

    >>> with Profiler() as profiler:
    ...     with Profiler.timeit("Build"):
    ...         build()
    >>> print(profiler.table())
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()
        self._started: list[float] = []

    def __enter__(self) -> Profiler:
        self._started.append(time.perf_counter())
        _ACTIVE.items.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _ACTIVE.items.remove(self)
        self.add("Total", time.perf_counter() - self._started.pop())

    def add(self, name: str, seconds: float) -> None:
        """Add seconds that were measured elsewhere, such as in another process. Any thread may call this method."""
        with self._lock:
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def get(self) -> dict[str, float]:
        """Return seconds by name, as TVM's test expects, not minutes as in TVM's documentation."""
        with self._lock:
            seconds = dict(self._seconds)
        if self._started:
            seconds["Total"] = seconds.get("Total", 0.0) + time.perf_counter() - self._started[-1]
        return seconds

    def table(self) -> Table:
        """Return the parts, longest first, with their fractions of the total. Nested times are counted in both rows;
        concurrent work in other processes ("beside/...") is not part of the total."""
        seconds = self.get()
        total = seconds.pop("Total", 0.0)
        rows = [("Total", total), *_longest_first(seconds)]
        cells = [
            (str(number), name, format_seconds(spent), f"{spent / total:.1%}" if total else "")
            for number, (name, spent) in enumerate(rows)
        ]
        return Table("Where the time went", ("ID", "Name", "Time", "Share"), tuple(cells))

    @staticmethod
    def current() -> Profiler | None:
        """Return the innermost profiler whose ``with`` block this thread is in."""
        return _ACTIVE.current()

    @staticmethod
    def timeit(name: str) -> Any:
        """Return a context whose time is added to the current profiler; ignored if no profiler is active."""
        return _timed(name)


@contextlib.contextmanager
def _timed(name: str) -> Iterator[None]:
    profiler = Profiler.current()
    started = time.perf_counter()
    try:
        yield
    finally:
        if profiler is not None:
            profiler.add(name, time.perf_counter() - started)


def total_seconds(seconds: Mapping[str, float]) -> float:
    """Return the time of a session: its "Total", or the sum of its parts."""
    return seconds.get("Total") or sum(spent for name, spent in seconds.items() if not name.startswith(CONCURRENT))


def _longest_first(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the parts, longest first; concurrent work in other processes comes last."""
    return sorted(seconds.items(), key=lambda item: (item[0].startswith(CONCURRENT), -item[1]))


def _row_label(name: str) -> str:
    """Return the label of a part's row."""
    if name == "nothing":  # the tuner waited, and no helper process built or measured
        return "waiting while the helper processes were idle"
    return f"{name.removeprefix(CONCURRENT)}, in other processes meanwhile" if name.startswith(CONCURRENT) else name


def time_table(title: str, sessions: Iterable[Mapping[str, float]]) -> Table:
    """Return the time breakdown of sessions, longest first; concurrent work in other processes comes last.

    Args:
        title: title of the table.
        sessions: seconds by part, for each session.
    """
    parts: dict[str, float] = {}
    total = 0.0
    for seconds in sessions:
        total += total_seconds(seconds)
        for name, spent in seconds.items():
            parts[name] = parts.get(name, 0.0) + spent
    parts.pop("Total", None)
    rows = [("Total", total), *_longest_first(parts)]
    cells = tuple(
        (
            _row_label(name),
            format_seconds(spent),
            f"{spent / total:.0%}" if total and not name.startswith(CONCURRENT) else "",
        )
        for name, spent in rows
    )
    return Table(title, ("what", "time", "share"), cells)
