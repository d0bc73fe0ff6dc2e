"""A whole session, from kinds of parts to records and logs."""

from __future__ import annotations

import logging
import shutil
from types import SimpleNamespace

import pytest
from tests.search.programs import AddOne
from tests.search.test_task_scheduler import Context, Stub

import tilewright as tw
from tilewright.meta_schedule import (
    EvaluatorConfig,
    LocalRunner,
    MemoryDatabase,
    RunnerFuture,
    RunnerResult,
    SQLiteDatabase,
    fork_seed,
    tune_tasks,
    tune_tir,
)
from tilewright.meta_schedule.runner import DaskRunner
from tilewright.meta_schedule.stops import Stops
from tilewright.support.machine import Level, Roofs
from tilewright.task.task import task_of


class Task(Context):
    num_threads = 1


def tune(tasks, tmp_path, **options):
    chosen = {"builder": Stub(), "runner": Stub(), "cost_model": None, "max_trials_global": 8, "num_trials_per_iter": 4}
    return tune_tasks(tasks=tasks, task_weights=[1.0] * len(tasks), work_dir=tmp_path, **(chosen | options))


def test_records_and_logs(tmp_path):
    scheduler_log = logging.getLogger("tilewright.meta_schedule")
    before = (scheduler_log.level, list(scheduler_log.handlers))
    database = tune([Task("first/one"), Task("second", mod=AddOne)], tmp_path, measure_callbacks="add-to-database")
    assert len(database) == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "database_tuning_record.json",
        "database_workload.json",
        "logs",
    ]
    logs = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert set(logs) == {
        "tvm.meta_schedule.logging.task_scheduler.log",
        "tvm.meta_schedule.logging.task_0_first_one.log",
        "tvm.meta_schedule.logging.task_1_second.log",
    }
    assert "Weighted Latency (us)" in logs["tvm.meta_schedule.logging.task_scheduler.log"]
    assert "Trial #1: GFLOPs" in logs["tvm.meta_schedule.logging.task_0_first_one.log"]
    assert "first/one" not in logs["tvm.meta_schedule.logging.task_1_second.log"]
    assert (scheduler_log.level, list(scheduler_log.handlers)) == before


def test_a_session_whose_logs_do_not_fit_on_the_disk_has_its_results(tmp_path):
    (tmp_path / "logs").mkdir()
    for name in ("task_scheduler", "task_0_a"):
        (tmp_path / "logs" / f"tvm.meta_schedule.logging.{name}.log").symlink_to("/dev/full")
    with pytest.warns(UserWarning, match="cannot be written: No space left on device: the log is not complete"):
        database = tune([Task("a")], tmp_path, database="memory", measure_callbacks="add-to-database")
    assert len(database) == 8


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for begin in (
        lambda: tune([Task("a")], tmp_path / "file", database="memory"),
        lambda: tune_tir(AddOne, "llvm", tmp_path / "file", 1, database="memory"),
    ):
        with pytest.raises(tw.ResourceError, match=r"file.*: cannot be written: Not a directory") as error:
            begin()
        assert error.value.code == "tune/work-dir"


def test_databases_and_budgets(tmp_path):
    assert isinstance(tune([Task("a")], tmp_path, database="memory"), MemoryDatabase)
    database = tune(
        [Task("a")], tmp_path, database="sqlite", max_trials_per_task=4, measure_callbacks="add-to-database"
    )
    assert isinstance(database, SQLiteDatabase) and database.path == str(tmp_path / "database.db")
    assert len(database) == 4
    # The file alone has them, while the database is open.
    copy = shutil.copy(tmp_path / "database.db", tmp_path / "copy.db")
    assert len(SQLiteDatabase(copy)) == 4
    own = MemoryDatabase()
    assert tune([Task("a")], tmp_path, database=own, max_seconds=1e-9) is own and len(own) == 0


