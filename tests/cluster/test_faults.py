"""What goes wrong on a cluster costs the candidates that it happened to, at most."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import scale, tiles

import tilewright as tw
from tilewright import _core
from tilewright.cluster import connection, labels, measurer, tasks, worker
from tilewright.cluster.connection import Cluster

from .machines import Machines, until
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


def blamed(found: list[Any]) -> list[tuple[int, str, str]]:
    """Return what failed for another reason than that a busy machine needs longer than the limit of a second."""
    fine = ("ok", "slow_stopped", "run_timeout", "build_timeout")
    return [(each.index, each.outcome, each.error) for each in found if each.outcome not in fine]


def test_candidates_of_a_lost_worker_go_elsewhere(machines: Machines, tmp_path: Path) -> None:
    victim = machines.worker("--measure", "1", "--build", "1", wait=False, host="another")
    machines.worker("--measure", "1", "--build", "1")
    at = At(5, victim.kill)
    result = tw.tune(scale, **{**SEARCH, "progress": at}, database=tmp_path / "t.db", cluster=machines.address)
    assert at.done and result.stop_reason == "trials"
    assert not blamed(is_whole(tmp_path / "t.db"))


def test_a_search_goes_on_when_the_scheduler_is_started_again(machines: Machines, tmp_path: Path) -> None:
    machines.worker("--measure", "1", "--build", "1")

    def restart() -> None:
        scheduler = machines.processes[0]
        scheduler.kill()
        scheduler.wait()
        machines.scheduler()

    at = At(5, restart)
    result = tw.tune(scale, **{**SEARCH, "progress": at}, database=tmp_path / "t.db", cluster=machines.address)
    assert at.done and result.stop_reason == "trials" and result.record is not None
    assert not blamed(is_whole(tmp_path / "t.db"))


def test_a_scheduler_that_stays_away_ends_the_search_which_the_same_call_continues(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurer, "RECONNECT_SECONDS", 0.5)
    machines.worker("--measure", "1", "--build", "1")
    asked = {**SEARCH, "progress": At(5, machines.processes[0].kill), "database": tmp_path / "t.db"}
    with pytest.raises(tw.ResourceError, match="has not come back") as error:
        tw.tune(scale, **asked, cluster=machines.address)
    assert error.value.code == "cluster/lost-scheduler" and "the same command" in error.value.hint
    machines.scheduler()
    result = tw.tune(scale, **asked, cluster=machines.address)
    assert result.progress.earlier >= 5 and result.stop_reason == "trials"
    is_whole(tmp_path / "t.db")


def test_objects_that_a_stopped_worker_holds_are_built_elsewhere(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SILENT_SECONDS", 3.0)
    stopped = tmp_path / "stopped"
    # It stops within a build, so that the search needs it.
    patch = f"""
import os, signal
from pathlib import Path
from tilewright.cluster import tasks
build, builds = tasks.build, []
def wrapped(*arguments):
    builds.append(arguments)
    if len(builds) == 4:
        Path({str(stopped)!r}).touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return build(*arguments)
wrapped.__module__, wrapped.__qualname__ = tasks.__name__, "build"
tasks.build = wrapped
"""
    victim = machines.worker("--measure", "0", "--build", "1", patch=patch)
    machines.worker("--measure", "1", "--build", "0")

    def join() -> None:
        until(stopped.exists)
        machines.worker("--measure", "0", "--build", "1", wait=False)

    joined = threading.Thread(target=join)
    joined.start()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = tw.tune(scale, **SEARCH, database=tmp_path / "t.db", cluster=machines.address)
    joined.join()
    assert result.stop_reason == "trials"
    assert not blamed(is_whole(tmp_path / "t.db"))
    assert any("has been silent" in str(each.message) for each in told)
    # It goes on, and joins again.
    os.kill(victim.pid, signal.SIGCONT)
    until(lambda: machines.logs[0].read_text().count("works as") == 2)


#: A worker that is ended by each task that builds or measures the victim, as soon as it has begun. The victim is the
#: first candidate of a task of several, or of one.
KILLER = """
import fcntl, hashlib, os, tempfile, threading
from pathlib import Path
from tilewright.cluster import tasks
from tilewright.cluster.messages import unpack
FUNCTION, SEVERAL = {what!r}, {several!r}
function, begins, this = getattr(tasks, FUNCTION), tasks.Run.begins, threading.local()
def found(specification, arguments):
    if FUNCTION == "build":
        return [] if unpack(specification)["job"].endswith("-0") else [*arguments[0]]  # -0 is the reference
    chunks = [unpack(chunk)["built"] for chunk in arguments[2]]
    return [chunks[each["chunk"]][each["place"]]["object"] for each in unpack(specification)["candidates"]]
