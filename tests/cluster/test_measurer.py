"""What a session decides where workers are lost, without any: its cluster is made up."""

from __future__ import annotations

import concurrent.futures
import itertools
import threading
import time
import types
import warnings
from collections import deque
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.cluster import measurer
from tilewright.cluster.connection import WorkerFacts
from tilewright.cluster.job import Build
from tilewright.cluster.measurer import ClusterMeasurer
from tilewright.cluster.pump import Pump
from tilewright.meta_schedule import cluster_pipeline
from tilewright.task.task import task_of
from tilewright.testing import workloads


class NoThread(Pump):
    """Advances only where a test polls."""

    def join(self, member: Any) -> None:
        self.members.append(member)


def made_up(*, connected: bool = True) -> Any:
    names = itertools.count()
    return types.SimpleNamespace(
        **{"topic": "topic-of-a-test", "pump": NoThread(), "address": "tcp://nowhere:1"},
        **{"new_name": lambda what: f"{what}-{next(names)}"},
        **{"is_connected": connected, "reconnect": lambda: False, "connection": 1, "silent_since": None},
        **{"workers": lambda now=False: {}, "slots": lambda worker: (1, 1), "holder": lambda name: ""},
    )


def measuring(cluster: Any, extent: str = "full") -> ClusterMeasurer:
    outputs = [("Y", "float32", (1,))]
    program = {"threads": 1, "options": {}}
    return ClusterMeasurer(cluster, program, "llvm", outputs, 1, dict, lambda outputs: (extent, {}))


def given(session: ClusterMeasurer, *numbers: int, what: str = "build") -> Any:
    """Give candidates to Dask as one task."""
    jobs = [session._jobs[number] for number in numbers]
    session._waiting = deque(job for job in session._waiting if job not in jobs)
    chunk = session._begin_task(what, jobs)
    chunk.future = types.SimpleNamespace(status="pending", cancel=lambda: None, key=chunk.name)
    return chunk


def running(session: ClusterMeasurer, number: int, worker: str, *others: int, what: str = "build") -> Any:
    """The task of candidates has begun there; return the first candidate."""
    chunk = session._jobs[number].chunk or given(session, number, *others, what=what)
    session._take_event(("began", chunk.name, worker))
    return chunk.jobs[0]


def test_a_candidate_that_two_workers_are_lost_with_is_a_failure() -> None:
    session = measuring(made_up())
    session.submit(7, b"module", b"options", "main")
    running(session, 7, "first")
    session._take_event(("removed", "first", [], False))
    assert session.poll(0.0) == []  # it is given to another one
    running(session, 7, "second")
    session._take_event(("removed", "second", [], False))
    ((number, result, *_),) = session.poll(0.0)
    facts = _core.measured_facts(result)
    assert (number, facts["outcome"], facts["code"]) == (7, "run_crash", "cluster/lost-workers")
    assert "first, second" in facts["message"]


def test_a_silent_worker_is_given_up_at_the_deadline_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    session = measuring(made_up())
    session.submit(7, b"module", b"options", "main")
    job = running(session, 7, "silent")
    late = job.chunk
    assert late.deadline < float("inf")
    late.deadline = 0.0
    monkeypatch.setattr(measurer, "_LOOK", 0.0)
    session.poll(0.0)
    assert job in session._waiting and job.lost == ["silent"]
    # What it answers later is not heard.
    session._take_event(("ended", late, "finished", {"answers": [{"result": b"anything"}]}, ""))
    assert session.poll(0.0) == []


