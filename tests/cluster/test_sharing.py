"""Chunks of candidates on real workers: sessions that share them, and workers that end in the middle. Tasks are
simulated: they sleep, and answer with the result of one real measurement."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections import Counter
from typing import Any

import pytest

from tilewright import _core
from tilewright.cluster import labels
from tilewright.cluster.connection import Cluster
from tilewright.cluster.job import Build, Chunk, Job
from tilewright.cluster.measurer import ClusterMeasurer

from .machines import PATIENCE, Machines, until
from .test_order import measured_once

REFERENCE = 2**64 - 1
#: A candidate is built at once and measured for 10 ms. One whose module is "killer" ends its worker, four workers at
#: most. Workers append the modules of each task that measures to a file.
SIMULATED = """
import os, tempfile, time
from pathlib import Path
from tilewright.cluster import labels, processors, tasks
from tilewright.cluster.messages import pack, unpack
folder = Path(tempfile.gettempdir())
result = (folder / "result").read_bytes()

def build(specification, modules, options):
    run = tasks.Run(unpack(specification))
    run.begins()
    built = [{"result": result, "object": module, "times": {"building": 1e-3}} for module in modules]
    return pack({"built": built, "worker": run._worker.address})

@tasks._answers
def measure(specification, program, reference, chunks, incumbent):
    run, answers, unpacked = tasks.Run(specification), [], [unpack(each) for each in chunks]
    with tasks._TURNS.turn(1, run.wanted):
        run.begins()
        modules = [unpacked[each["chunk"]]["built"][each["place"]]["object"] for each in specification["candidates"]]
        with (folder / "measured").open("a+") as file:
            file.seek(0)
            deaths = file.read().count("killer")
            file.write(" ".join(module.decode() for module in modules) + "\\n")
        for module in modules:
            if module == b"killer" and deaths < 4:
                os._exit(1)
            end = time.monotonic() + 0.01
            while time.monotonic() < end:
                time.sleep(0.002)
                if not run.wanted():
                    raise processors.Canceled
            answers.append({"times": {"measuring": 0.01}, "result": result})
    return {"answers": answers} | ({} if answers else {"reference": result, "outputs": [b""]})

for task in (build, measure):
    task.__module__, task.__qualname__ = tasks.__name__, task.__name__
    setattr(tasks, task.__name__, task)