def wrapped(specification, *arguments):
    this.names = [hashlib.sha256(each).hexdigest() for each in found(specification, arguments)]
    return function(specification, *arguments)
def begin(run):
    begins(run)
    names = this.names
    with (Path(tempfile.gettempdir()) / "victims").open("a+") as known:
        fcntl.flock(known, fcntl.LOCK_EX)
        known.seek(0)
        victims = known.read().split()
        if victims[:1] and victims[0] in names or not victims and (len(names) > 1 or names and not SEVERAL):
            known.write((victims or names)[0] + "\\n")
            known.flush()
            os._exit(1)
wrapped.__module__, wrapped.__qualname__ = tasks.__name__, FUNCTION
setattr(tasks, FUNCTION, wrapped)
tasks.Run.begins = begin
"""


def distinct(sch: tw.Schedule) -> None:
    """A space in which no two candidates lower to the same program, as splits by 1 or by a whole extent would."""
    i, j = sch.get_loops(sch.get_block("Y"))
    rows = sch.sample_categorical([2, 4, 8, 16, 32], [0.2] * 5)
    columns = sch.sample_categorical([2, 3, 4, 6, 8, 12, 16, 24, 32, 48], [0.1] * 10)
    (i0, i1), (j0, j1) = sch.split(i, [None, rows]), sch.split(j, [None, columns])
    sch.reorder(i0, j0, i1, j1)


@pytest.mark.parametrize(("what", "several"), [("build", False), ("build", True), ("measure", False)])
def test_a_candidate_that_ends_two_workers_is_a_failure(
    machines: Machines, tmp_path: Path, what: str, several: bool
) -> None:
    """Whether it ends them alone or in a task of several; Dask gives neither task to a third worker by itself."""
    builds = what == "build"
    machines.worker("--measure", "0" if not builds else "1", "--build", "0" if builds else "1")
    arguments = ("--measure", "0", "--build", "1") if builds else ("--measure", "1", "--build", "0")
    for number in range(3):
        patch = KILLER.format(what=what, several=several)
        machines.worker(*arguments, patch=patch, wait=False, host="" if builds else str(number))
    machines.wait()
    asked = {**SEARCH, "space": distinct} | ({"trials": 24, "batch": 8} if several else {})
    result = tw.tune(scale, **asked, database=tmp_path / "t.db", cluster=machines.address)
    assert result.stop_reason == "trials"
    is_whole(tmp_path / "t.db", asked["trials"])
    assert [process.poll() for process in machines.processes[2:]].count(1) == 2
    count, message = result.progress.failures["cluster/lost-workers"]
    assert count == 1 and "this candidate" in message


#: A worker that answers each task otherwise than it should: `change` has the answer, a map.
LIAR = """
from tilewright.cluster import tasks
from tilewright.cluster.messages import pack, unpack
measure = tasks.measure
def wrapped(*arguments):
    return pack(change(unpack(measure(*arguments))))
wrapped.__module__, wrapped.__qualname__ = tasks.__name__, "measure"
tasks.measure = wrapped
"""


def test_a_worker_of_another_target_than_it_says_is_left_out(machines: Machines, tmp_path: Path) -> None:
    patch = """
import types
from tilewright.cluster import labels, tasks
tasks.labels = types.SimpleNamespace(**{**vars(labels), "native_key": lambda: "llvm -mcpu=haswell -num-cores=1"})
"""
    machines.worker("--measure", "1", "--build", "1", patch=patch)
    joined = threading.Timer(2.0, lambda: machines.worker("--measure", "1", "--build", "1", wait=False, host="another"))
    joined.start()
    with pytest.warns(UserWarning, match="gets no more candidates of this search: this worker measures for"):
        result = tw.tune(scale, **SEARCH, database=tmp_path / "t.db", cluster=machines.address)
    joined.join()
    assert result.stop_reason == "trials"
    assert not blamed(is_whole(tmp_path / "t.db"))


def test_a_worker_that_is_wrong_about_the_reference_is_left_out(machines: Machines, tmp_path: Path) -> None:
    called, joined = tmp_path / "called", tmp_path / "joined"
    patch = f"""