def test_a_task_that_is_late_on_a_worker_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes elsewhere; beside the loss of another worker, that does not make the candidate a failure. Thrice does."""
    monkeypatch.setattr(measurer, "_LOOK", 0.0)
    cluster = made_up()
    cluster.workers = lambda now=False: {
        name: WorkerFacts(name, name, "host", "llvm", "versions", 0, 0, 0.0) for name in ("busy", "other")
    }
    session = measuring(cluster)
    session.submit(7, b"module", b"options", "main")
    running(session, 7, "other")
    session._take_event(("removed", "other", [], False))
    for number in range(3):
        job = running(session, 7, "busy")
        job.chunk.deadline = 0.0
        found = session.poll(0.0)
        assert job.lost == ["other"] and job.late == ["busy"] * (number + 1)
        assert bool(found) == (number == 2)
    assert _core.measured_facts(found[0][1])["code"] == "cluster/lost-workers"


def test_a_scheduler_that_stays_away_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "RECONNECT_SECONDS", 0.0)
    monkeypatch.setattr(measurer, "_LOOK", 0.0)
    session = measuring(made_up(connected=False))
    session.submit(7, b"module", b"options", "main")
    assert session.poll(0.0) == []
    (canceled,) = session.poll(0.0)
    assert _core.measured_facts(canceled[1])["outcome"] == "canceled"
    failure = session.failure()
    assert failure is not None and failure.code == "cluster/lost-scheduler" and "the same command" in failure.hint
    assert "to come back" in session.waiting_for


def test_a_search_says_what_it_waits_for() -> None:
    session = measuring(made_up())
    session.submit(7, b"module", b"options", "main")
    session.poll(0.0)
    assert session.waiting_for == "a worker that measures for 'llvm' and a worker that builds"
    other = WorkerFacts("tcp://1", "name", "host", "llvm -mcpu=other", "versions", 1, 0, 0.0)
    session._cluster.workers = lambda now=False: {"tcp://1": other}
    session.step()
    there = "a worker that measures for 'llvm' (there are some for 'llvm -mcpu=other')"
    assert session.waiting_for == f"{there} and a worker that builds"
    session.cancel()  # which does not end the waiting
    session.step()
    assert "there are some" in session.waiting_for
    session.drop()  # the time is over
    failure = session.failure()
    assert failure is not None and failure.code == "cluster/no-worker" and "there are some" in failure.message


def test_what_is_dropped_comes_back_as_canceled() -> None:
    cluster = made_up()
    session = measuring(cluster)
    for number in range(3):
        session.submit(number, b"module", b"options", "main")
    session.drop()
    assert [(each[0], _core.measured_facts(each[1])["outcome"]) for each in session.poll(0.0)] == [
        (number, "canceled") for number in range(3)
    ]
    session.begin_finals([b"object"], ["main"], 0, 1, 1e-3, 1.0)
    session.cancel()
    answer = session.poll_finals(0.0)
    assert answer is not None and answer[3][0] == "measure/canceled"
    session.close()
    assert cluster.pump.members == []


def test_errors_of_ratios_are_not_carried_on() -> None:
    # All kernels take 1 ms, and the incumbent beside each seems to take twice as long, as on a busy host.
    session = measuring(made_up())
    facts = {"median": 1e-3, "incumbent_seconds": 2e-3, "seconds": [1e-3], "rejected": 0, "noisy": False}
    for number in range(20):
        session.submit(number, b"module", b"options", "main")
        job = session._jobs[number]
        job.build = Build(None, number)
        job.compared_with = session._incumbent[1] if session._incumbent else 0.0
        reference = session.states.reference("busy", facts["incumbent_seconds"], job.compared_with)
        session._consider(job, facts, "busy", reference)
        assert number == 0 or facts["median"] * reference / facts["incumbent_seconds"] == 1e-3  # as records count
    assert session._incumbent is not None and session._incumbent[1] == 1e-3
    # A host twice as slow as the first: what takes 1 ms there would take 0.5 ms on the first one.
    session.states.measured("slow", facts, {}, 1e-3)
    assert session.states.factor("slow") == 0.5 and session.states.factor("busy") == 1.0
    job.compared_with = 1e-3
    session._consider(job, facts, "slow", session.states.reference("slow", 2e-3, 1e-3))
    assert session._incumbent[1] == 0.5e-3


def test_the_best_of_an_earlier_session_counts_as_it_did() -> None:
    session = measuring(made_up())
    session.submit(0, b"module", b"options", "main", known_seconds=2e-3)
    session._jobs[0].build = Build(None, 0)
    session._consider(session._jobs[0], {"median": 1e-3, "incumbent_seconds": 0.0}, "faster now", 0.0)
    assert session._incumbent is not None and session._incumbent[1] == 2e-3
    assert session.states.factor("faster now") == 2.0


def test_a_candidate_that_ends_workers_before_it_reports_its_start_is_a_failure() -> None:
    session = measuring(made_up())
    for number in range(3):
        session.submit(number, b"module", b"options", "main")
    # A worker builds one at a time, in the order in which tasks were given: the others were only queued there.
    for worker in ("first", "second"):
        names = []
        for number in range(3):
            chunk = given(session, number)
            chunk.since = float(number)
            names.append(chunk.name)
        session._take_event(("removed", worker, [*reversed(names), "task of another session"], False))
    ((number, result, *_),) = session.poll(0.0)
    assert (number, _core.measured_facts(result)["code"]) == (0, "cluster/lost-workers")
    assert [session._jobs[each].lost for each in (1, 2)] == [[], []]
    assert [session._jobs[each].is_suspect for each in (1, 2)] == [True, True]  # they report next time before they run
    # A task that has begun there may have ended: the next one may have run.
    names = {number: given(session, number).name for number in (1, 2)}
    session._take_event(("began", names[2], "third"))
    session._take_event(("removed", "third", list(names.values()), False))
    assert session._jobs[1].lost == [] and session._jobs[2].lost == ["third"]
    assert session._jobs[1].likely_lost == ["third"] and sorted(session._jobs) == [1, 2]
    # With a loss that is certain, it has killed two.
    session._take_event(("removed", "fourth", [given(session, 1).name], False))
    assert sorted(session._jobs) == [2]


def test_tasks_that_only_lost_workers_may_run_are_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "_LOOK", 0.0)
    session = measuring(made_up())
    session.submit(7, b"module", b"options", "main")
    chunk = given(session, 7)
    chunk.allowed = frozenset({"gone"})
    session.poll(0.0)
    (job,) = session._waiting
    assert job.number == 7 and job.lost == [] and not session._chunks


def test_a_defect_on_the_thread_of_the_pump_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise ValueError("broken")

    cluster = made_up()
    session = measuring(cluster)
    session.submit(7, b"module", b"options", "main")
    cluster.workers = broken
    with pytest.raises(ValueError, match="broken"):
        session.poll(0.0)


def test_tasks_are_given_while_nobody_polls() -> None:
    cluster = made_up()
    cluster.pump = Pump()
    given = threading.Event()

    def submit(*_: Any, key: list[str], **how: Any) -> Any:
        given.set()
        nothing = {"add_done_callback": lambda done: None, "cancel": lambda: None}
        return [types.SimpleNamespace(**nothing, status="pending") for _ in key]

    held: list[Any] = []
    cluster.client = types.SimpleNamespace(map=submit, submit=lambda *arguments, **how: held.append(arguments) or held)
    builder = WorkerFacts("tcp://1", "name", "host", "llvm", "versions", 0, 1, 0.0)
    cluster.workers = lambda now=False: {"tcp://1": builder}
    session = measuring(cluster)
    session.submit(7, b"module", b"options", "main")
    assert given.wait(60)
    # Who measures it will need the program, which travels while it is built.
    assert [arguments[1] for arguments in held] == [session._submission._program]
    session.close()
    assert cluster.pump._thread is None


def test_a_search_that_waits_leaves_the_steps_to_the_pump(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = made_up()
    session = measuring(cluster)
    session.submit(7, b"module", b"options", "main")
    steps: list[int] = []
    monkeypatch.setattr(session, "step", lambda: steps.append(1))

    def wake() -> None:
        for _ in range(20):
            with cluster.pump.changed:
                cluster.pump.changed.notify_all()
            time.sleep(0.005)

    waking = threading.Thread(target=wake)
    waking.start()
    assert session.poll(0.2) == []
    waking.join()
    assert len(steps) == 1


def test_a_search_may_join_while_another_one_leaves() -> None:
    class Member:
        def __init__(self) -> None:
            self.seen = threading.Event()

        @property
        def task_seconds(self) -> float:
            self.seen.set()  # the thread of the pump is about to pause
            return 10.0

        def step(self) -> None: ...

    pump, first, second = Pump(), Member(), Member()
    queue = pump.events

    def put(item: Any) -> None:
        pump.events = queue
        pump.join(second)
        time.sleep(0.03)  # the new thread waits for an event, and the old one still pauses
        queue.put(item)

    pump.join(first)
    assert first.seen.wait(60)
    pump.events = types.SimpleNamespace(put=put, get=queue.get, get_nowait=queue.get_nowait)  # type: ignore[assignment]
    leaving = threading.Thread(target=pump.leave, args=(first,), daemon=True)
    leaving.start()
    leaving.join(10)
    assert not leaving.is_alive() and pump.members == [second]
    pump.leave(second)
    assert pump._thread is None


def test_programs_with_large_inputs_are_sent_once_and_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    cluster = made_up()
    sent: list[Any] = []

    def submit(*arguments: Any, **how: Any) -> Any:
        sent.append(arguments)
        warnings.warn("Sending large graph", stacklevel=1)  # as Dask does
        nothing = {"add_done_callback": lambda done: None, "cancel": lambda: None}
        return types.SimpleNamespace(**nothing, status="pending")

    cluster.client = types.SimpleNamespace(submit=submit, map=lambda *_, key, **how: [submit(*_) for _ in key])
    session = measuring(cluster)
    session._judged, session._reference = True, Build(None, 0)
    session._incumbent = Build(None, 0), 1.0
    there = [WorkerFacts("tcp://1", "name", "host", "llvm", "versions", 1, 0, 0.0)]
    for number in range(2):
        session.submit(number, b"module", b"options", "main")
        session._built.append(session._waiting.pop())
        session._submit_runs(there)
    assert [session._submission._program in arguments for arguments in sent].count(True) == 1
    assert len(sent) == 3
    assert not recwarn.list


REFERENCE = 2**64 - 1


class References:
    """A session whose workers answer with what a test says that the unscheduled program computes there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, workers: str, extent: str = "unchecked") -> None:
        facts = {"outcome": "ok", "median": 1e-3, "incumbent_seconds": 0.0, "message": ""}
        facts |= {"noisy": False, "rejected": 0, "seconds": [1e-3], "code": ""}
        measured_facts = _core.measured_facts
        monkeypatch.setattr(_core, "measured_facts", lambda it: facts if it == b"ok" else measured_facts(it))
        cluster = made_up()
        there = {w: WorkerFacts(w, f"worker {w}", "host", "llvm", "versions", 1, 0, 0.0) for w in workers}
        cluster.workers = lambda now=False: there
        self.session = measuring(cluster, extent)
        self.session._submit_tasks = lambda: None  # type: ignore[method-assign]
        self.session.submit(REFERENCE, b"module", b"options", "main", reference=True)
        self.job = running(self.session, REFERENCE, "", what="reference")

    def answers(self, worker: str, value: float) -> list[tuple[Any, ...]]:
        """The reference has run on a worker, which is one that it may run on."""
        assert worker not in self.job.avoid
        answer = {"reference": b"ok", "outputs": [np.float32([value]).tobytes()], "times": {}, "host": worker}
        self.session.states.heard(worker, self.session._cluster.workers())
        chunk = self.job.chunk or given(self.session, REFERENCE, what="reference")
        self.session._take_answer(chunk, worker, answer)
        return self.session.poll(0.0)

    @property
    def distrusted(self) -> list[str]:
        return [each for each in "abc" if self.session.states.is_distrusted(each)]


