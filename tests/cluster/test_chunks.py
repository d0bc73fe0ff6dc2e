"""How many candidates a task has, and what a session decides where a task of several is lost. Nothing is built."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from tilewright import _core
from tilewright.cluster import measurer
from tilewright.cluster.chunks import CHUNK_SECONDS, ChunkSizes, next_chunk
from tilewright.cluster.connection import WorkerFacts
from tilewright.cluster.job import Build, Job
from tilewright.cluster.messages import pack

from .test_measurer import given, made_up, measuring, running


def test_chunks_are_short_and_are_shared_by_the_workers() -> None:
    sizes = ChunkSizes()
    assert sizes.size(1000, 1) == 1  # nothing is known yet
    sizes.note("measuring", {"measuring": CHUNK_SECONDS / 8})
    assert sizes.size(1000, 1) == 8
    assert sizes.size(6, 1) == 6 and sizes.size(6, 4) == 2 and sizes.size(6, 64) == 1 and sizes.size(0, 0) == 1
    sizes.note("building", {"building": CHUNK_SECONDS / 4})
    assert sizes.size(1000, 1) == 4
    for _ in range(100):
        sizes.note("measuring", {"measuring": 10 * CHUNK_SECONDS})
    assert sizes.size(1000, 1) == 1
    sizes.note("measuring", {})  # of a candidate that was not measured
    assert sizes.size(1000, 1) == 1


def numbers(queue: deque[Job], size: int, idle: int, *, growing: tuple[int, ...] = (0, 1)) -> list[int]:
    return [job.number for job in next_chunk(queue, size, idle, growing)]


def test_idle_workers_share_what_waits_and_others_get_whole_chunks() -> None:
    queue = deque(Job(number, b"", b"") for number in range(10))
    assert numbers(queue, 4, 1) == [0, 1, 2, 3]  # in equal parts
    assert numbers(queue, 4, 3) == [4, 5]
    assert numbers(queue, 4, 0) == [6, 7, 8, 9] and not queue
    queue.extend(Job(number, b"", b"") for number in range(6))
    assert numbers(queue, 5, 0) == [0, 1, 2] and numbers(queue, 3, 0) == [3, 4, 5]
    queue.extend(Job(number, b"", b"", batch=number // 3) for number in range(6))
    assert numbers(queue, 8, 0) == [0, 1, 2]  # of one batch
    assert numbers(queue, 8, 0) == [] and numbers(queue, 8, 1) == [3, 4, 5]
    queue.extend(Job(number, b"", b"") for number in range(4))
    queue[2].lost.append("a worker")
    assert numbers(queue, 8, 0) == [0, 1] and numbers(queue, 8, 0) == [2]
    assert numbers(queue, 8, 0) == []  # more may come before a worker has nothing to do
    assert numbers(queue, 8, 0, growing=(1,)) == [3] and numbers(queue, 8, 1) == []


def test_a_batch_that_is_being_sampled_is_given_in_whole_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    session = measuring(made_up())
    sent: list[list[int]] = []

    def build(chunks: Any) -> None:
        sent.extend([job.number for job in chunk.jobs] for chunk in chunks)

    monkeypatch.setattr(session._submission, "build", build)
    monkeypatch.setattr(session, "_listen", lambda chunks: None)
    monkeypatch.setattr(session, "_submit_tasks", lambda: session._submit_builds(4, 4))
    monkeypatch.setattr(session, "_chunk_size", lambda slots: 4)
    for number in range(9):
        session.submit(number, b"module", b"options", "main")
        session.step()
    assert sent == [[0, 1, 2, 3], [4, 5, 6, 7]]
    session.poll(0.0)  # the batch is complete
    assert sent == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    assert session._batch_size == 9
    session.submit(9, b"module", b"options", "main")
    assert session._jobs[9].batch == session._jobs[8].batch + 1


def test_the_rest_of_a_whole_batch_is_given_before_a_slot_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be given when the task before ends, and the slot would be idle until the new one comes."""
    session = session_of(9)
    sent: list[tuple[str, list[int]]] = []

    def noted(what: str) -> Any:
        return lambda chunks, *_: sent.extend((what, [job.number for job in chunk.jobs]) for chunk in chunks)

    for what in ("build", "measure"):
        monkeypatch.setattr(session._submission, what, noted(what))
    monkeypatch.setattr(session, "_listen", lambda chunks: None)
    monkeypatch.setattr(session, "_chunk_size", lambda slots: 5)
    session._judged, session._reference, session._incumbent = True, Build(None, 0), (Build(None, 0), 1.0)
    there = [WorkerFacts("tcp://1", "name", "host", "llvm", "versions", 1, 0, 0.0)]
    session._batch += 1  # the batch of all of them was sampled
    given(session, 8, what="measure")  # which takes the slot
    session._submit_builds(1, 1)
    assert sent == [("build", [0, 1, 2, 3]), ("build", [4, 5, 6, 7])]
    sent.clear()
    session._built.extend(session._leave(session._jobs[0].chunk))
    session._submit_runs(there)
    assert sent == []  # more of this batch are being built
    session._leave(session._jobs[4].chunk)
    session._submit_runs(there)
    assert sent == [("measure", [0, 1, 2, 3])]


def test_the_pump_is_woken_for_whole_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(1)
    monkeypatch.setattr(session, "_submit_tasks", lambda: session._submit_builds(0, 1))
    monkeypatch.setattr(session, "_chunk_size", lambda slots: 4)
    session.poll(0.0)
    for number in range(1, 9):
        session.submit(number, b"module", b"options", "main")
    assert session._cluster.pump.events.qsize() == 2