import time
from pathlib import Path
def change(answer):
    if "outputs" in answer:
        Path({str(called)!r}).touch()
        while not Path({str(joined)!r}).exists():
            time.sleep(0.05)
        answer["outputs"] = [bytes(len(each)) for each in answer["outputs"]]
    return answer
{LIAR}
"""
    machines.worker("--measure", "1", "--build", "1", patch=patch)

    def join() -> None:
        until(called.exists)
        machines.worker("--measure", "1", "--build", "1", host="another")
        joined.touch()

    other = threading.Thread(target=join)
    other.start()
    with pytest.warns(UserWarning, match="gets no more candidates of this search: the unscheduled program computes wr"):
        result = tw.tune(scale, **SEARCH, database=tmp_path / "t.db", cluster=machines.address)
    other.join()
    assert result.stop_reason == "trials"
    assert not blamed(is_whole(tmp_path / "t.db"))
    assert result.hosts is not None and [int(row[1]) > 0 for row in result.hosts.rows] == [False, True]


def test_a_worker_that_answers_garbage_is_left_out(machines: Machines, tmp_path: Path) -> None:
    patch = """
from tilewright.cluster import tasks
def wrapped(*arguments):
    return b"garbage"
wrapped.__module__, wrapped.__qualname__ = tasks.__name__, "measure"
tasks.measure = wrapped
"""
    machines.worker("--measure", "1", "--build", "1", patch=patch, wait=False)
    machines.worker("--measure", "1", "--build", "1", host="another")
    result = tw.tune(scale, **SEARCH, database=tmp_path / "t.db", cluster=machines.address)
    assert result.stop_reason == "trials"
    assert not blamed(is_whole(tmp_path / "t.db"))


def test_objects_of_a_lost_builder_are_built_again_by_one_that_joins(machines: Machines, tmp_path: Path) -> None:
    """Builds avoid workers that are not trusted, and Dask would wait for the lost one to build its objects again."""
    called, joined = tmp_path / "called", tmp_path / "joined"
    liar = f"""
import time
from pathlib import Path
def change(answer):
    Path({str(called)!r}).touch()
    while not Path({str(joined)!r}).exists():
        time.sleep(0.05)
    return {{}}
{LIAR}
"""
    slow = f"import time\ndef change(answer):\n    time.sleep(0.3)\n    return answer\n{LIAR}"
    machines.worker("--measure", "1", "--build", "1", host="another", patch=liar)
    builders = []

    def join() -> None:
        until(called.exists)
        machines.worker("--measure", "1", "--build", "0", patch=slow)  # built objects wait for it
        builders.append(machines.worker("--measure", "0", "--build", "1"))
        joined.touch()

    def replace() -> None:
        builders[0].kill()
        machines.worker("--measure", "0", "--build", "1", wait=False)

    threading.Thread(target=join).start()
    asked = {**SEARCH, "trials": 20, "batch": 20, "progress": At(5, replace)}
    with pytest.warns(UserWarning, match="gets no more candidates of this search"):
        result = tw.tune(scale, **asked, database=tmp_path / "t.db", cluster=machines.address)
    assert asked["progress"].done and result.stop_reason == "trials"
    assert not blamed(is_whole(tmp_path / "t.db", 20))


#: A worker that builds something else: `change` has the object of a module, and returns another one. It answers when
#: there is another worker.
FORGER = """
import tempfile, time
from pathlib import Path
from tilewright.cluster import tasks
from tilewright.cluster.messages import pack, unpack
build = tasks.build
def wrapped(*arguments):
    answer = unpack(build(*arguments))
    while not (Path(tempfile.gettempdir()) / "joined").exists():
        time.sleep(0.05)
    for each in answer["built"]:
        each["object"] = change(each["object"])
    return pack(answer)
wrapped.__module__, wrapped.__qualname__ = tasks.__name__, "build"
tasks.build = wrapped
"""

#: A worker that sends something else than the answer of a task that builds.
_NO_ANSWER = """
from tilewright.cluster import tasks
def wrapped(*arguments):
    return b"garbage"