"""


@pytest.fixture
def simulated(machines: Machines) -> Machines:
    """A scheduler; tests add workers with the patch SIMULATED."""
    (machines.folder / "result").write_bytes(measured_once())
    (machines.folder / "measured").touch()
    return machines


class Session:
    """A session that has two batches under way."""

    def __init__(self, address: str, batch: int = 8) -> None:
        self.batch = batch
        self.cluster = Cluster(address)
        program: dict[str, Any] = {"threads": 1, "options": {}}
        key = labels.native_key()
        self.measurer = ClusterMeasurer(self.cluster, program, key, [("Y", "float32", (0,))], 1, dict)
        self.results: list[tuple[int, bytes]] = []
        self.given = 0
        self.measurer.submit(REFERENCE, b"reference", b"", "main", reference=True)

    def give(self, module: bytes = b"module") -> None:
        self.measurer.submit(self.given, module, b"", "main")
        self.given += 1

    def advance(self) -> None:
        """Wait for results for a moment; sample when a batch is done."""
        self.results += [(each[0], each[1]) for each in self.measurer.poll(0.05) if each[0] != REFERENCE]
        while self.given - len(self.results) <= self.batch:
            for _ in range(self.batch):
                self.give()

    def finish(self) -> None:
        end = time.monotonic() + PATIENCE
        while len(self.results) < self.given:
            assert time.monotonic() < end, "it did not end"
            self.results += [(each[0], each[1]) for each in self.measurer.poll(0.05) if each[0] != REFERENCE]

    def close(self) -> None:
        self.measurer.close()
        self.cluster.close()


def tasks_measured(machines: Machines) -> list[list[str]]:
    """Return the modules of each task that measured candidates."""
    lines = (machines.folder / "measured").read_text().splitlines()
    return [line.split() for line in lines if line]


def test_two_sessions_share_a_worker_equally(simulated: Machines) -> None:
    simulated.worker("--measure", "1", "--build", "1", patch=SIMULATED)
    counts = [0, 0]
    both = threading.Barrier(2)

    def search(number: int) -> None:
        with contextlib.closing(Session(simulated.address)) as session:
            while len(session.results) < 16:  # its chunks are as long as they become
                session.advance()
            both.wait(60)
            before, end = len(session.results), time.monotonic() + 4
            while time.monotonic() < end:
                session.advance()
            counts[number] = len(session.results) - before
            session.finish()
            assert sorted(number for number, _ in session.results) == list(range(session.given))

    threads = [threading.Thread(target=search, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) > 16 and 0.4 < counts[0] / sum(counts) < 0.6, counts
    assert max(map(len, tasks_measured(simulated))) > 1


def test_a_candidate_that_ends_workers_from_within_a_chunk_is_a_failure(simulated: Machines) -> None:
    for number in range(5):
        simulated.worker("--measure", "1", "--build", "1", patch=SIMULATED, wait=False, host=str(number))
    simulated.wait()
    with contextlib.closing(Session(simulated.address, batch=20)) as session:
        while not any(len(modules) > 1 for modules in tasks_measured(simulated)):
            session.advance()
        killer = session.given + 3
        while session.given < killer:
            session.give()
        session.give(b"killer")
        while session.given < killer + 20:
            session.give()
        session.finish()
        outcomes = {number: _core.measured_facts(result)["code"] for number, result in session.results}
    assert sorted(outcomes) == list(range(session.given)) and len(session.results) == session.given
    # Another candidate is a failure, too, if it shared a chunk with this one, and was next on other workers that ended.
    failed = [number for number, code in outcomes.items() if code]
    assert killer in failed and len(failed) <= 2, failed
    assert outcomes[killer] == "cluster/lost-workers"
    assert next(len(modules) for modules in tasks_measured(simulated) if "killer" in modules) > 1
    until(lambda: [process.poll() for process in simulated.processes].count(1) >= 2)


def test_chunks_that_are_canceled_end_at_once_and_leave_nothing(simulated: Machines) -> None:
    simulated.worker("--measure", "1", "--build", "1", patch=SIMULATED)
    session, other = Session(simulated.address), Session(simulated.address)
    with contextlib.closing(other), contextlib.closing(session):
        while not any(len(modules) > 1 for modules in tasks_measured(simulated)):
            session.advance()
        session.measurer.drop()
        dropped = session.measurer.poll(1.0)
        codes = Counter(_core.measured_facts(each[1])["code"] for each in dropped)
        assert len(session.results) + len(dropped) == session.given and codes["measure/canceled"] > 0
        began = time.monotonic()
        while len(other.results) < 8:
            other.advance()
        assert time.monotonic() - began < 20.0
        session.close()

        def tasks_left() -> int:
            left: int = other.cluster.client.run_on_scheduler(
                lambda dask_scheduler, topic: sum(topic in key for key in dask_scheduler.tasks),
                topic=session.cluster.topic.rpartition("-")[2],
            )
            return left

        until(lambda: tasks_left() == 0)


def test_results_are_not_kept_by_the_cluster_nor_candidates_by_the_session(simulated: Machines) -> None:
    simulated.worker("--measure", "1", "--build", "1", patch=SIMULATED)
    gc.collect()
    before = candidates_kept()
    with contextlib.closing(Session(simulated.address)) as session:
        while len(session.results) < 200:
            session.advance()
        held = len(session.cluster.client.futures)
        gc.collect()
        kept = candidates_kept() - before
    # The program, the reference, the incumbent, and tasks of at most 16 candidates.
    assert held <= 3 + 2 * 16
    # Each candidate with its build and a task, and the same for the reference and the incumbent.
    assert kept <= 3 * (16 + 2)


def candidates_kept() -> int:
    """Return the number of candidates, their builds and their tasks in the memory of this process."""
    return sum(isinstance(each, Job | Chunk | Build) for each in gc.get_objects())
