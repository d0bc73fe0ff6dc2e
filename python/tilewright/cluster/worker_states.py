"""Per-worker state of a session: whether its results are accepted, its relative speed, and where its time went."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from typing import Any

from tilewright.cluster.connection import WorkerFacts
from tilewright.tables import Table

#: ratio of two timings of the same incumbent from which the host is reported to drift
_DRIFT = 1.1
#: share of disturbed measurements from which the host is reported to be busy
_BUSY_SHARE = 0.25
#: measurements needed before a host can be reported to be busy
_LEAST_MEASURED = 4
#: the first comparisons of a host with the first one, whose median is its factor
_COMPARISONS = 9


@dataclasses.dataclass
class _State:
    name: str
    is_ready: bool = False  #: it has run the reference, with the expected results
    distrusted: str = ""  #: why it gets no more tasks; "" if it does
    builds_badly: str = ""  #: why it gets no more builds; "" if it does
    lost: int = 0  #: tasks that it was given and did not finish
    measured: int = 0
    disturbed: int = 0
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)  #: where its time went
    machine: str = ""  #: the host that it is on
    incumbent: tuple[float, float] = (0.0, 0.0)  #: its time on the first host, and its first time on this one
    slowest: float = 1.0  #: the largest ratio of two timings of the same incumbent


class WorkerStates:
    """All workers of a session, by address. Workers that have left stay in the report."""

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}
        self._factors: dict[str, list[float]] = {}  # of comparisons with the first host, by host
        self._first = ""  # the host whose times are those of the session

    def _of(self, worker: str) -> _State:
        return self._states.setdefault(worker, _State(worker))

    def heard(self, worker: str, known: Mapping[str, WorkerFacts]) -> None:
        """Record that a worker has started a task."""
        self._of(worker)
        self.look({worker: known[worker]} if worker in known else {})

    def look(self, known: Mapping[str, WorkerFacts]) -> None:
        """Update the names and hosts of workers from what the scheduler knows."""
        for address, worker in known.items():
            if address in self._states:
                self._states[address].name, self._states[address].machine = worker.name, worker.host

    def name(self, worker: str) -> str:
        """Return the name of a worker for messages."""
        return self._states[worker].name if worker in self._states else worker or "a worker"

    def is_ready(self, worker: str) -> bool:
        """Return whether a worker has run the reference."""
        return worker in self._states and self._states[worker].is_ready

    def ready(self, worker: str) -> None:
        """Record that a worker has run the reference, with the expected results."""
        self._of(worker).is_ready = True

    def lost(self, worker: str) -> None:
        """Record that a worker did not finish a task. It has to run the reference again."""
        state = self._of(worker)
        state.lost += 1
        state.is_ready = False

    def forget(self, worker: str) -> None:
        """Record that a worker has left. A new process may use its address later."""
        if worker in self._states:
            self._states[worker].is_ready = False
            self._states[worker].distrusted = self._states[worker].builds_badly = ""

    def forget_all(self) -> None:
        """Record that all workers have left, with the scheduler."""
        for worker in self._states:
            self.forget(worker)

    def distrust(self, worker: str, why: str) -> bool:
        """Give no more tasks to a worker. Returns whether it got tasks until now."""
        state = self._of(worker)
        is_new = not state.distrusted
        state.distrusted = state.distrusted or why
        return is_new

    def distrust_builds(self, worker: str, why: str) -> bool:
        """Give no more builds to a worker. Returns whether it got some until now."""
        state = self._of(worker)
        is_new = not state.builds_badly
        state.builds_badly = state.builds_badly or why
        return is_new

    def builds_badly(self, worker: str) -> bool:
        """Return whether a worker gets no more builds."""
        return worker in self._states and bool(self._states[worker].builds_badly)

    def is_distrusted(self, worker: str) -> bool:
        """Return whether a worker gets no more tasks."""
        return worker in self._states and bool(self._states[worker].distrusted)

    @property
    def distrusted(self) -> bool:
        """Return whether some worker gets no more tasks, or no more builds."""
        return any(state.distrusted or state.builds_badly for state in self._states.values())

    def factor(self, worker: str) -> float:
        """Return the factor that converts times of a worker to those of the first state.

        Workers of one host share it. Other programs may disturb a comparison, so it is the median of the first ones.
        Later ones do not count: a factor that followed each comparison would carry their errors on from incumbent to
        incumbent.
        """
        return statistics.median(self._factors.get(self._machine(worker)) or [1.0])

    def _machine(self, worker: str) -> str:
        return (self._states[worker].machine if worker in self._states else "") or worker

    def begin(self, worker: str, factor: float = 0.0) -> None:
        """Record the first host: its factor is 1, or at first one that keeps times of an earlier session."""
        self._of(worker)
        if factor > 0:
            self._factors[self._machine(worker)] = [factor]
        else:
            self._first = self._machine(worker)

    def reference(self, worker: str, incumbent_seconds: float, compared_with: float) -> float:
        """Return what the incumbent counts as beside a candidate: at least its seconds there times the host's factor.

        Candidates count as their ratio to the incumbent. The fastest of many noisy ratios is one where something else
        slowed the incumbent down; by this bound, no candidate counts as less than its own seconds say.

        Args:
            worker: its address.
            incumbent_seconds: time of the incumbent alternately with the candidate; 0 if there was none.
            compared_with: what the incumbent counts as; 0 if there was none.
        """
        return max(compared_with, incumbent_seconds * self.factor(worker)) if compared_with > 0 else 0.0

    def measured(self, worker: str, facts: Mapping[str, Any], times: Mapping[str, float], compared_with: float) -> str:
        """Record a result. Returns what disturbed the measurement, as text; "" if nothing did.

        Args:
            worker: its address.
            facts: properties of the result.
            times: where its time went.
            compared_with: time on the first host of the incumbent that was timed alternately; 0 if there was none.
        """
        state = self._of(worker)
        for name, seconds in times.items():
            state.seconds[name] = state.seconds.get(name, 0.0) + seconds
        state.measured += 1
        notes = []
        kept, rejected = len(facts["seconds"]), facts["rejected"]
        if facts["noisy"] or rejected > kept:
            state.disturbed += 1
            undisturbed = "no measurement was" if facts["noisy"] else f"{kept} of {kept + rejected} measurements were"
            notes.append(f"busy: {undisturbed} undisturbed")
        here = facts["incumbent_seconds"]
        if here > 0 and compared_with > 0:
            machine = self._machine(worker)
            if machine != self._first and len(known := self._factors.setdefault(machine, [])) < _COMPARISONS:
                known.append(compared_with / here)
            if state.incumbent[0] != compared_with:
                state.incumbent = (compared_with, here)
            drift = here / state.incumbent[1]
            state.slowest = max(state.slowest, drift, 1 / drift)
            if not 1 / _DRIFT < drift < _DRIFT:
                notes.append(f"drifted: the incumbent takes {drift:.2f} times as long as at first")
        return "; ".join(notes)

    def built(self, worker: str, times: Mapping[str, float], known: Mapping[str, WorkerFacts]) -> None:
        """Record where the time of a build went."""
        self.heard(worker, known)
        spent = self._of(worker).seconds
        spent["building"] = spent.get("building", 0.0) + times.get("building", 0.0)

    def remarks(self) -> list[str]:
        """Return warnings about hosts, one sentence each."""
        found = []
        for state in self._states.values():
            if state.measured >= _LEAST_MEASURED and state.disturbed > _BUSY_SHARE * state.measured:
                found.append(f"{state.name} is busy: {state.disturbed} of {state.measured} measurements were disturbed")
            if state.slowest > _DRIFT:
                found.append(f"{state.name} drifts: the same kernel took {state.slowest:.2f} times as long as at first")
            if state.distrusted:
                found.append(f"{state.name} gets no candidates: {state.distrusted}")
            if state.builds_badly:
                found.append(f"{state.name} gets no builds: {state.builds_badly}")
        return found

    def seconds(self) -> dict[str, float]:
        """Return seconds by "worker: activity". A worker that was started again counts with the one before it."""
        found: dict[str, float] = {}
        for state in self._states.values():
            for name, spent in state.seconds.items():
                key = f"{state.name}: {name}"
                found[key] = found.get(key, 0.0) + spent
        return found

    def table(self) -> Table:
        """Return a table of where the time of each worker went."""
        names = ("waiting", "preparing", "reference", "measuring", "building")
        rows = [
            (
                state.name,
                str(state.measured),
                str(state.lost),
                *(f"{state.seconds.get(name, 0.0):.2f}" for name in names),
                f"{self.factor(worker):.3f}",
            )
            for worker, state in self._states.items()
        ]
        columns = ("worker", "results", "lost", *(f"{name} (s)" for name in names), "factor")
        return Table("where the time of the workers went", columns, tuple(rows))
