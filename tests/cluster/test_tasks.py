"""What runs on a worker, in this process: bytes in, bytes out, whatever happens."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.search.programs import scale

import tilewright as tw
from tilewright import _core
from tilewright.cluster import builds, labels, processors, tasks
from tilewright.cluster.answers import decoded
from tilewright.cluster.job import describe
from tilewright.cluster.messages import pack, unpack
from tilewright.cluster.stations import STATIONS
from tilewright.script import tir as T
from tilewright.task.task import task_of

TASK = task_of(scale)
TARGET = _core.Target("native").with_num_cores(1)
BUILD = {"job": "b", "topic": "t", "threads": 1, "timeout": 10.0}


def thrice() -> Any:
    """A program of the same name that computes something else."""

    @T.prim_func
    def scale(X: T.Buffer((64, 96), "float32"), Y: T.Buffer((64, 96), "float32")):
        for i, j in T.grid(64, 96):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.float32(3)

    return scale


class FakeWorker:
    """As much of Dask's worker as tasks see."""

    address = "tcp://here"

    def __init__(self) -> None:
        self.events: list[Any] = []
        running = types.SimpleNamespace(state="executing")
        self.state = types.SimpleNamespace(tasks={"key": running}, total_resources={})

    def get_current_task(self) -> str:
        return "key"

    def log_event(self, topic: str, message: Any) -> None:
        self.events.append((topic, message))


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorker]:
    made = FakeWorker()
    monkeypatch.setattr(tasks, "engine", lambda: types.SimpleNamespace(get_worker=lambda: made))
    yield made
    STATIONS.close()


MEASURE = {"job": "m", "topic": "t", "threads": 1, "key": labels.native_key(), "program": "scale", "rounding": {}}


def built(*programs: Any, as_written: bool = False) -> bytes:
    """Build a chunk of programs."""
    parts = [_core.candidate_parts(task_of(program).module, TARGET, as_written) for program in programs]
    return tasks.build(pack(BUILD), *map(list, zip(*parts, strict=True)))


def object_of(chunk: bytes, place: int = 0) -> bytes:
    code: bytes = tasks.built_at(unpack(chunk), place)["object"]
    return code


def candidate(chunk: int = 0, place: int = 0, *, beside: bool = True) -> dict[str, Any]:
    return {"chunk": chunk, "place": place, "beside": beside, "check_only": False, "is_baseline": False}


def measured_chunk(
    chunks: list[bytes],
    candidates: list[dict[str, Any]],
    incumbent: bytes | None = None,
    written: bytes = b"",
    **more: Any,
) -> dict[str, Any]:
    program = pack(describe(TASK, {}, 0, 1, {}))
    what = MEASURE | {"candidates": candidates, "incumbent": 0} | more
    written = written or built(scale, as_written=True)
    answer: dict[str, Any] = unpack(tasks.measure(pack(what), program, written, chunks, incumbent))
    return answer


def measured(chunk: bytes | None, incumbent: bytes | None = None, **more: Any) -> dict[str, Any]:
    """Measure the first object of a chunk, or the reference alone; return what is known of it."""
    answer = measured_chunk([] if chunk is None else [chunk], [] if chunk is None else [candidate()], incumbent, **more)
    return answer | (answer["answers"][0] if answer.get("answers") else {})


def test_a_kernel_is_built_and_measured(worker: FakeWorker) -> None:
    kernel = built(scale)
    assert object_of(kernel)[:4] == b"\x7fELF"
    first = measured(None)
    assert decoded(pack(first), [4 * 64 * 96]) == first
    with pytest.raises(ValueError, match="'outputs' is missing"):
        decoded(pack(first | {"outputs": None}), [4 * 64 * 96])
    assert _core.measured_facts(first["reference"])["outcome"] == "ok"
    (y,) = first["outputs"]
    x = np.frombuffer(describe_inputs()["X"], "float32")
    np.testing.assert_array_equal(np.frombuffer(y, "float32"), 2 * x)
    answer = measured(kernel, incumbent=kernel)
    facts = _core.measured_facts(answer["result"])
    assert facts["outcome"] == "ok" and facts["median"] > 0 and facts["incumbent_seconds"] > 0
    assert "outputs" not in answer
    assert answer["host"] == labels.host_text()
    assert {"job": "m", "worker": "tcp://here"} in [message for _, message in worker.events]


