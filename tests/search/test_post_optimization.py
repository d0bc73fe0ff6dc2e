"""Descending from the best record."""

from __future__ import annotations

import pytest
from tests.search.programs import Product
from tests.search.test_task_scheduler import Stub

import tilewright as tw
from tilewright.meta_schedule import (
    BuilderResult,
    JSONDatabase,
    MemoryDatabase,
    PostOpt,
    RunnerFuture,
    RunnerResult,
    SQLiteDatabase,
    TuningRecord,
)
from tilewright.meta_schedule.post_optimization import descend

LLVM = tw.Target("llvm -num-cores=1")


def tiled(database, tiles: list[int], choice: int, seconds: float):
    sch = tw.Schedule(Product)
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=2, decision=tiles))
    sch.split(j, factors=[None, sch.sample_categorical([1, 2, 4, 8], [0.25] * 4, decision=choice)])
    workload = database.commit_workload(Product)
    database.commit_tuning_record(TuningRecord(sch.trace, workload, [seconds] * 5, LLVM))
    return workload


class Measured(Stub):
    """Says how long a candidate takes by the extents of its loops: the best has inner tiles of 8 and 4."""

    def build(self, build_inputs):
        results = []
        for each in build_inputs:
            sch = tw.Schedule(each.mod)
            loops = sch.get_loops(sch.get_block("C"))
            inner = [int(sch.get(loop).extent.value) for loop in (loops[1], loops[3])]
            results.append(BuilderResult(f"{abs(inner[0] - 8) + abs(inner[1] - 4) + 1}", None))
        return results

    def run(self, runner_inputs):
        def future(seconds: float) -> RunnerFuture:
            return RunnerFuture(lambda: True, lambda: RunnerResult([seconds + i * 1e-3 for i in range(8)], None))

        return [future(float(each.artifact_path)) for each in runner_inputs]


def test_the_best_point_is_found_step_by_step():
    database = MemoryDatabase()
    workload = tiled(database, [32, 1], 0, 100.0)
    best = descend(database, workload, LLVM, 100, Measured(), Measured())
    assert [list(d) if isinstance(d, tuple | list) else d for d in best.trace.decisions.values()] == [[4, 8], 2]
    assert database.query(Product, LLVM, kind="record").mean() == pytest.approx(best.mean())
    assert 4 < len(database) < 40


def test_budgets_and_nothing_to_begin_with():
    database = MemoryDatabase()
    assert descend(database, database.commit_workload(Product), LLVM, 10, Measured(), Measured()) is None
    workload = tiled(database, [32, 1], 0, 100.0)
    descend(database, workload, LLVM, 2, Measured(), Measured())
    assert len(database) == 3


def test_ctrl_c_ends_all_of_it():
    class Interrupted(Measured):
        def run(self, runner_inputs):
            raise KeyboardInterrupt

    database = MemoryDatabase()
    workload = tiled(database, [32, 1], 0, 100.0)
    with pytest.raises(KeyboardInterrupt):
        descend(database, workload, LLVM, 10, Interrupted(), Interrupted())


@pytest.mark.parametrize("kind", [JSONDatabase, SQLiteDatabase])
def test_a_folder_is_descended_from(tmp_path, kind):
    tiled(kind(work_dir=tmp_path), [32, 1], 0, 100.0)
    PostOpt(tmp_path, LLVM, trials=3).run()
    records = kind(work_dir=tmp_path).get_all_tuning_records()
    assert 3 <= len(records) <= 4 and min(record.mean() for record in records) < 1.0
    with pytest.raises(tw.ResourceError):
        PostOpt(tmp_path / "nothing", LLVM)
    with pytest.raises(tw.ArgumentError) as error:
        PostOpt(tmp_path, LLVM, trials=0)
    assert error.value.code == "tune/descent"
