"""What goes wrong on a cluster costs the candidates that it happened to, at most."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import scale, tiles

import tilewright as tw
from tilewright import _core
from tilewright.cluster import connection, labels, measurer, worker
from tilewright.cluster.connection import Cluster

from .machines import Machines, until
from .test_tune import records

SEARCH: dict[str, Any] = {"space": tiles, "trials": 16, "progress": None, "batch": 4}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "GRACE", 2.0)
    monkeypatch.setattr(connection, "SILENT_SECONDS", 3.0)


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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_candidates_of_a_lost_worker_go_elsewhere(machines: Machines, tmp_path: Path, number: int) -> None:
    # A worker that is stopped keeps the locks of its host.
    victim = machines.worker("--measure", "1", "--build", "1", wait=False, host="another")
    machines.worker("--measure", "1", "--build", "1")
    at = At(5, lambda: os.kill(victim.pid, number))
    result = tw.tune(scale, **{**SEARCH, "progress": at}, database=tmp_path / "t.db", cluster=machines.address)
    assert at.done and result.stop_reason == "trials"
    assert {each.outcome for each in is_whole(tmp_path / "t.db")} <= {"ok", "slow_stopped"}


def test_a_candidate_that_kills_two_workers_is_a_failure(machines: Machines, tmp_path: Path) -> None:
    # The fourth object that a worker measures kills it, and whoever measures that one later.
    patch = f"""
import hashlib, os, signal
from pathlib import Path
from tilewright.cluster import tasks
honest, seen, marker = tasks.measure, [], Path({str(tmp_path / "deadly")!r})
def measure(specification, program, reference, built, incumbent):
    code = hashlib.sha256(tasks.unpack(built)["object"]).hexdigest() if built else ""
    seen.append(code)
    if len(seen) == 5 and not marker.exists():
        marker.write_text(code)
    if marker.exists() and marker.read_text() == code:
        os.kill(os.getpid(), signal.SIGKILL)
    return honest(specification, program, reference, built, incumbent)
tasks.measure = measure
"""
    for _ in range(3):
        machines.worker("--measure", "1", "--build", "0", patch=patch, wait=False)
    machines.worker("--measure", "0", "--build", "1")
    machines.wait()
    result = tw.tune(scale, **SEARCH, database=tmp_path / "t.db", cluster=machines.address)
    assert result.progress.failures["cluster/lost-workers"][0] == 1
    outcomes = [each.outcome for each in is_whole(tmp_path / "t.db")]
    assert outcomes.count("run_crash") == 1
    (failed,) = (each for each in records(tmp_path / "t.db") if each.outcome == "run_crash")
    assert "workers were lost with this candidate" in failed.error


def deceiving(machines: Machines, patch: str, tmp_path: Path) -> list[str]:
    """A search with an honest worker, and one that has this patch; the warnings."""
    machines.worker("--measure", "1", "--build", "0", patch=textwrap.dedent(patch), wait=False)
    machines.worker("--measure", "1", "--build", "1")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = tw.tune(scale, **SEARCH, database=tmp_path / "t.db", cluster=machines.address)
    assert result.record is not None
    assert {each.outcome for each in is_whole(tmp_path / "t.db")} <= {"ok", "slow_stopped"}
    return [str(each.message) for each in told]


def test_a_worker_of_another_target_than_it_says(machines: Machines, tmp_path: Path) -> None:
    patch = """
        import types
        from tilewright.cluster import tasks
        other = {"native_key": lambda: "llvm -mcpu=haswell -num-cores=1"}
        tasks.labels = types.SimpleNamespace(**{**vars(labels), **other})
    """
    told = deceiving(machines, patch, tmp_path)
    assert any("gets no more candidates" in text and "haswell" in text for text in told)


def test_a_worker_that_computes_something_else(machines: Machines, tmp_path: Path) -> None:
    patch = """
        from tilewright.cluster import tasks
        honest = tasks._station
        def station(*arguments, **how):
            found, fresh = honest(*arguments, **how)
            if found.outputs:
                found.outputs = [bytes(len(each)) for each in found.outputs]
            return found, fresh
        tasks._station = station
        import time
        time.sleep(1)
    """
    told = deceiving(machines, patch, tmp_path)
    assert not told or any("gets no more candidates" in text for text in told)


def test_a_worker_that_answers_with_something_else(machines: Machines, tmp_path: Path) -> None:
    told = deceiving(machines, "from tilewright.cluster import tasks\ntasks.pack = lambda value: b'nothing'", tmp_path)
    assert any("gets no more candidates" in text and "bytes that are no result" in text for text in told)


def test_a_search_waits_for_workers(machines: Machines, tmp_path: Path) -> None:
    waits: list[str] = []

    def progress(now: Any) -> None:
        if now.waiting_for and not waits:
            waits.append(now.waiting_for)
            threading.Thread(target=machines.worker, args=("--measure", "1", "--build", "1")).start()

    asked = {**SEARCH, "progress": progress}
    assert tw.tune(scale, **asked, database=tmp_path / "t.db", cluster=machines.address).record is not None
    assert waits and labels.native_key() in waits[0] and "builds" in waits[0]
    is_whole(tmp_path / "t.db")


def test_the_scheduler_comes_back(machines: Machines, tmp_path: Path) -> None:
    scheduler = machines.processes[0]
    machines.worker("--measure", "1", "--build", "1")

    def again() -> None:
        scheduler.kill()
        scheduler.wait()
        machines.scheduler()

    at = At(5, again)
    result = tw.tune(scale, **{**SEARCH, "progress": at}, database=tmp_path / "t.db", cluster=machines.address)
    assert at.done and result.stop_reason == "trials"
    is_whole(tmp_path / "t.db")


def children(process: subprocess.Popen[str]) -> list[int]:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    found = []
    for task in Path(f"/proc/{process.pid}/task").glob("*/children"):
        found += [int(each) for each in task.read_text().split()]
    return found if path.exists() else []


def test_an_interrupt_leaves_no_helper(machines: Machines, tmp_path: Path) -> None:
    worker = machines.worker("--measure", "1", "--build", "1")
    program = f"""
        import sys
        sys.path.insert(0, {os.getcwd()!r})
        import tilewright as tw
        from tests.search.programs import scale, tiles
        result = tw.tune(scale, space=tiles, trials=4000, cluster={machines.address!r}, progress="json",
                         database={str(tmp_path / "t.db")!r})
        print("ended:", result.stop_reason, flush=True)
    """
    searching = machines._start([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE)
    assert searching.stdout is not None
    for line in searching.stdout:
        if line.startswith("{") and json.loads(line)["trials"] >= 3:
            break
    helpers = children(worker)
    assert helpers
    searching.send_signal(signal.SIGINT)
    assert "ended: canceled" in searching.communicate(timeout=60)[0]
    until(lambda: not children(worker))
    assert not any(Path(f"/proc/{each}").exists() for each in helpers)
    # The same search goes on where it was.
    before = len(records(tmp_path / "t.db"))
    assert before >= 3


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


def test_a_scheduler_that_stays_away_ends_the_search(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurer, "RECONNECT_SECONDS", 0.5)
    at = At(3, machines.processes[0].kill)
    machines.worker("--measure", "1", "--build", "1")
    with pytest.raises(tw.ResourceError, match="the same command goes on") as error:
        tw.tune(scale, **{**SEARCH, "progress": at}, database=tmp_path / "t.db", cluster=machines.address)
    assert error.value.code == "cluster/lost-scheduler"
    assert len(records(tmp_path / "t.db")) >= 3
