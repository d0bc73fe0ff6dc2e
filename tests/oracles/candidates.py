"""The candidates of searches in their order, where the time of a candidate is a function of its trace alone.

"session": `tw.tune`. It measures by itself, so times are put in place of those that it found: "whole" by a strategy
around the one that draws; "resumed" in the file of records, behind each part of the search, which then goes on.
"tasks": `meta_schedule.tune_tir`, with a builder and a runner that build and run nothing; "resumed" after each batch.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from oracles import programs
from tilewright import meta_schedule as ms
from tilewright.testing import workloads

#: candidates of a batch, and of a search: below 32 of them tw.tune does not look at the limits of the machine
BATCH, TRIALS = 8, 31
SEEDS = (0, 1)
#: which every machine with AVX2 can run
RUNNABLE = "llvm -mcpu=haswell -l1-bytes=32768 -l2-bytes=262144 -l3-bytes=8388608"


def _tiles(sch: tw.Schedule) -> None:
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=3))
    sch.split(k, factors=[None, sch.sample_categorical([2, 4, 8], [0.25, 0.5, 0.25])])
    width = int(sch.sample_categorical([4, 8, 16, 32], [0.25] * 4))  # looks at what it has drawn
    sch.vectorize(sch.split(j, factors=[None, width])[1])


def _evolution() -> Any:
    return ms.SearchStrategy.create("evolutionary", population_size=32, init_min_unmeasured=8, genetic_num_iters=2)


def _product() -> Any:
    return workloads.matmul(64, 96, 48)


def _softmax() -> Any:
    return workloads.softmax_like(32, 64)


def _both() -> Any:
    return tw.ir.Module({"product": _product(), "softmax": _softmax()})


#: kind -> name -> program, and options of the search
SEARCHES: dict[str, dict[str, tuple[Callable[[], Any], Callable[[], dict[str, Any]]]]] = {
    "session": {
        "product, tiles": (_product, lambda: {"space": _tiles}),
        "product, rules": (_product, dict),
        "softmax, rules": (_softmax, lambda: {"strategy": "draft-and-verify"}),
        "product, post-order-apply": (_product, lambda: {"space": "post-order-apply", "strategy": _evolution()}),
    },
    "tasks": {
        "product, post-order-apply": (_product, lambda: {"strategy": _evolution(), "cost_model": Judge()}),
        "softmax, replay-trace": (_softmax, lambda: {"strategy": "replay-trace", "cost_model": "none"}),
        "both, post-order-apply": (_both, lambda: {"strategy": _evolution(), "cost_model": Judge()}),
        "product, cpu-rules": (
            _product,
            lambda: {"space": "cpu-rules", "strategy": ms.SearchStrategy.create("guided"), "cost_model": "none"},
        ),
    },
}


def names() -> list[str]:
    """Of all entries."""
    return [
        f"{kind} {how} {search}, seed {seed}"
        for kind, searches in SEARCHES.items()
        for how in ("whole", "resumed")
        for search in searches
        for seed in SEEDS
    ]


def text(name: str) -> str:
    """Of one: a trace for each candidate."""
    kind, how, rest = name.split(" ", 2)
    search, _, seed = rest.rpartition(", seed ")
    make, options = SEARCHES[kind][search]
    with tempfile.TemporaryDirectory(prefix="tilewright-oracle-") as folder:
        found = _RUNS[kind, how](make(), options, int(seed), Path(folder))
    return "\n".join(found)


def seconds_of(text: str) -> float:
    """From one to two: no trial is far slower than another one, or near any limit."""
    return 1.0 + int(hashlib.sha256(text.encode()).hexdigest()[:6], 16) / 2**24


def _text(trace: Any) -> str:
    return json.dumps(trace.as_json(), separators=(",", ":"))


class Judge(ms.CostModel):
    """Likes candidates by their traces, and by how many it has been told of."""

    def __init__(self) -> None:
        super().__init__()
        self.told = 0

    def load(self, path: str) -> None: ...

    def save(self, path: str) -> None: ...

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        self.told += len(candidates)

    def predict(self, context: Any, candidates: Sequence[Any]) -> Any:
        return np.array([seconds_of(f"{self.told} {_text(each.sch.trace)}") for each in candidates], "float64")


class Retold(ms.SearchStrategy):
    """Another strategy, which is told times that follow from the candidates."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner, self.traces = inner, []

    def initialize(self, context: Any) -> None:
        self.inner.initialize(context)

    def pre_tuning(self, *plan: Any) -> None:
        self.inner.pre_tuning(*plan)

    def generate_measure_candidates(self) -> Any:
        candidates = self.inner.generate_measure_candidates()
        self.traces += [_text(each.sch.trace) for each in candidates or ()]
        return candidates

    def notify_runner_results(self, measure_candidates: Sequence[Any], results: Sequence[Any]) -> None:
        seconds = [seconds_of(_text(each.sch.trace)) for each in measure_candidates]
        self.inner.notify_runner_results(measure_candidates, [ms.RunnerResult([each], None) for each in seconds])

    def post_tuning(self) -> None:
        self.inner.post_tuning()

    def runs_ahead(self) -> bool:
        return bool(self.inner.runs_ahead())


