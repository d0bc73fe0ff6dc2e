"""What is told of parts of somebody's own that fail: once, by their name, with the line that it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.script import tir as T


@T.prim_func
def double(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(256):
        with T.block("B"):
            vi = T.axis.spatial(256, i)
            B[vi] = A[vi] * T.float32(2)


def eighths(sch: tw.Schedule) -> None:
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=4, max_innermost_factor=64))


class Instant(ms.Builder, ms.Runner):  # type: ignore[misc]
    """Builds and measures nothing: each call takes a second."""

    def build(self, build_inputs: Any) -> Any:
        return [ms.BuilderResult("nowhere/kernel.o", None) for _ in build_inputs]

    def run(self, runner_inputs: Any) -> Any:
        return [ms.RunnerFuture(lambda: True, lambda: ms.RunnerResult([1.0], None)) for _ in runner_inputs]


def session(folder: Path, **options: Any) -> ms.Database:
    """Up to 12 trials, 3 in a batch."""
    chosen: dict[str, Any] = {"builder": Instant(), "runner": Instant(), "database": "memory", "cost_model": None}
    chosen |= {"space": eighths, "strategy": "evolutionary", "seed": 1, "num_trials_per_iter": 3}
    return ms.tune_tir(double, "llvm -num-cores=1", work_dir=folder, max_trials_global=12, **(chosen | options))


def space_with(**parts: Any) -> ms.ScheduleFn:
    space = ms.ScheduleFn(eighths, sch_rules=[], postprocs=[], mutator_probs={})
    for name, part in parts.items():
        setattr(space, name, part)
    return space


def is_told(caplog: pytest.LogCaptureFixture, *texts: str) -> None:
    """That the texts stand there once, and above them the line of this file, without a traceback."""
    assert all(caplog.text.count(text) == 1 for text in texts), caplog.text
    assert "test_failing_parts.py" in caplog.text and "Traceback" not in caplog.text


class Callback(ms.MeasureCallback):
    def apply(self, *_: Any) -> None:
        raise KeyError("not kept")


class Keeper(ms.MemoryDatabase):
    def commit_tuning_record(self, record: Any) -> None:
        raise KeyError("not kept")


@pytest.mark.parametrize(
    ("options", "name"),
    [({"measure_callbacks": ["add-to-database", Callback()]}, "Callback"), ({"database": Keeper()}, "AddToDatabase")],
    ids=["callback", "database"],
)
def test_what_a_callback_or_a_database_raises(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: Any, name: str
) -> None:
    assert len(session(tmp_path, **options)) == (12 if name == "Callback" else 0)
    is_told(caplog, f"the callback {name} raised KeyError: 'not kept'\n", 'raise KeyError("not kept")')
    assert f"the callback {name} raised KeyError after 4 batches" in caplog.text


def test_what_a_postprocessor_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(ms.Postproc):
        def apply(self, sch: Any) -> bool:
            raise KeyError("not this one")

    assert len(session(tmp_path, space=space_with(postprocs=[Broken()]))) == 0
    is_told(caplog, "x postproc/exception (KeyError: 'not this one')\n", 'raise KeyError("not this one")')


class OneBatch(ms.SearchStrategy):
    """The designs of the space as they are."""

    def pre_tuning(self, *plan: Any) -> None:
        self.designs = plan[2]

    def generate_measure_candidates(self) -> Any:
        designs, self.designs = self.designs, None
        return designs and [ms.MeasureCandidate(each, []) for each in designs]

    def notify_runner_results(self, *_: Any) -> None: ...

    def post_tuning(self) -> None: ...


def test_what_a_strategy_raises_at_its_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(OneBatch):
        def post_tuning(self) -> None:
            raise KeyError("no end")

    assert len(session(tmp_path, strategy=Broken())) == 1
    is_told(caplog, "post_tuning() of its strategy raised KeyError: 'no end'\n", 'raise KeyError("no end")')


class NoFeatures(ms.FeatureExtractor):
    def extract_from(self, context: Any, candidates: Any) -> Any:
        return None


@pytest.mark.parametrize("batch", [3, 12], ids=["update", "ranking"])
def test_what_an_extractor_gives(tmp_path: Path, caplog: pytest.LogCaptureFixture, batch: int) -> None:
    session(tmp_path, cost_model=ms.XGBModel(extractor=NoFeatures()), num_trials_per_iter=batch)
    said = "the search goes on without its cost model, which failed: "
    assert caplog.text.count(said) == 1
    assert "extract_from() of a 'NoFeatures' gave None\n  hint: it gives a matrix of numbers" in caplog.text
    assert "Traceback" not in caplog.text
