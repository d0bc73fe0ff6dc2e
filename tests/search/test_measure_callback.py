"""What happens with what was measured."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from types import SimpleNamespace

import pytest
from tests.search.programs import Product

import tilewright as tw
from tilewright.meta_schedule import (
    AddToDatabase,
    BuilderResult,
    MeasureCallback,
    Profiler,
    RemoveBuildArtifact,
    RunnerResult,
    SQLiteDatabase,
    UpdateCostModel,
)
from tilewright.meta_schedule.measure_callback import apply_all


class Learner:
    def __init__(self):
        self.seen = []

    def update(self, context, candidates, results):
        assert len(candidates) == len(results)
        self.seen.append((context, candidates))


def scheduler_with(model):
    return SimpleNamespace(database=None, cost_model=model, tasks=[SimpleNamespace(ctx="context")])


def test_what_teaches_the_cost_model():
    model = Learner()
    built, unbuilt = BuilderResult("a.o", None), BuilderResult(None, "no")
    results = [RunnerResult([1.0, 2.0], None), RunnerResult([0.0, 1.0], None), RunnerResult(None, "crash")]
    results += [RunnerResult([1.0], None), RunnerResult([], None)]
    candidates = ["fine", "zero", "crashed", "unbuilt", "empty"]
    UpdateCostModel().apply(scheduler_with(model), 0, candidates, [*[built] * 3, unbuilt, built], results)
    assert model.seen == [("context", ["fine", "crashed"])]
    UpdateCostModel().apply(scheduler_with(model), 0, ["zero"], [built], results[1:2])
    assert len(model.seen) == 1


def test_artifacts_are_removed(tmp_path):
    path = tmp_path / "kernel.o"
    path.write_text("x")
    results = [BuilderResult(str(path), None), BuilderResult(None, "no"), BuilderResult("/nowhere/kernel.o", None)]
    RemoveBuildArtifact().apply(scheduler_with(None), 0, [None] * 3, results, [None] * 3)
    assert not os.path.exists(path)


def test_a_locked_database_is_waited_for(tmp_path):
    database = SQLiteDatabase(tmp_path / "records.db")
    database.commit_workload(Product)
    other = sqlite3.connect(tmp_path / "records.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    lock = threading.Timer(6.0, lambda: other.execute("COMMIT"))  # longer than one attempt waits
    lock.start()
    sch = tw.Schedule(Product)
    sch.split(sch.get_loops(sch.get_block("C"))[0], factors=[None, 2])
    candidate = SimpleNamespace(sch=sch, args_info=None)
    scheduler = scheduler_with(None)
    scheduler.database = database
    scheduler.tasks[0].ctx = SimpleNamespace(mod=Product, target=tw.Target("llvm"))
    started = time.monotonic()
    AddToDatabase().apply(scheduler, 0, [candidate], [BuilderResult("a.o", None)], [RunnerResult([1.0], None)])
    assert time.monotonic() - started > 4
    assert len(database) == 1
    lock.join()  # a connection that is closed while it commits ends the process
    other.close()


def test_one_that_raises_does_not_stop_the_others(caplog):
    class Failing(MeasureCallback):
        def apply(self, *args):
            raise ValueError("not today")

    model = Learner()
    batch = ([0], [BuilderResult("a.o", None)], [RunnerResult([1.0], None)])
    with Profiler() as profiler, caplog.at_level(logging.ERROR):
        callbacks = [Failing(), UpdateCostModel()]
        assert apply_all(callbacks, scheduler_with(model), 0, batch, logging.getLogger("test")) == 1
    assert len(model.seen) == 1
    assert "not today" in caplog.text
    assert {"MeasureCallback/Failing", "MeasureCallback/UpdateCostModel"} <= {*profiler.get()}


def test_kinds():
    default = MeasureCallback.create("default")
    assert [type(callback) for callback in default] == [AddToDatabase, RemoveBuildArtifact, UpdateCostModel]
    assert MeasureCallback.create(default) == default
    assert MeasureCallback.create(default[0]) == default[:1]
    assert isinstance(MeasureCallback.create("update-cost-model")[0], UpdateCostModel)
    with pytest.raises(tw.ArgumentError) as error:
        MeasureCallback.create("nothing")
    assert error.value.code == "callback/kind"