def _tuned(program: Any, options: dict[str, Any], seed: int, **more: Any) -> None:
    tw.tune(program, seed=seed, target=RUNNABLE, progress=None, **options, **more)


def _session(program: Any, options: Callable[[], dict[str, Any]], seed: int, folder: Path) -> list[str]:
    asked = options()
    strategy = asked.pop("strategy", "guided")
    told = Retold(ms.SearchStrategy.create(strategy) if isinstance(strategy, str) else strategy)
    _tuned(program, asked, seed, strategy=told, trials=TRIALS)
    return told.traces


def _session_resumed(program: Any, options: Callable[[], dict[str, Any]], seed: int, folder: Path) -> list[str]:
    file = folder / "records.db"
    for trials in (*range(BATCH, TRIALS, BATCH), TRIALS):
        _tuned(program, options(), seed, trials=trials, database=file)
        with contextlib.closing(sqlite3.connect(file)) as connection:
            found = connection.execute("SELECT id, trace FROM record WHERE position >= 0 ORDER BY position").fetchall()
            for number, trace in found:
                seconds = seconds_of(trace)
                connection.execute(
                    "UPDATE record SET outcome = 'ok', error = NULL, seconds = ?, median = ? WHERE id = ?",
                    (json.dumps([seconds]), seconds, number),
                )
            connection.execute("DELETE FROM finals")
            connection.execute("DELETE FROM record WHERE position < 0")
            connection.commit()
    return [trace for _, trace in found]


class Nothing(ms.Builder, ms.Runner):
    """Builds and runs nothing: what is built is the text of the program, and its time follows from that."""

    def build(self, build_inputs: Sequence[Any]) -> list[Any]:
        texts = [each.mod.script() for each in build_inputs]
        return [ms.BuilderResult(hashlib.sha256(text.encode()).hexdigest(), None) for text in texts]

    def run(self, runner_inputs: Sequence[Any]) -> list[Any]:
        results = [ms.RunnerResult([seconds_of(each.artifact_path)], None) for each in runner_inputs]
        return [ms.RunnerFuture(lambda: True, lambda result=result: result) for result in results]


class Notes(ms.MeasureCallback):
    """What is measured, batch by batch."""

    def __init__(self) -> None:
        self.traces: list[str] = []

    def apply(self, task_scheduler: Any, task_id: int, measure_candidates: Any, *results: Any) -> None:
        self.traces += [f"{task_id} {_text(each.sch.trace)}" for each in measure_candidates]


def _tasks(
    program: Any, options: Callable[[], dict[str, Any]], seed: int, folder: Path, trials: int = 4 * BATCH
) -> list[str]:
    notes, nothing = Notes(), Nothing()
    ms.tune_tir(
        program,
        programs.TARGETS["avx512"],
        folder,
        trials,
        num_trials_per_iter=BATCH,
        builder=nothing,
        runner=nothing,
        measure_callbacks=[notes, *ms.MeasureCallback.create("default")],
        seed=seed,
        **options(),
    )
    return notes.traces


def _tasks_resumed(program: Any, options: Callable[[], dict[str, Any]], seed: int, folder: Path) -> list[str]:
    for batches in range(1, 5):
        found = _tasks(program, options, seed, folder, batches * BATCH)
    return found


_RUNS: dict[tuple[str, str], Callable[..., list[str]]] = {
    ("session", "whole"): _session,
    ("session", "resumed"): _session_resumed,
    ("tasks", "whole"): _tasks,
    ("tasks", "resumed"): _tasks_resumed,
}