def processors_of_threads() -> dict[str, set[int]]:
    """Return the processors of each thread of this process."""
    return {thread: os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")}


def test_results_are_checked_where_the_kernel_runs_which_waits_for_that(worker: FakeWorker) -> None:
    """On the processors of builds, kernels would wait until a build has had its turn there."""
    written = built(scale, as_written=True)
    before = processors_of_threads()
    assert measured(None, written=written)["outputs"]
    started = [cpus for thread, cpus in processors_of_threads().items() if thread not in before]
    measure, build, _ = _core.plan_processors(1)
    assert started == [set(measure)], build


def slowly() -> Any:
    """The same program as `scale`, at 64 times the work."""

    @T.prim_func
    def scale(X: T.Buffer((64, 96), "float32"), Y: T.Buffer((64, 96), "float32")):
        for i, j, k in T.grid(64, 96, 64):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vj] * T.float32(0.03125)

    return scale


def test_objects_that_may_be_in_the_finals_come_with_their_results(worker: FakeWorker) -> None:
    fast, slow = built(scale), built(slowly())
    answer = measured(fast, incumbent=slow)
    assert answer["object"] == object_of(fast)
    answer = measured(slow, incumbent=fast)
    assert not _core.measured_facts(answer["result"])["contender"]
    assert "object" not in answer


def describe_inputs() -> dict[str, bytes]:
    from tilewright.task.arguments import make_arrays

    return {name: array.tobytes() for name, array in make_arrays(TASK, {}, 0).items()}


def test_a_wrong_kernel_is_noticed(worker: FakeWorker) -> None:
    facts = _core.measured_facts(measured(built(thrice()))["result"])
    assert facts["outcome"] == "wrong_result" and "expected" in facts["message"]


def test_finals(worker: FakeWorker) -> None:
    kernel = object_of(built(scale))
    how = {"baselines": 0, "rounds": 3, "slice_seconds": 1e-4, "budget_seconds": 0.5}
    what = {**{"job": "f", "topic": "t", "threads": 1, "key": labels.native_key()}, "finals": how}
    program = pack(describe(TASK, {}, 0, 1, {}))
    answer = unpack(
        tasks.finals(
            pack(what | {"program": "scale", "rounding": {}}), program, built(scale, as_written=True), [kernel, kernel]
        )
    )
    assert answer["failed"] is None
    # A worker on which the reference fails is not the one to time them.
    STATIONS.close()
    chunk = unpack(built(scale, as_written=True))
    written = pack(chunk | {"built": [chunk["built"][0] | {"object": b"no object"}]})
    other = unpack(tasks.finals(pack(what | {"program": "scale", "rounding": {}}), program, written, [kernel, kernel]))
    assert other["error"][0] == "cluster/reference" and "as it was written fails there" in other["error"][1]
    assert [len(times) for times in answer["seconds"]] == [len(times) for times in answer["disturbed"]]
    assert min(min(times) for times in answer["seconds"]) > 0


def test_a_build_that_fails_is_a_result(worker: FakeWorker) -> None:
    module, options = _core.candidate_parts(TASK.module, TARGET)
    chunk = tasks.build(pack(BUILD), [b"no module", module], [options] * 2)
    answer = tasks.built_at(unpack(chunk), 0)
    facts = _core.measured_facts(answer["result"])
    assert answer["object"] is None and facts["outcome"] == "build_error"
    # A runner hands it on, and measures the other one.
    found = measured_chunk([chunk], [candidate(place=0), candidate(place=1)])["answers"]
    assert [_core.measured_facts(each["result"])["outcome"] for each in found] == ["build_error", "ok"]
    assert _core.measured_facts(measured(chunk)["result"])["outcome"] == "build_error"


def test_a_chunk_is_measured_in_order(worker: FakeWorker) -> None:
    first, second = built(scale, thrice()), built(slowly())
    candidates = [candidate(1), candidate(0, 1, beside=False), candidate(0, 0)]
    answer = measured_chunk([first, second], candidates, incumbent=first)
    facts = [_core.measured_facts(each["result"]) for each in answer["answers"]]
    assert [each["outcome"] for each in facts][1:] == ["wrong_result", "ok"]
    assert facts[0]["outcome"] in ("ok", "slow_stopped")
    assert facts[2]["incumbent_seconds"] > 0
    # Whether it may be in the finals follows from its times, which a busy machine disturbs.
    assert answer["answers"][2].get("object") == (object_of(first) if facts[2]["contender"] else None)
    assert all(each["times"]["measuring"] > 0 for each in answer["answers"])
    assert all(each["built_by"][1]["building"] > 0 for each in answer["answers"])
    assert answer["outputs"] is not None and "preparing" in answer["answers"][0]["times"]
    assert decoded(pack(answer), [4 * 64 * 96], candidates=3) == answer