wrapped.__module__, wrapped.__qualname__ = tasks.__name__, "build"
tasks.build = wrapped
"""


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (_NO_ANSWER, "what it sent are no objects"),
        (f"def change(code):\n    return bytes(len(code))\n{FORGER}", "cannot be loaded"),
        (f"def change(code):\n    return code.replace(b'scale', b'SCALE')\n{FORGER}", "the object has no kernel"),
    ],
)
def test_a_worker_that_builds_garbage_is_blamed_and_not_the_one_that_measures(
    machines: Machines, tmp_path: Path, patch: str, why: str
) -> None:
    machines.worker("--measure", "1", "--build", "0", "--name", "measures")
    machines.worker("--measure", "0", "--build", "1", "--name", "forger", patch=patch)

    def join() -> None:
        machines.worker("--measure", "0", "--build", "1", "--name", "honest")
        (tmp_path / "joined").touch()

    joined = At(0, threading.Thread(target=join).start)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = tw.tune(scale, **{**SEARCH, "progress": joined}, database=tmp_path / "t.db", cluster=machines.address)
    assert result.stop_reason == "trials" and result.record is not None
    assert not blamed(is_whole(tmp_path / "t.db"))
    texts = [str(each.message) for each in told]
    (blame,) = [text for text in texts if "builds no more candidates of this search" in text]
    assert "(forger)" in blame and why in blame
    assert not [text for text in texts if "gets no more candidates" in text]


def test_other_versions_are_refused_by_name(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    machines.worker("--measure", "1", "--build", "1")
    patch = "labels.versions = lambda: 'tilewright 9.9, LLVM 99, ABI 9.9'"
    other = machines.worker(patch=patch, wait=False)
    assert other.wait(60) == 1
    text = machines.logs[-1].read_text()
    assert "tilewright 9.9" in text and labels.versions() in text and machines.address.split(":")[0] in text
    # A search is refused as well, instead of waiting for workers that it can use.
    there = labels.versions()
    monkeypatch.setattr(labels, "versions", lambda: "tilewright 9.9, LLVM 99, ABI 9.9")
    with pytest.raises(tw.ResourceError, match=r"this search has tilewright 9\.9.* has " + there) as error:
        tw.tune(scale, **SEARCH, cluster=machines.address)
    assert error.value.code == "cluster/versions"


def test_pickled_results_are_refused(machines: Machines) -> None:
    machines.worker("--measure", "1", "--build", "1")
    cluster = Cluster(machines.address)
    try:
        assert not cluster.client.scheduler_comm.comm.allow_offload  # it computes no sizes of messages
        assert cluster.client.submit(bytes, 3).result() == bytes(3)
        with pytest.raises(TypeError, match="only able to deserialize"):
            cluster.client.submit(complex, 1).result()
    finally:
        cluster.close()


def test_errors_of_tasks_are_not_unpickled(machines: Machines, tmp_path: Path) -> None:
    """A session takes no code from a worker, also not by an exception that a task raises."""
    patch = f"""
from tilewright.cluster import tasks
class Harm(Exception):
    def __reduce__(self):
        where = {str(tmp_path / "harm-")!r}
        return eval, (f"(open({{where!r}} + str(__import__('os').getpid()), 'w').close(), Exception())[1]",)
def hold(data):
    raise Harm
hold.__module__, hold.__qualname__ = tasks.__name__, "hold"
tasks.hold = hold
"""
    machines.worker("--measure", "1", "--build", "1", patch=patch)
    cluster = Cluster(machines.address)
    try:
        with pytest.raises(Exception, match="the log of its worker"):
            cluster.client.submit(tasks.hold, b"", pure=False).result(timeout=30)
    finally:
        cluster.close()
    assert not (tmp_path / f"harm-{os.getpid()}").exists()


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
        labels.check_versions(other, "this worker")
    assert versions.value.code == "cluster/versions" and "old (tcp://10.0.0.1:1)" in str(versions.value)


def test_a_defect_of_the_session_ends_the_search(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    def poll(*_: Any) -> Any:
        raise RuntimeError("broken")

    # In C++ it is a diagnostic, cluster/exception, which is raised again as what it was.
    monkeypatch.setattr(measurer.ClusterMeasurer, "poll", poll)
    with pytest.raises(RuntimeError, match="broken"):
        tw.tune(scale, **SEARCH, cluster=machines.address)
