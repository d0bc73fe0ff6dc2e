"""What goes wrong on a cluster costs the candidates that it happened to, at most."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import scale, tiles

import tilewright as tw
from tilewright import _core
from tilewright.cluster import connection, labels, measurer, worker
from tilewright.cluster.connection import Cluster

from .machines import Machines
from .test_tune import records

SEARCH: dict[str, Any] = {"space": tiles, "trials": 16, "progress": None, "batch": 4}


class At:
    """Does something at a trial of a search, once."""

    def __init__(self, trial: int, action: Any) -> None:
        self.trial, self.action, self.done = trial, action, False

    def __call__(self, progress: Any) -> None:
        if progress.trials >= self.trial and not self.done:
            self.done = True
            self.action()


def is_whole(path: Path, trials: int = 16) -> list[Any]:
    """Each trial has one record."""
    found = records(path)
    assert sorted(each.index for each in found) == list(range(trials))
    return found


def test_candidates_of_a_lost_worker_go_elsewhere(machines: Machines, tmp_path: Path) -> None:
    victim = machines.worker("--measure", "1", "--build", "1", wait=False, host="another")
    machines.worker("--measure", "1", "--build", "1")
    at = At(5, victim.kill)
    result = tw.tune(scale, **{**SEARCH, "progress": at}, database=tmp_path / "t.db", cluster=machines.address)
    assert at.done and result.stop_reason == "trials"
    assert {each.outcome for each in is_whole(tmp_path / "t.db")} <= {"ok", "slow_stopped"}


def test_other_versions_are_refused_by_name(machines: Machines) -> None:
    machines.worker("--measure", "1", "--build", "1")
    patch = "labels.versions = lambda: 'tilewright 9.9, LLVM 99, ABI 9.9'"
    other = machines.worker(patch=patch, wait=False)
    assert other.wait(60) == 1
    text = machines.logs[-1].read_text()
    assert "tilewright 9.9" in text and labels.versions() in text and machines.address.split(":")[0] in text


def test_pickled_results_are_refused(machines: Machines) -> None:
    machines.worker("--measure", "1", "--build", "1")
    cluster = Cluster(machines.address)
    try:
        assert cluster.client.submit(bytes, 3).result() == bytes(3)
        with pytest.raises(TypeError, match="only able to deserialize"):
            cluster.client.submit(complex, 1).result()
    finally:
        cluster.close()


def test_without_dask_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(tw.ResourceError, match=r'pip install "tilewright\[cluster\]"') as error:
        tw.tune(scale, space=tiles, trials=1, progress=None, cluster="tcp://127.0.0.1:1")
    assert error.value.code == "cluster/not-installed"


def test_what_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tw.ArgumentError) as error:
        tw.tune(scale, space=tiles, trials=1, progress=None, cluster=3)
    assert error.value.code == "cluster/kind"
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    with pytest.raises(tw.ResourceError) as gone:
        tw.tune(scale, space=tiles, trials=1, progress=None, cluster="tcp://127.0.0.1:1")
    assert gone.value.code == "cluster/no-scheduler"
    assert _core.measured_facts(b"nothing")["code"] == "cluster/garbage"


def test_workers_that_are_refused() -> None:
    with pytest.raises(tw.ArgumentError) as idle:
        worker.run("tcp://127.0.0.1:1", 0, 0)
    assert idle.value.code == "cluster/idle-worker"
    other = {"tcp://10.0.0.1:1": {labels.NAME: {"versions": "tilewright 9.9", "host": {"host": "old"}}}}
    with pytest.raises(tw.ResourceError, match=r"tilewright 9\.9") as versions:
        worker._check_versions(other)
    assert versions.value.code == "cluster/versions" and "old (tcp://10.0.0.1:1)" in str(versions.value)


def test_a_defect_of_the_session_ends_the_search(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    def poll(*_: Any) -> Any:
        raise RuntimeError("broken")

    # In C++ it is a diagnostic, cluster/exception, which is raised again as what it was.
    monkeypatch.setattr(measurer.ClusterMeasurer, "poll", poll)
    with pytest.raises(RuntimeError, match="broken"):
        tw.tune(scale, **SEARCH, cluster=machines.address)