def test_a_build_that_was_lost_costs_no_other_candidate(worker: FakeWorker) -> None:
    lost = pack({"error": ["cluster/task", "it is gone", ""], "worker": "tcp://there"})
    found = measured_chunk([lost, built(scale)], [candidate(0), candidate(1)])["answers"]
    assert found[0]["lost_build"] == "cluster/task" and "result" not in found[0]
    assert _core.measured_facts(found[1]["result"])["outcome"] == "ok"
    # A worker may send anything.
    for other in (b"garbage", pack([]), pack({"built": [{}], "worker": "tcp://there"}), built(scale)):
        found = measured_chunk([other, built(scale)], [candidate(0, 1), candidate(1)])["answers"]
        assert found[0]["lost_build"] == "cluster/bad-build" and "result" not in found[0]
        assert _core.measured_facts(found[1]["result"])["outcome"] == "ok"
    program = pack(describe(TASK, {}, 0, 1, {}))
    what = pack(MEASURE | {"candidates": [candidate()], "incumbent": 0})
    assert unpack(tasks.measure(what, program, lost, [built(scale)], None))["lost_build"] == "cluster/task"


def test_a_task_reports_at_most_once_a_second_that_it_goes_on(
    worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "REPORT_SECONDS", 60.0)
    built(*[scale] * 3)
    assert len(worker.events) == 1
    monkeypatch.setattr(tasks, "REPORT_SECONDS", 0.0)
    measured_chunk([built(*[scale] * 3)], [candidate(place=place) for place in range(3)])
    # Each task reports that it begins, then each build and measurement: of a chunk, the reference, and the chunk again.
    assert len(worker.events) == 1 + (1 + 3) + (1 + 1) + (1 + 3)
    assert {message["job"] for _, message in worker.events} == {"b", "m"}