def test_a_second_worker_confirms_what_the_interpreter_cannot_check(monkeypatch: pytest.MonkeyPatch) -> None:
    these = References(monkeypatch, "abc")
    assert these.answers("a", 1.0) == []
    assert [each[0] for each in these.answers("b", 1.0)] == [REFERENCE]
    assert these.distrusted == []


@pytest.mark.parametrize("lying", range(3))
def test_one_of_three_workers_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch, lying: int) -> None:
    these = References(monkeypatch, "abc")
    values = [1.0, 1.0, 1.0]
    values[lying] = 2.0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert these.answers("a", values[0]) == []
        found = these.answers("b", values[1])
        if found:
            # The first two agree: the last one is found when it answers its first candidate.
            these.session.submit(0, b"module", b"options", "main")
            other = running(these.session, 0, "c", what="measure")
            wrong = [np.float32([values[2]]).tobytes()]
            these.session._take_answer(other.chunk, "c", {"answers": [{"result": b"ok"}], "outputs": wrong})
        else:
            found = these.answers("c", values[2])
    assert [each[0] for each in found] == [REFERENCE]
    assert found[0][-1] == [np.float32([1.0]).tobytes()]
    assert these.distrusted == ["abc"[lying]]
    assert any(f"worker {'abc'[lying]} gets no more candidates" in str(each.message) for each in told)


