"""What a session knows of hosts: drift, disturbance, trust."""

from __future__ import annotations

from typing import Any

from tilewright.cluster.hosts import Hosts


def facts(incumbent: float = 0.0, *, noisy: bool = False) -> dict[str, Any]:
    return {"incumbent_seconds": incumbent, "noisy": noisy}


def test_a_host_that_is_half_as_fast_is_no_drift() -> None:
    hosts = Hosts()
    assert hosts.measured("slow", facts(2e-3), {}, 1e-3) == ""
    assert hosts.measured("slow", facts(2.1e-3), {}, 1e-3) == ""
    assert hosts.factor("slow") == 0.5  # fixed at the first one
    assert hosts.remarks() == []
    # Another incumbent begins again.
    assert hosts.measured("slow", facts(1e-3), {}, 0.5e-3) == ""


def test_a_drift_is_told() -> None:
    hosts = Hosts()
    hosts.measured("a", facts(1e-3), {}, 1e-3)
    assert "1.30 times" in hosts.measured("a", facts(1.3e-3), {}, 1e-3)
    assert ["drifts" in each for each in hosts.remarks()] == [True]


def test_a_busy_host_is_told() -> None:
    hosts = Hosts()
    for noisy in (True, True, False, True):
        assert bool(hosts.measured("a", facts(noisy=noisy), {"measuring": 0.5}, 0.0)) == noisy
    assert hosts.remarks() == ["a is busy: 3 of 4 measurements were disturbed"]
    (row,) = hosts.table().rows
    assert row[:3] == ("a", "4", "0") and "2.00" in row


def test_who_is_distrusted_stays_so_until_it_is_gone() -> None:
    hosts = Hosts()
    assert hosts.distrust("a", "it lies")
    assert not hosts.distrust("a", "again")
    assert hosts.is_distrusted("a") and hosts.distrusted
    hosts.forget("a")
    assert not hosts.is_distrusted("a") and not hosts.distrusted