class Slowing(Stub):
    """The third trial of each program is the fastest."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def run(self, runner_inputs):
        def future():
            self.count += 1
            return RunnerResult([{1: 3.0, 2: 2.0}.get(self.count, 0.5)], None)

        return [RunnerFuture(lambda: False, future) for _ in runner_inputs]


def ended(caplog):
    return [message.partition(". Rem")[0] for message in caplog.messages if "has finished" in message]


def test_a_task_that_is_done_leaves_its_trials_to_others(tmp_path, caplog):
    caplog.set_level(logging.INFO, "tilewright.meta_schedule")
    slow = Slowing()
    tasks = [Task("first"), Task("second")]
    tune(
        tasks, tmp_path, runner=slow, task_scheduler="round-robin", max_trials_global=20, target_seconds={"first": 1.0}
    )
    assert ended(caplog)[0] == "Task #0 has finished (target)" and len(tasks[0].told) == 3  # not all of the batch
    assert len(tasks[1].told) >= 12 and tasks[0].ended == 1


@pytest.mark.parametrize("batch", [1, 4])
def test_patience(batch, tmp_path, caplog):
    caplog.set_level(logging.INFO, "tilewright.meta_schedule")
    task = Task("patient")
    tune([task], tmp_path, runner=Slowing(), patience=2, max_trials_global=40, num_trials_per_iter=batch)
    assert ended(caplog) == ["Task #0 has finished (patience)"] and len(task.told) == 5


def test_the_roofline_is_looked_at_where_that_is_asked_for(tmp_path, monkeypatch):
    bounds = []

    class Roofs:
        def binding(self, flops, bytes, dtype, *, cold):
            bounds.append(flops)
            return SimpleNamespace(seconds=0.49)

    monkeypatch.setattr("tilewright.support.machine.roofs", lambda threads: Roofs())
    task = Task("near")
    tune([task], tmp_path, runner=Slowing())
    assert len(task.told) == 8 and not bounds
    task = Task("near")
    tune([task], tmp_path, runner=Slowing(), stop_at_roofline=True)
    assert len(task.told) == 3 and len(bounds) == 1 and bounds[0] > 0
    monkeypatch.setattr(Roofs, "binding", lambda self, flops, bytes, dtype, *, cold: SimpleNamespace(seconds=5.0))
    task = Task("beyond")  # what is beaten by so much is no bound
    tune([task], tmp_path, runner=Slowing(), stop_at_roofline=True)
    assert len(task.told) == 8


def test_the_roofline_is_that_of_what_is_measured(monkeypatch):
    slow_memory = Roofs(1, {"float32": 1e9}, (Level("L1", 1 << 20, 1e12), Level("memory", 0, 1e6)))
    monkeypatch.setattr("tilewright.support.machine.roofs", lambda threads: slow_memory)
    monkeypatch.setattr("tilewright._core.StopRules", SimpleNamespace)
    stops = Stops(at_roofline=True)
    task = Task("product")
    task.target = tw.Target("llvm -num-cores=1")

    def bound(runner):
        return stops.of(task, runner).bound_seconds

    warm, cold = (
        LocalRunner(evaluator_config=EvaluatorConfig(enable_cpu_cache_flush=flush)) for flush in (False, True)
    )
    traffic = task_of(task.mod).work.bytes
    assert bound(cold) == pytest.approx(traffic / 1e6)  # all of it comes from memory
    assert 0 < bound(warm) < 0.01 * bound(cold) and bound(Stub()) == bound(warm)
    # Workers of a cluster, and devices, have limits of their own.
    assert bound(DaskRunner.__new__(DaskRunner)) == 0.0
    task.target = tw.Target("cuda")
    assert bound(warm) == 0.0


def test_a_real_session_ends_at_its_target(tmp_path, caplog):
    caplog.set_level(logging.INFO, "tilewright.meta_schedule")
    options = {"num_trials_per_iter": 4, "cost_model": "none", "strategy": "replay-trace", "database": "memory"}
    database = tune_tir(AddOne, "llvm -num-cores=1", tmp_path, 64, target_seconds=1.0, **options)
    assert ended(caplog) == ["Task #0 has finished (target)"] and len(database) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"patience": 0}, "patience is 0"),
        ({"target_seconds": -1.0}, "target_seconds is -1.0"),
        ({"target_seconds": {"a": 0}}, "target_seconds is 0"),
        ({"target_seconds": {"b": 1.0}}, "target_seconds names b"),
        ({"stop_at_roofline": 3}, "stop_at_roofline is 3; it is True or False"),
    ],
)
def test_stops_that_make_no_sense(wrong, message, tmp_path):
    with pytest.raises(tw.ArgumentError, match=message) as error:
        tune([Task("a")], tmp_path, **wrong)
    assert error.value.code in ("arguments/number", "arguments/kind", "tune/target-seconds")


def test_wrong_uses(tmp_path):
    with pytest.raises(tw.ArgumentError) as error:
        tune([], tmp_path)
    assert error.value.code == "tune/no-task"
    with pytest.raises(tw.ArgumentError) as error:
        tune_tasks(tasks=[Task("a")], task_weights=[], work_dir=tmp_path, max_trials_global=1)
    assert error.value.code == "tune/weights"


def test_seeds():
    assert fork_seed(3, 4) == fork_seed(3, 4) != fork_seed(4, 4)
    assert len(set(fork_seed(None, 8))) > 1
    assert fork_seed(3, 0) == []