def test_a_suspect_begins_when_its_report_has_left_the_worker(
    worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(tasks.time, "sleep", lambda seconds: slept.append(seconds + len(worker.events)))
    for is_suspect in (False, True):
        tasks.Run({"job": "s", "topic": "t", "is_suspect": is_suspect}).begins()
    assert slept == [tasks._SENT_SECONDS + 2]


def test_a_guest_builds_where_no_kernel_runs(worker: FakeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    guests = []
    build_next = builds._Chunk._build_next

    def slowly(chunk: Any, pipeline: Any) -> bool:
        time.sleep(0.2)
        place = len(chunk._todo)
        done = build_next(chunk, pipeline)
        guests.append((threading.current_thread() is not threading.main_thread(), done, place))
        return done

    monkeypatch.setattr(builds._Chunk, "_build_next", slowly)
    monkeypatch.setattr(builds, "_SHORT", 60.0)  # on a busy machine, too
    exclusive = _core.plan_processors(1)[2]
    answer = unpack(built(*[scale] * 6))
    assert all(each["object"][:4] == b"\x7fELF" for each in answer["built"])
    assert any(guest and done for guest, done, _ in guests) != exclusive
    guests.clear()
    with processors.measuring(1, 1, processors.waiting(60.0, lambda: True)):
        if not exclusive:
            assert all(each["object"] for each in unpack(built(*[scale] * 4))["built"])
    assert not any(guest for guest, *_ in guests)
    # Where builds take long, measurements would wait for a guest.
    monkeypatch.setattr(builds, "_SHORT", 0.0)
    assert all(each["object"] for each in unpack(built(*[scale] * 4))["built"])
    assert not any(guest for guest, *_ in guests)


def test_what_a_guest_cannot_build_is_built_by_the_task(worker: FakeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def builder(threads: int, timeout: float, *, guest: bool = False) -> Iterator[Any]:
        with lend(threads, timeout, guest=guest) as pipeline:
            if guest:
                pipeline.close()  # so that it raises an error
                failed.set()
            yield pipeline

    lend, failed = STATIONS.builder, threading.Event()
    monkeypatch.setattr(STATIONS, "builder", builder)
    monkeypatch.setattr(builds, "_SHORT", 60.0)
    answer = unpack(built(*[scale] * 8))
    assert [each["object"][:4] for each in answer["built"]] == [b"\x7fELF"] * 8
    assert failed.wait(0) or _core.plan_processors(1)[2]


def test_each_session_has_its_own_time_limit_of_builds(worker: FakeWorker) -> None:
    assert object_of(built(scale))
    module, options = _core.candidate_parts(TASK.module, TARGET)
    hasty = tasks.built_at(unpack(tasks.build(pack(BUILD | {"timeout": 1e-6}), [module], [options])), 0)
    assert _core.measured_facts(hasty["result"])["outcome"] == "build_timeout"
    assert object_of(built(scale))


def test_builders_build_for_other_processors(worker: FakeWorker) -> None:
    module, options = _core.candidate_parts(
        TASK.module, _core.Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
    )
    code = object_of(tasks.build(pack(BUILD), [module], [options]))
    assert code[:4] == b"\x7fELF" and int.from_bytes(code[18:20], "little") == 183  # EM_AARCH64


def test_what_goes_wrong_on_a_worker_is_told(worker: FakeWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, written = built(scale), built(scale, as_written=True)
    assert measured(kernel, key="llvm -mcpu=other")["error"][0] == "cluster/wrong-host"
    assert unpack(tasks.build(pack({"job": 1}), [b""], [b""]))["error"][0] == "cluster/task"
    worker.state.tasks["key"].state = "released"
    with processors.measuring(1, 1, processors.waiting(60.0, lambda: True)):
        assert measured(kernel, written=written)["error"][0] == "cluster/canceled"
    monkeypatch.setattr(tasks, "MOST_WAITING", 0.1)
    worker.state.tasks["key"].state = "executing"
    with processors.measuring(1, 1, processors.waiting(60.0, lambda: True)):
        assert measured(kernel, written=written)["error"][0] == "cluster/busy-host"


def test_given_inputs_travel(worker: FakeWorker) -> None:
    x = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    program = pack(describe(TASK, {"X": x}, 0, 1, {}))
    what = MEASURE | {"program": "given", "candidates": [], "incumbent": 0}
    answer = unpack(tasks.measure(pack(what), program, built(scale, as_written=True), [], None))
    np.testing.assert_array_equal(np.frombuffer(answer["outputs"][0], "float32").reshape(64, 96), 2 * x)


def test_programs_with_sizes_travel(worker: FakeWorker) -> None:
    @T.prim_func
    def double(x: T.handle, y: T.handle):
        n = T.int32()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            with T.block("Y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] * T.float32(2)

    task = task_of(double, {"n": 100})
    module, options = _core.candidate_parts(task.module, TARGET, True)
    reference = tasks.build(pack(BUILD), [module], [options])
    what = MEASURE | {"program": "open", "candidates": [], "incumbent": 0}
    answer = unpack(tasks.measure(pack(what), pack(describe(task, {}, 0, 1, {})), reference, [], None))
    assert _core.measured_facts(answer["reference"])["outcome"] == "ok"
    assert len(answer["outputs"][0]) == 400


def test_labels_say_what_a_worker_is() -> None:
    told = labels.label(1, 2, probe=False)
    assert told["target"] == labels.native_key() == str(_core.Target("native").with_num_cores(1))
    assert labels.label_of({labels.NAME: told}) == told and labels.label_of({}) is None
    assert labels.name_of("tcp://x", {labels.NAME: told}).startswith(told["host"]["host"])
    # Names of hosts may repeat.
    name, boot = told["machine"].split()
    assert name == told["host"]["host"] == socket.gethostname()
    assert boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert set(labels.resources(1, 0, "k")) == {labels.present(), labels.measures("k")}
    assert tw.__version__ in labels.versions()


def test_the_time_of_another_task_of_the_worker_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next task is there while one measures; only what it waits for other processes is `waiting`."""
    clock = iter([5.0, 5.25, 6.0])
    monkeypatch.setattr(tasks.time, "monotonic", lambda: next(clock))
    run = tasks.Run.__new__(tasks.Run)
    run.times, run._begin = {}, 1.0
    run.has_its_turn()
    run.lap("waiting")
    run.lap("measuring")
    assert run.times == {"waiting": 0.25, "measuring": 0.75}
