"""What a session knows of hosts: drift, disturbance, trust."""

from __future__ import annotations

from typing import Any

from tilewright.cluster.connection import WorkerFacts
from tilewright.cluster.worker_states import WorkerStates


def facts(incumbent: float = 0.0, *, noisy: bool = False, rejected: int = 0) -> dict[str, Any]:
    return {"incumbent_seconds": incumbent, "noisy": noisy, "rejected": rejected, "seconds": [1e-3] * 5}


def test_a_host_that_is_half_as_fast_is_no_drift() -> None:
    states = WorkerStates()
    assert states.measured("slow", facts(2e-3), {}, 1e-3) == ""
    assert states.measured("slow", facts(2.1e-3), {}, 1e-3) == ""
    assert states.remarks() == []
    # Another incumbent begins again.
    assert states.measured("slow", facts(1e-3), {}, 0.5e-3) == ""
    assert states.factor("slow") == 0.5  # the median of three


def test_the_factor_of_a_host() -> None:
    """The median of its first comparisons, for all of its workers; 1 for the first host, whatever it measures later."""
    states = WorkerStates()
    known = {
        name: WorkerFacts(name, name, host, "llvm", "versions", 1, 1, 0.0)
        for name, host in (("a", "first"), ("again", "first"), ("b", "second"), ("c", "second"))
    }
    for worker in known:
        states.heard(worker, known)
    states.begin("a")
    for worker in ("a", "again"):
        states.measured(worker, facts(1.3e-3), {}, 1e-3)
        assert states.factor(worker) == 1.0
    for here in (4e-3, 2e-3, 2e-3):  # something else ran during the first
        states.measured("b", facts(here), {}, 1e-3)
    assert states.factor("b") == states.factor("c") == 0.5
    for _ in range(20):  # of which the first six count
        states.measured("c", facts(8e-3), {}, 1e-3)
    assert states.factor("b") == 0.125
    for _ in range(20):
        states.measured("c", facts(2e-3), {}, 1e-3)
    assert states.factor("b") == 0.125


def test_the_seconds_of_a_worker_that_was_started_again_are_added() -> None:
    states = WorkerStates()
    known = {a: WorkerFacts(a, "head (one)", "first", "llvm", "versions", 1, 1, 0.0) for a in ("tcp://1", "tcp://2")}
    for worker in known:
        states.heard(worker, known)
        states.measured(worker, facts(), {"measuring": 1.5}, 0.0)
    assert states.seconds() == {"head (one): measuring": 3.0}


def test_no_candidate_counts_as_less_than_its_own_seconds() -> None:
    states = WorkerStates()
    states.begin("a")
    assert states.reference("a", 3e-3, 1e-3) == 3e-3  # something slowed the incumbent down
    assert states.reference("a", 0.9e-3, 1e-3) == 1e-3
    assert states.reference("a", 1e-3, 0.0) == 0.0  # it was timed alone


def test_a_drift_is_told() -> None:
    states = WorkerStates()
    states.measured("a", facts(1e-3), {}, 1e-3)
    assert "1.30 times" in states.measured("a", facts(1.3e-3), {}, 1e-3)
    assert ["drifts" in each for each in states.remarks()] == [True]


def test_a_busy_host_is_told() -> None:
    states = WorkerStates()
    for noisy in (True, True, False, True):
        assert bool(states.measured("a", facts(noisy=noisy), {"measuring": 0.5}, 0.0)) == noisy
    assert states.remarks() == ["a is busy: 3 of 4 measurements were disturbed"]
    assert states.measured("a", facts(rejected=5), {}, 0.0) == ""
    assert "busy: 5 of 11 measurements were undisturbed" in states.measured("a", facts(rejected=6), {}, 0.0)
    (row,) = states.table().rows
    assert row[:3] == ("a", "6", "0") and "2.00" in row


def test_who_is_distrusted_stays_so_until_it_is_gone() -> None:
    states = WorkerStates()
    assert states.distrust("a", "it lies")
    assert not states.distrust("a", "again")
    assert states.is_distrusted("a") and states.distrusted
    states.forget("a")
    assert not states.is_distrusted("a") and not states.distrusted
