"""What a session knows of each worker: whether it is trusted, how fast it is now, and where its time went."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tilewright.cluster.connection import WorkerFacts
from tilewright.tables import Table

#: an incumbent that takes so much longer or shorter than at first says that the host has another speed now
_DRIFT = 1.1
#: of measurements, where so many were disturbed, the host is called busy
_BUSY_SHARE = 0.5
#: measurements before a host is called busy
_LEAST_MEASURED = 4


@dataclasses.dataclass
class _Host:
    name: str
    is_ready: bool = False  #: it has called the reference
    distrusted: str = ""  #: why it gets nothing more
    lost: int = 0  #: tasks that it did not finish
    measured: int = 0
    disturbed: int = 0
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)  #: where its time went
    factor: float = 0.0  #: from its times to those of the host that was first; 0: it has not timed an incumbent yet
    incumbent: tuple[float, float] = (0.0, 0.0)  #: what it counts as, and its time here at first
    slowest: float = 1.0  #: by which its speed differed at most


class Hosts:
    """Workers by their addresses; those that are gone stay in the report."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}

    def _of(self, worker: str) -> _Host:
        return self._hosts.setdefault(worker, _Host(worker))

    def heard(self, worker: str, known: Mapping[str, WorkerFacts]) -> None:
        """It has begun with a task."""
        host = self._of(worker)
        if worker in known:
            host.name = known[worker].name

    def look(self, known: Mapping[str, WorkerFacts]) -> None:
        """Takes over the names of new ones."""
        for address, worker in known.items():
            if address in self._hosts:
                self._hosts[address].name = worker.name

    def name(self, worker: str) -> str:
        """How messages call it."""
        return self._hosts[worker].name if worker in self._hosts else worker or "a worker"

    def is_ready(self, worker: str) -> bool:
        """Whether it has called the reference."""
        return worker in self._hosts and self._hosts[worker].is_ready

    def ready(self, worker: str) -> None:
        """It has, and computed the right results."""
        self._of(worker).is_ready = True

    def lost(self, worker: str) -> None:
        """It did not finish a task; its helpers may be new ones."""
        host = self._of(worker)
        host.lost += 1
        host.is_ready = False

    def forget(self, worker: str) -> None:
        """It is gone; another process may come back at its address."""
        if worker in self._hosts:
            self._hosts[worker].is_ready = False
            self._hosts[worker].distrusted = ""

    def distrust(self, worker: str, why: str) -> bool:
        """It gets nothing more; whether that is new."""
        host = self._of(worker)
        is_new = not host.distrusted
        host.distrusted = host.distrusted or why
        return is_new

    def is_distrusted(self, worker: str) -> bool:
        """Whether it gets nothing more."""
        return worker in self._hosts and bool(self._hosts[worker].distrusted)

    @property
    def distrusted(self) -> bool:
        """Whether there is such a one."""
        return any(host.distrusted for host in self._hosts.values())

    def factor(self, worker: str) -> float:
        """What its times are multiplied with to be those of the host that was first."""
        return (self._hosts[worker].factor if worker in self._hosts else 0.0) or 1.0

    def begin(self, worker: str, factor: float) -> None:
        """It is the first one; its factor is 1, or what makes a kernel of an earlier session count as it did."""
        self._of(worker).factor = factor

    def measured(self, worker: str, facts: Mapping[str, Any], times: Mapping[str, float], compared_with: float) -> str:
        """It has answered; what disturbed it, in words, "" for nothing.

        Args:
            worker: its address.
            facts: of the result.
            times: where its time went.
            compared_with: what the incumbent counts as that the candidate was timed with; 0: none.
        """
        host = self._of(worker)
        for name, seconds in times.items():
            host.seconds[name] = host.seconds.get(name, 0.0) + seconds
        host.measured += 1
        notes = []
        if facts["noisy"]:
            host.disturbed += 1
            notes.append("busy: no measurement was undisturbed")
        here = facts["incumbent_seconds"]
        if here > 0 and compared_with > 0:
            # Once: a factor that followed each comparison would carry their errors on from incumbent to incumbent.
            host.factor = host.factor or compared_with / here
            if host.incumbent[0] != compared_with:
                host.incumbent = (compared_with, here)
            drift = here / host.incumbent[1]
            host.slowest = max(host.slowest, drift, 1 / drift)
            if not 1 / _DRIFT < drift < _DRIFT:
                notes.append(f"drifted: the incumbent takes {drift:.2f} times as long as at first")
        return "; ".join(notes)

    def remarks(self) -> list[str]:
        """What users should know of hosts, a sentence each."""
        found = []
        for host in self._hosts.values():
            if host.measured >= _LEAST_MEASURED and host.disturbed > _BUSY_SHARE * host.measured:
                found.append(f"{host.name} is busy: {host.disturbed} of {host.measured} measurements were disturbed")
            if host.slowest > _DRIFT:
                found.append(f"{host.name} drifts: the same kernel took {host.slowest:.2f} times as long as at first")
            if host.distrusted:
                found.append(f"{host.name} gets no candidates: {host.distrusted}")
        return found

    def seconds(self) -> dict[str, float]:
        """Where the time of each worker went, by "worker: what"."""
        return {f"{host.name}: {name}": spent for host in self._hosts.values() for name, spent in host.seconds.items()}

    def table(self) -> Table:
        """Where the time of each worker went."""
        names = ("waiting", "preparing", "reference", "measuring", "building")
        rows = [
            (
                host.name,
                str(host.measured),
                str(host.lost),
                *(f"{host.seconds.get(name, 0.0):.2f}" for name in names),
                f"{host.factor or 1.0:.3f}",
            )
            for host in self._hosts.values()
        ]
        columns = ("worker", "results", "lost", *(f"{name} (s)" for name in names), "factor")
        return Table("where the time of the workers went", columns, tuple(rows))
