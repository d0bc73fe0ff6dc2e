"""Where the time of a session goes."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tilewright.tables import Table
from tilewright.timing import format_seconds

__all__ = ["BESIDE", "PartTimes", "Profiler", "everything", "time_table"]

#: how the names begin of what other processes do meanwhile, which is no part of the total
BESIDE = "beside/"

_local = threading.local()


class PartTimes(dict[str, float]):
    """Seconds by part of a session. The key "drawing", which stands in stored times, is "sampling" and "reporting" now;
    it can still be read."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        super().__init__(seconds)
        if "drawing" in self:
            self["sampling"] = self.get("sampling", 0.0) + self.pop("drawing")

    def __missing__(self, part: str) -> float:
        if part == "drawing":
            return self.get("sampling", 0.0) + self.get("reporting", 0.0)
        raise KeyError(part)


def _stack() -> list[Profiler]:
    stack: list[Profiler] = _local.__dict__.setdefault("profilers", [])
    return stack


class Profiler:
    """Sums seconds by name, from its ``with`` on; "Total" is the time inside of the ``with``.

    What :func:`tilewright.tune` does is there by its parts, which do not overlap; ``tune_tir`` and ``tune_tasks`` have
    the published scopes, where "EvoSearch" and its parts are inside of "GenerateCandidates". What helper processes do
    meanwhile is "beside/building" (of all of them together), "beside/checking" and "beside/measuring".

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
        _stack().append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _stack().remove(self)
        self.add("Total", time.perf_counter() - self._started.pop())

    def add(self, name: str, seconds: float) -> None:
        """Seconds that were measured elsewhere, such as in another process. Any thread may call it."""
        with self._lock:
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def get(self) -> dict[str, float]:
        """Seconds by name, as the published test has it; its reference speaks of minutes."""
        with self._lock:
            seconds = dict(self._seconds)
        if self._started:
            seconds["Total"] = seconds.get("Total", 0.0) + time.perf_counter() - self._started[-1]
        return seconds

    def table(self) -> Table:
        """All of it, longest first, with the share of the total. What runs inside of something else is in both; what
        runs in other processes meanwhile, "beside/...", is no part of the total."""
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
        """The one whose ``with`` this thread is in."""
        return _stack()[-1] if _stack() else None

    @staticmethod
    def timeit(name: str) -> Any:
        """A context; its time goes to the current profiler, to nowhere without one."""
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


def everything(seconds: Mapping[str, float]) -> float:
    """All the time of a session: its "Total", or the sum of its parts."""
    return seconds.get("Total") or sum(spent for name, spent in seconds.items() if not name.startswith(BESIDE))


def _longest_first(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    """What other processes did meanwhile comes after all else."""
    return sorted(seconds.items(), key=lambda item: (item[0].startswith(BESIDE), -item[1]))


def _shown(name: str) -> str:
    """What a row says of a part of a session."""
    if name == "nothing":  # the tuner waited, and no helper process built or measured
        return "waiting while the helper processes were idle"
    return f"{name.removeprefix(BESIDE)}, in other processes meanwhile" if name.startswith(BESIDE) else name


def time_table(title: str, sessions: Iterable[Mapping[str, float]]) -> Table:
    """Where the time of sessions went, longest first; what other processes did meanwhile stands below.

    Args:
        title: of the table.
        sessions: seconds by what they were spent on.
    """
    parts: dict[str, float] = {}
    total = 0.0
    for seconds in sessions:
        total += everything(seconds)
        for name, spent in seconds.items():
            parts[name] = parts.get(name, 0.0) + spent
    parts.pop("Total", None)
    rows = [("Total", total), *_longest_first(parts)]
    cells = tuple(
        (
            _shown(name),
            format_seconds(spent),
            f"{spent / total:.0%}" if total and not name.startswith(BESIDE) else "",
        )
        for name, spent in rows
    )
    return Table(title, ("what", "time", "share"), cells)