def test_two_workers_that_disagree_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    these = References(monkeypatch, "ab")
    assert these.answers("a", 1.0) == []
    ((_, result, *_),) = these.answers("b", 2.0)
    facts = _core.measured_facts(result)
    assert (facts["outcome"], facts["code"]) == ("run_error", "cluster/workers-disagree")
    assert "worker a and worker b" in facts["message"] and "third worker" in facts["hint"]


@pytest.mark.parametrize(("workers", "extent"), [("a", "unchecked"), ("abc", "full"), ("abc", "sampled")])
def test_no_second_worker_is_asked_without_need(monkeypatch: pytest.MonkeyPatch, workers: str, extent: str) -> None:
    these = References(monkeypatch, workers, extent)
    assert [each[0] for each in these.answers("a", 1.0)] == [REFERENCE]


def test_both_drivers_explain_alike_why_the_unscheduled_program_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = _core.failed_measurement("run_timeout", "measure/run-timeout", "it did not return")
    made = types.SimpleNamespace(
        submit=lambda *_, **__: None, poll=lambda seconds: [(-1, failed, None, "", 0.0, "", None)], failure=lambda: None
    )
    monkeypatch.setattr(cluster_pipeline, "measurer_for", lambda *_: made)
    target = tw.Target("llvm -num-cores=1")
    pipeline = cluster_pipeline.ClusterPipeline(made_up(), task_of(workloads.matmul(8, 8, 8)), target, {}, seconds=None)
    with pytest.raises(tw.ResourceError, match="failed: it did not return") as error:
        pipeline.poll(0.0)
    assert error.value.code == "tune/reference" and "tune it for smaller shapes" in error.value.hint


