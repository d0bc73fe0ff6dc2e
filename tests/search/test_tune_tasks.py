"""A whole session, from kinds of parts to records and logs."""

from __future__ import annotations

import logging

import pytest
from tests.search.programs import AddOne
from tests.search.test_task_scheduler import Context, Stub

import tilewright as tw
from tilewright.meta_schedule import MemoryDatabase, SQLiteDatabase, fork_seed, tune_tasks


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


def test_databases_and_budgets(tmp_path):
    assert isinstance(tune([Task("a")], tmp_path, database="memory"), MemoryDatabase)
    database = tune(
        [Task("a")], tmp_path, database="sqlite", max_trials_per_task=4, measure_callbacks="add-to-database"
    )
    assert isinstance(database, SQLiteDatabase) and database.path == str(tmp_path / "database.db")
    assert len(database) == 4
    own = MemoryDatabase()
    assert tune([Task("a")], tmp_path, database=own, max_seconds=1e-9) is own and len(own) == 0


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
