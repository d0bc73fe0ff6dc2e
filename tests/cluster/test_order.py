"""The same seed, batch and results give the same candidates, in whatever order workers finish, and however many."""

from __future__ import annotations

import ctypes
import hashlib
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import scale, tiles

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.cluster import connection
from tilewright.cluster.worker_states import WorkerStates
from tilewright.search import session
from tilewright.task.arguments import kernel_arguments, make_arrays
from tilewright.task.task import task_of

from .test_tune import records

TASK = task_of(scale)


def measured_once() -> bytes:
    """Return the encoded result of a kernel that was really measured."""
    target = _core.Target("native").with_num_cores(1)
    arguments = kernel_arguments(TASK, make_arrays(TASK, {}, 0))
    options = {"arguments": arguments, "reduction_length": TASK.reduction_length}
    builder = _core.WorkerPipeline(**options, options=_core.PipelineOptions(builders=1, builds_only=True))
    builder.build(*_core.candidate_parts(TASK.module, target, True))
    pipeline = _core.WorkerPipeline(**options, options=_core.PipelineOptions())
    code = waited_for(builder)[2]
    pipeline.measure(code, TASK.entry, None, reference=True)
    waited_for(pipeline)
    pipeline.measure(code, TASK.entry, None)
    result: bytes = waited_for(pipeline)[1]
    builder.close()
    pipeline.close()
    return result


def waited_for(pipeline: Any) -> Any:
    while not (done := pipeline.poll(1.0)):
        pass
    return done[0]


class Simulated:
    """Measures nothing: the time of a candidate follows from its program. Any of the candidates that are on a worker
    may be the next one to end."""

    def __init__(self, result: bytes, workers: int, order: random.Random) -> None:
        self.threads, self.waiting_for, self.states = 1, "", WorkerStates()
        self.result, self.workers, self.order = result, workers, order
        self.queue: list[tuple[int, bytes, bool]] = []
        self.finals: Any = None
        self.ended: list[int] = []

    def submit(self, number: int, module: bytes, options: bytes, entry: str, reference: bool, *_: Any) -> None:
        self.queue.append((number, module, reference))

    def poll(self, seconds: float) -> list[tuple[Any, ...]]:
        done = []
        for _ in range(self.order.randint(0, self.workers)):
            if self.queue:
                done.append(self.queue.pop(self.order.randrange(min(self.workers, len(self.queue)))))
        self.ended += [number for number, _, _ in done]
        return [
            (number, self.timed(module), b"object", "host", 0.0, "", self.outputs() if reference else None)
            for number, module, reference in done
        ]

    def timed(self, module: bytes) -> bytes:
        seconds = 1e-5 * (1 + hashlib.sha256(module).digest()[0])
        result = self.result
        for each in _core.measured_facts(result)["seconds"]:
            result = result.replace(struct.pack("<d", each), struct.pack("<d", seconds))
        return result

    def outputs(self) -> list[bytes]:
        return [(2 * make_arrays(TASK, {}, 0)["X"]).tobytes()]

    def begin_finals(self, objects: list[bytes], entries: list[str], *_: Any) -> None:
        self.finals = (
            "host",
            [[1e-5 * (1 + number)] for number in range(len(objects))],
            [[False]] * len(objects),
            None,
        )

    def poll_finals(self, seconds: float) -> Any:
        return self.finals

    def activities(self) -> list[float]:
        return [0.0] * 8

    def failure(self) -> None: ...
    def drop(self) -> None: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: "guided", id="guided"),
        pytest.param(lambda: "draft-and-verify", id="draft-and-verify"),
        pytest.param(lambda: ms.EvolutionarySearch(population_size=48, init_min_unmeasured=16), id="evolutionary"),
    ],
)
def test_candidates_do_not_depend_on_workers(
    make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = measured_once()
    assert (
        len(
            {_core.measured_facts(Simulated(result, 1, random.Random()).timed(each))["median"] for each in (b"a", b"b")}
        )
        == 2
    )
    found, orders = [], []
    for workers in (1, 2, 3, 16):
        made = Simulated(result, workers, random.Random(workers))
        monkeypatch.setattr(session._Search, "_measurer", lambda self, made=made: made)
        monkeypatch.setattr(connection, "Cluster", lambda address: Nobody())
        file = tmp_path / f"{workers}.db"
        asked: dict[str, Any] = {"space": tiles, "progress": None, "batch": 4, "database": file}
        for trials in (10, 24) if workers == 2 else (24,):  # continued
            tw.tune(scale, trials=trials, cluster="tcp://nowhere:1", strategy=make(), **asked)
        found.append({each.index: each.trace for each in records(file)})
        orders.append(made.ended)
    assert sorted(found[0]) == list(range(24)) and orders[0] != orders[2]
    assert found[1] == found[0] and found[2] == found[0] and found[3] == found[0]


class Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2() returns."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")),
    ]


def allocated() -> int:
    """Return the bytes that the core has allocated and not freed."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo
    return int(mallinfo2().uordblks)


def test_memory_does_not_grow_with_the_number_of_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Simulated(measured_once(), 16, random.Random(0))
    monkeypatch.setattr(session._Search, "_measurer", lambda self: made)
    monkeypatch.setattr(connection, "Cluster", lambda address: Nobody())
    bytes_at: dict[int, int] = {}

    def watch(progress: Any) -> None:
        for trial in (2100, 3000):  # at the first one, the page cache of the database is full
            if progress.trials >= trial:
                bytes_at.setdefault(trial, allocated())

    asked: dict[str, Any] = {"space": "cpu-rules", "strategy": "replay-trace", "progress": watch, "batch": 32}
    tw.tune(scale, trials=3000, cluster="tcp://nowhere:1", database=tmp_path / "t.db", **asked)
    assert bytes_at[3000] - bytes_at[2100] < 400e3  # a trace of each candidate would be a megabyte


class Nobody:
    """A cluster whose measurer is simulated."""

    def check_native(self, target: str) -> None: ...
    def close(self) -> None: ...
    def workers(self, *, now: bool) -> dict[str, Any]:
        return {}