class Builders:
    """A session of workers that build, and one that measures."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, builders: str) -> None:
        facts = {"outcome": "ok", "median": 1e-3, "incumbent_seconds": 0.0, "message": "", "code": ""}
        facts |= {"noisy": False, "rejected": 0, "seconds": [1e-3]}
        measured_facts = _core.measured_facts
        monkeypatch.setattr(_core, "measured_facts", lambda it: facts if it == b"ok" else measured_facts(it))
        cluster = made_up()
        there = {w: WorkerFacts(w, f"worker {w}", "host", "llvm", "versions", 0, 1, 0.0) for w in builders}
        there["m"] = WorkerFacts("m", "worker m", "host", "llvm", "versions", 1, 0, 0.0)
        cluster.workers = lambda now=False: there
        self.session = measuring(cluster)
        self.session._submit_tasks = lambda: None  # type: ignore[method-assign]

    def builds(self, number: int, worker: str) -> None:
        job = running(self.session, number, worker)
        chunk = job.chunk
        job.build = Build(types.SimpleNamespace(status="finished", key=chunk.name), 0)
        self.session._take_event(("ended", chunk, "finished", None, ""))

    def measures(self, number: int, **answer: Any) -> list[tuple[Any, ...]]:
        job = self.session._jobs[number]
        self.session._built = deque(each for each in self.session._built if each is not job)
        chunk = running(self.session, number, "m", what="reference" if job.reference else "measure").chunk
        self.session._take_answer(chunk, "m", {"host": "h", "times": {}} | answer)
        return self.session.poll(0.0)

    @property
    def distrusted(self) -> list[str]:
        return [w for w in "abm" if self.session.states.is_distrusted(w) or self.session.states.builds_badly(w)]


_UNLOADABLE = _core.failed_measurement("build_error", "codegen/load", "the object code cannot be loaded")


@pytest.mark.parametrize("is_fine", [False, True])
def test_an_object_that_does_not_load_is_built_elsewhere(monkeypatch: pytest.MonkeyPatch, is_fine: bool) -> None:
    """If the other one loads, the first builder is to blame. If not, the candidate is a failure, and no worker is."""
    these = Builders(monkeypatch, "ab")
    these.session.submit(7, b"module", b"options", "main")
    these.builds(7, "a")
    assert these.measures(7, answers=[{"result": _UNLOADABLE}]) == [] and these.distrusted == []
    job = these.session._jobs[7]
    assert job.goes_alone and these.session._builders.allowed([job]) == {"b"}
    these.builds(7, "b")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ((number, result, *_),) = these.measures(7, answers=[{"result": b"ok" if is_fine else _UNLOADABLE}])
    assert number == 7 and _core.measured_facts(result)["outcome"] == ("ok" if is_fine else "build_error")
    assert these.distrusted == (["a"] if is_fine else [])
    assert [str(each.message).split(":")[0] for each in told] == (
        ["worker worker a builds no more candidates of this search"] if is_fine else []
    )
    # There is no other one to ask.
    these.session.submit(8, b"module", b"options", "main")
    these.session._cluster.workers().pop("a")
    these.builds(8, "b")
    assert [each[0] for each in these.measures(8, answers=[{"result": _UNLOADABLE}])] == [8]


def test_a_program_that_is_built_wrong_is_not_blamed_on_the_worker_that_calls_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    these = Builders(monkeypatch, "ab")
    these.session.submit(REFERENCE, b"module", b"options", "main", reference=True)
    these.builds(REFERENCE, "a")
    crashed = _core.failed_measurement("run_crash", "measure/run-crash", "the kernel crashed")
    assert these.measures(REFERENCE, reference=crashed) == [] and these.distrusted == []
    job = these.session._jobs[REFERENCE]
    assert these.session._allowed([job], [*these.session._cluster.workers().values()]) == {"m"}
    these.builds(REFERENCE, "b")
    with pytest.warns(UserWarning, match="worker a builds no more candidates of this search: .*the kernel crashed"):
        found = these.measures(REFERENCE, reference=b"ok", outputs=[bytes(4)])
    assert [each[0] for each in found] == [REFERENCE] and these.distrusted == ["a"]


def test_a_program_that_fails_with_each_object_is_blamed_on_no_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    these = Builders(monkeypatch, "ab")
    these.session.submit(REFERENCE, b"module", b"options", "main", reference=True)
    these.builds(REFERENCE, "a")
    crashed = _core.failed_measurement("run_crash", "measure/run-crash", "the kernel crashed")
    assert these.measures(REFERENCE, reference=crashed) == []
    these.builds(REFERENCE, "b")
    ((_, result, *_),) = these.measures(REFERENCE, reference=crashed)
    assert _core.measured_facts(result)["code"] == "measure/run-crash" and these.distrusted == []


def test_the_program_is_built_again_though_enough_candidates_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    session = measuring(made_up())
    sent: list[int] = []
    monkeypatch.setattr(
        session._submission, "build", lambda chunks: sent.extend(each.jobs[0].number for each in chunks)
    )
    monkeypatch.setattr(session, "_listen", lambda chunks: None)
    for number in range(8):
        session.submit(number, b"module", b"options", "main")
        session._built.append(session._waiting.pop())
    session.submit(REFERENCE, b"module", b"options", "main", reference=True)
    session._submit_builds(1, 1)
    assert sent == [REFERENCE]


def test_a_worker_that_is_ended_by_its_user_is_not_lost() -> None:
    session = measuring(made_up())
    session.submit(7, b"module", b"options", "main")
    for worker in ("first", "second", "third"):
        job = running(session, 7, worker)
        session._take_event(("removed", worker, [job.chunk.name], True))
        assert session.poll(0.0) == [] and job.losses == "" and job in session._waiting


def test_a_worker_that_is_started_again_with_its_name_is_another_one() -> None:
    session = measuring(made_up())
    session.states.heard = lambda worker, known: None  # type: ignore[method-assign]
    session.states.name = lambda worker: "named"  # type: ignore[method-assign]
    session.submit(7, b"module", b"options", "main")
    running(session, 7, "tcp://1")
    session._take_event(("removed", "tcp://1", [], False))
    assert session.poll(0.0) == []
    running(session, 7, "tcp://2")
    session._take_event(("removed", "tcp://2", [], False))
    assert [each[0] for each in session.poll(0.0)] == [7]


def test_a_scheduler_that_does_not_answer_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "_LOOK", 0.0)
    cluster = made_up()
    session = measuring(cluster)
    session.submit(7, b"module", b"options", "main")
    cluster.silent_since = time.monotonic()
    assert session.poll(0.0) == [] and session.waiting_for == "the scheduler tcp://nowhere:1 to answer"
    cluster.silent_since = None
    assert session.poll(0.0) == [] and "scheduler" not in session.waiting_for
    cluster.silent_since = time.monotonic() - measurer.RECONNECT_SECONDS - 1.0
    (canceled,) = session.poll(0.0)
    assert _core.measured_facts(canceled[1])["outcome"] == "canceled"
    failure = session.failure()
    assert failure is not None and failure.code == "cluster/lost-scheduler" and "does not answer" in failure.message


def test_a_task_that_was_killed_waits_for_the_event_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "_LOOK", 0.0)
    session = measuring(made_up())
    session.submit(7, b"module", b"options", "main")
    job = running(session, 7, "first")
    chunk = job.chunk
    session._take_event(("ended", chunk, "killed", None, ""))
    assert job.chunk is chunk and job.losses == ""
    session._take_event(("removed", "first", [chunk.name], False))
    assert job.lost == ["first"] and job in session._waiting
    # An event may be lost with a connection.
    job = running(session, 7, "second")
    session._take_event(("ended", job.chunk, "killed", None, ""))
    job.chunk.deadline = 0.0
    assert [each[0] for each in session.poll(0.0)] == [7]


def test_what_was_being_fetched_when_the_scheduler_went_is_lost_and_nobody_is_blamed() -> None:
    session = measuring(made_up())
    session.submit(7, b"module", b"options", "main")
    job = running(session, 7, "there", what="measure")
    session._on_result(job.chunk, concurrent.futures.CancelledError(), "there")
    session._cluster.pump.advance()
    assert not session.states.is_distrusted("there") and job in session._waiting and job.losses == ""
