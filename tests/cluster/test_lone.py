"""``DaskBuilder`` and ``DaskRunner`` outside of a session: a worker that hangs costs the time limit, at most."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import scale

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.cluster import connection, lone
from tilewright.cluster.connection import WorkerFacts
from tilewright.kernel.kernel import object_code_of
from tilewright.meta_schedule.arg_info import ArgInfo, TensorInfo
from tilewright.meta_schedule.runner import dask_runner
from tilewright.task.task import task_of

from .machines import Machines, until

TARGET = _core.Target("native").with_num_cores(1)
INFOS: list[ArgInfo] = [TensorInfo("float32", [64, 96])] * 2

#: What a measurement does after it has reported that it begins, in the folder of the test.
PATCH = """
import os, tempfile, time
from pathlib import Path
from tilewright.meta_schedule.runner import dask_runner
class Runner:
    def __init__(self, *arguments):
        with (Path(tempfile.gettempdir()) / "begun").open("a") as file:
            file.write("x")
        time.sleep({sleep})
        {then}
dask_runner.LocalRunner = Runner
"""


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SILENT_SECONDS", 2.0)
    monkeypatch.setattr(lone, "GRACE", 1.0)
    monkeypatch.setattr(dask_runner, "START_SECONDS", 1.0)


@contextlib.contextmanager
def runner_of(machines: Machines) -> Iterator[ms.runner.DaskRunner]:
    config = ms.runner.EvaluatorConfig(1, 1, 1)
    made = ms.runner.DaskRunner(machines.address, timeout_sec=3.0, evaluator_config=config, target=TARGET)
    with contextlib.closing(made) as runner:
        yield runner


def kernel(folder: Path) -> ms.runner.RunnerInput:
    """Return a kernel that was built here."""
    path = folder / "kernel.o"
    path.write_bytes(object_code_of(tw.compile(scale, target=TARGET)))
    return ms.runner.RunnerInput(str(path), "llvm", INFOS)


def test_a_stopped_worker_fails_builds_and_measurements_that_it_was_given(machines: Machines, tmp_path: Path) -> None:
    worker = machines.worker("--measure", "1", "--build", "1", "--name", "sleepy")
    with runner_of(machines) as runner:
        os.kill(worker.pid, signal.SIGSTOP)
        begin = time.monotonic()
        (future,) = runner.run([kernel(tmp_path)])
        assert not future.done()
        with contextlib.closing(ms.builder.DaskBuilder(machines.address, timeout_sec=3.0)) as builder:
            (built,) = builder.build([ms.builder.BuilderInput(task_of(scale).module, TARGET)])
        result = future.result()
        assert time.monotonic() - begin < 45
    assert built.error_msg is not None and built.artifact_path is None
    assert result.run_secs is None and result.error_msg is not None
    for what, message in (
        ("DaskBuilder: the build", built.error_msg),
        ("DaskRunner: the measurement", result.error_msg),
    ):
        assert message.startswith(f"{what} was lost: there was no worker with") and "were lost with it" in message
    assert future.done()


def test_a_worker_that_is_stopped_while_it_measures(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one measures instead, which comes meanwhile."""
    monkeypatch.setattr(dask_runner, "START_SECONDS", 100.0)
    first = machines.worker("--measure", "1", "--build", "0", patch=PATCH.format(sleep=1000, then="pass"))
    with runner_of(machines) as runner:
        (future,) = runner.run([kernel(tmp_path)])
        until((tmp_path / "begun").exists)
        os.kill(first.pid, signal.SIGSTOP)
        machines.worker("--measure", "1", "--build", "0", host="another")
        result = future.result()
    assert result.error_msg is None and result.run_secs and min(result.run_secs) > 0
    assert result.origin.host


def test_a_measurement_that_hangs_on_a_worker_that_works_is_late(machines: Machines, tmp_path: Path) -> None:
    machines.worker("--measure", "1", "--build", "0", "--name", "slow", patch=PATCH.format(sleep=1000, then="pass"))
    with runner_of(machines) as runner:
        (result,) = [future.result() for future in runner.run([kernel(tmp_path)])]
    assert result.error_msg is not None
    assert "(slow) began it and has sent no result for 5 s" in result.error_msg


def test_a_measurement_that_ends_two_workers_is_given_to_no_third_one(machines: Machines, tmp_path: Path) -> None:
    for number in range(3):
        patch = PATCH.format(sleep=0.3, then="os._exit(1)")
        machines.worker("--measure", "1", "--build", "0", patch=patch, wait=False, host=str(number))
    machines.wait()
    with runner_of(machines) as runner:
        (result,) = [future.result() for future in runner.run([kernel(tmp_path)])]
    assert result.error_msg is not None and "workers were lost with it: " in result.error_msg
    assert (tmp_path / "begun").read_text() == "xx"
    assert [process.poll() for process in machines.processes[1:]].count(1) == 2


def test_without_a_worker_the_message_says_what_to_start(machines: Machines, tmp_path: Path) -> None:
    with runner_of(machines) as runner:
        (result,) = [future.result() for future in runner.run([kernel(tmp_path)])]
    assert result.error_msg is not None and "there was no worker with" in result.error_msg
    assert "tilewright worker" in result.error_msg


class Pending:
    """A task that no worker finishes."""

    status = "pending"

    def result(self, timeout: float) -> bytes:
        raise TimeoutError

    def cancel(self) -> None:
        self.status = "cancelled"


def test_the_time_of_a_task_starts_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    there = WorkerFacts("tcp://1", "name", "host", "llvm", "versions", 1, 0, 0.0, offers=frozenset({"what it needs"}))
    cluster: Any = types.SimpleNamespace(
        **{"is_connected": True, "connection": 1, "silent_since": None, "workers": lambda: {"tcp://1": there}},
        **{"new_name": lambda what: what, "listen": lambda name, task: None, "name": lambda worker: "its name"},
    )
    clock = [100.0]
    monkeypatch.setattr(lone.time, "monotonic", lambda: clock[0])
    futures: list[Pending] = []

    def submit(name: str, is_suspect: bool) -> Pending:
        assert (name, is_suspect) == ("build", False)
        futures.append(Pending())
        return futures[-1]

    task = lone.LoneTask(cluster, "build", submit, "what it needs", 4.0)
    clock[0] += 1000.0  # others use the worker
    assert not task.done()
    task.begins("tcp://1")
    clock[0] += 4.9
    assert not task.done()
    clock[0] += 0.2
    assert task.done() and futures[0].status == "cancelled"
    with pytest.raises(tw.ResourceError, match="its name began it and has sent no result for 5 s") as error:
        task.result()
    assert error.value.code == "cluster/late"


def test_a_task_that_the_scheduler_forgot_is_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = types.SimpleNamespace(
        **{"is_connected": True, "connection": 1, "silent_since": None, "workers": dict},
        **{"new_name": lambda what: what, "listen": lambda name, task: None},
    )
    futures: list[Pending] = []

    def submit(name: str, is_suspect: bool) -> Pending:
        futures.append(Pending())
        return futures[-1]

    task = lone.LoneTask(cluster, "build", submit, "what it needs", 4.0)
    for number in range(3):
        assert not task.done() and len(futures) == number + 1
        futures[-1].status = "lost"
    assert task.done() and len(futures) == 3
    with pytest.raises(tw.ResourceError, match="canceled it") as error:
        task.result()
    assert error.value.code == "cluster/lost-workers"