def session_of(count: int) -> Any:
    session = measuring(made_up())
    for number in range(count):
        session.submit(number, b"module", b"options", "main")
    return session


def waiting(session: Any) -> list[int]:
    return [job.number for job in session._waiting]


def test_candidates_of_a_chunk_that_was_lost_go_on_alone_and_one_of_them_is_to_blame() -> None:
    session = session_of(5)
    running(session, 0, "first", 1, 2)
    canceled = []
    chunk = session._jobs[0].chunk
    chunk.future.cancel = lambda: canceled.append(chunk.name)
    session._take_event(("removed", "first", [], False))
    assert canceled == [chunk.name]  # or Dask would give all of them to another worker
    assert waiting(session) == [0, 1, 2, 3, 4] and session.poll(0.0) == []
    for number in range(3):
        assert numbers(session._waiting, 8, 1) == [number]
    # The next one that ends a worker has ended two. Others have not.
    session._waiting.extendleft(reversed([session._jobs[number] for number in range(3)]))
    running(session, 1, "second")
    session._take_event(("removed", "second", [], False))
    ((number, result, *_),) = session.poll(0.0)
    assert (number, _core.measured_facts(result)["code"]) == (1, "cluster/lost-workers")
    assert "second, first" in _core.measured_facts(result)["message"]
    assert waiting(session) == [0, 2, 3, 4] and numbers(session._waiting, 8, 0) == [0]
    assert [session._jobs[number].lost for number in (0, 2, 3)] == [[], [], []]


def test_a_chunk_that_is_late_goes_on_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer, "_LOOK", 0.0)
    session = session_of(3)
    session._cluster.workers = lambda now=False: {
        "busy": WorkerFacts("busy", "busy", "host", "llvm", "versions", 0, 0, 0.0)
    }
    running(session, 0, "busy", 1, 2)
    late = session._jobs[0].chunk
    first = late.deadline
    session._take_event(("began", late.name, "busy"))  # it goes on with the next candidate
    assert late.deadline > first
    late.deadline = 0.0
    session.poll(0.0)
    assert waiting(session) == [0, 1, 2] and session._jobs[1].late == ["busy"] and session._jobs[1].goes_alone
    answers = [{"result": b"late"} for _ in range(3)]
    session._take_event(("ended", late, "finished", {"answers": answers, "host": "h"}, "busy"))
    assert session.poll(0.0) == []


def test_a_chunk_that_was_canceled_is_nobodys_fault() -> None:
    session = session_of(3)
    chunk = given(session, 0, 1, 2, what="measure")
    for job in chunk.jobs:
        job.build = Build(chunk.future, 0)
    chunk.future.status = "finished"
    session._take_answer(chunk, "w", {"error": ["cluster/canceled", "nobody waits", ""], "host": "h"})
    assert [job.number for job in session._built] == [0, 1, 2] and not any(job.goes_alone for job in session._built)
    chunk = given(session, 0, 1, what="build")
    session._take_event(("ended", chunk, "canceled", None, ""))
    assert waiting(session) == [0, 1] and not any(job.goes_alone or job.build for job in session._waiting)


def test_an_error_in_a_chunk_is_that_of_one_candidate() -> None:
    session = session_of(2)
    error = {"error": ["measure/helper-start", "it does not start", ""], "host": "there"}
    session._take_answer(given(session, 0, 1, what="measure"), "w", error)
    assert waiting(session) == [0, 1] and all(job.goes_alone for job in session._waiting)
    session._take_answer(given(session, 0, what="measure"), "w", error)
    ((number, result, _, host, *_),) = session.poll(0.0)
    assert (number, _core.measured_facts(result)["code"], host) == (0, "measure/helper-start", "there")
    # Dask gives a task up that it cannot run.
    session._take_event(("ended", given(session, 1), "error: killed", None, ""))
    ((number, result, *_),) = session.poll(0.0)
    assert number == 1 and _core.measured_facts(result)["code"] == "cluster/lost-workers"


def test_a_build_that_was_lost_is_repeated_without_the_chunk() -> None:
    session = session_of(3)
    chunk = given(session, 0, 1, 2, what="measure")
    result = _core.failed_measurement("run_error", "a/code", "it failed", "")
    found = {"result": result, "times": {}}
    answer = {
        "answers": [found, {"lost_build": "cluster/task", "times": {}}, {"result": result, "times": None}],
        "host": "there",
    }
    session._take_answer(chunk, "w", answer)
    assert sorted(each[0] for each in session.poll(0.0)) == [0, 2]
    (again,) = session._waiting
    assert again.number == 1 and again.build is None and again.goes_alone


def test_a_worker_that_answers_for_other_candidates_is_left_out() -> None:
    session = session_of(2)
    result = _core.failed_measurement("run_error", "a/code", "it failed", "")
    answer = {"answers": [{"result": result}] * 3, "host": "h", "worker": "w"}
    with pytest.warns(UserWarning, match="for 3 candidates instead of 2"):
        session._on_result(given(session, 0, 1, what="measure"), pack(answer), "w")
        session._cluster.pump.advance()
    assert session.states.is_distrusted("w") and waiting(session) == [0, 1]


def test_a_reference_that_fails_on_one_worker_costs_no_candidate_of_the_chunk() -> None:
    session = session_of(2)
    with pytest.warns(UserWarning, match="fails there"):
        session._take_answer(
            given(session, 0, 1, what="measure"), "w", {"answers": [{"times": {}}] * 2, "outputs": None, "host": "h"}
        )
    assert waiting(session) == [0, 1] and not any(job.goes_alone for job in session._waiting)
