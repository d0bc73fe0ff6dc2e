"""What a search cannot be asked for is told at once, by the name of the parameter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.script import tir as T
from tilewright.testing.workloads import matmul

PROGRAM = matmul(16, 16, 16)
#: what has no truth value
ARRAY = np.array([1, 2])
FACTORS = te.placeholder((4, 5), "float32", name="A")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 2.5}, "trials is 2.5; it is a whole number, at least 1"),
        ({"trials": "3"}, "trials is '3'; it is a whole number, at least 1"),
        ({"trials": True}, "trials is True; it is a whole number"),
        ({"trials": 10**30}, "trials is 1000000000000000000000000000000; it is at most"),
        ({"threads": 1.5}, "threads is 1.5; it is a whole number, at least 1"),
        ({"threads": 0}, "threads is 0; a kernel needs at least 1"),
        ({"seed": -1}, "seed is -1; it is at least 0"),
        ({"seed": 1.5}, "seed is 1.5; it is a whole number"),
        ({"patience": 1.5}, "patience is 1.5; it is a whole number"),
        ({"seconds": "3"}, "seconds is '3'; it is a number, or None"),
        ({"target_seconds": "x"}, "target_seconds is 'x'; it is a number, or None"),
        ({"sizes": 3}, "sizes is 3; it is a dict of numbers by the names of sizes"),
        ({"inputs": 3}, "inputs is 3; it is a dict of arrays by the names of parameters"),
        ({"space": 3}, "space is 3; it is a function of a schedule"),
        ({"fresh": 3}, "fresh is 3; it is True or False"),
        ({"strategy": 4}, "strategy is 4; it is the name of a strategy"),
        ({"cost_model": 3}, "cost_model is 3; it is a CostModel of tilewright.meta_schedule"),
        ({"database": 3}, "database is 3; it is the path of a file"),
    ],
)
def test_tune(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(tw.ArgumentError) as caught:
        tw.tune(PROGRAM, progress=None, **wrong)
    assert caught.value.message.startswith(message) and caught.value.code in ("arguments/number", "arguments/kind")
    assert len(str(caught.value)) < 240


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mod": 3}, "mod is 3; it is a function under @T.prim_func, or a module of them"),
        ({"seed": -1}, "seed is -1; it is at least 0 and at most 4294967295"),
        ({"seed": "x"}, "seed is 'x'; it is a whole number"),
        ({"max_trials_global": 2.5}, "max_trials_global is 2.5; it is a whole number, at least 1"),
        ({"max_trials_global": -1}, "max_trials_global is -1; it is at least 1"),
        ({"max_trials_per_task": 0}, "max_trials_per_task is 0; it is at least 1"),
        ({"num_trials_per_iter": 0}, "num_trials_per_iter is 0; a batch has at least 1 trial"),
        ({"max_seconds": -1}, "max_seconds is -1; it is a number above 0"),
        ({"work_dir": 3}, "work_dir is 3; it is the path of a folder"),
        ({"space": 3}, "space is 3; it is a SpaceGenerator, a function of a schedule, or the name of a space"),
        ({"strategy": 3}, "strategy is 3; it is a SearchStrategy, or the name of one"),
        ({"database": 3}, "database is 3; it is the kind of a database"),
        ({"runner": 4}, 'runner is 4; it is "local", or an object with run()'),
        ({"builder": 4}, 'builder is 4; it is "local", or an object with build()'),
        ({"database": ARRAY}, "database is array([1, 2]); it is the kind of a database"),
        ({"cost_model": ARRAY}, "cost_model is array([1, 2]); it is the kind of a cost model"),
        ({"measure_callbacks": ARRAY}, "measure_callbacks holds array([1, 2]), which is not a measure callback"),
        ({"task_scheduler": {}}, "task_scheduler is {}; it is "),
        ({"module_equality": []}, "programs cannot be compared by []"),
        ({"special_space": 3}, "special_space is 3; it is a dict of spaces by the names of functions"),
        ({"num_tuning_cores": ARRAY}, 'num_threads is array([1, 2]); it is a number, "physical" or "logical"'),
        ({"num_tuning_cores": 1.5}, "num_threads is 1.5; it is a number"),
        ({"post_optimization": ARRAY}, "post_optimization is array([1, 2]); it is True or False"),
        ({"target": "hexagon"}, "'main': programs cannot be compiled for hexagon, and so not be measured"),
    ],
)
def test_tune_tir(wrong: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    arguments: dict[str, Any] = {
        "mod": PROGRAM,
        "target": "llvm -num-cores=1",
        "work_dir": folder,
        "max_trials_global": 2,
        "strategy": "replay-trace",
        "cost_model": "none",
    }
    with pytest.raises(tw.ArgumentError) as caught:
        ms.tune_tir(**(arguments | wrong))
    assert caught.value.message.startswith(message)
    assert not folder.exists()  # nothing was begun


def test_what_was_perhaps_meant() -> None:
    with pytest.raises(tw.ArgumentError, match="hint: write trials=2"):
        tw.tune(PROGRAM, trials=2.5, progress=None)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tw.compile(PROGRAM, schedule=ARRAY), "schedule is array([1, 2])"),
        (lambda: tw.compile(PROGRAM, check_bounds=ARRAY), "check_bounds is array([1, 2]); it is True or False"),
        (lambda: tw.compile(PROGRAM).inspect(ARRAY), "Kernel.inspect cannot take (ndarray)"),
        (lambda: tw.compile(PROGRAM).benchmark(cold=ARRAY), "cold is array([1, 2]); it is True or False"),
        (lambda: tw.space(PROGRAM, inputs=3), "inputs is 3; it is a dict"),
        (lambda: tw.space(PROGRAM, reference=3), "reference is 3; it is a function"),
        (lambda: tw.space(PROGRAM, name=3), "name is 3; it is a text"),
        (lambda: ms.SQLiteDatabase(ARRAY), "path is array([1, 2]); it is a path"),
        (lambda: ms.JSONDatabase(work_dir=3), "work_dir is 3; it is a path"),
        (lambda: ms.PostgresDatabase(3), "server is 3; it is a text"),
        (lambda: ms.MemoryDatabase(ARRAY), "programs cannot be compared by array([1, 2])"),
        (lambda: ms.MemoryDatabase().commit_tuning_record(3), "record is 3; it is a TuningRecord"),
        (lambda: ms.SQLiteDatabase().commit_tuning_record(3), "record is 3; it is a TuningRecord"),
        (lambda: ms.SQLiteDatabase().get_top_k(3, 1), "get_top_k cannot take (int, int)"),
        (lambda: ms.MemoryDatabase().best_schedule(3, "native"), "knows functions and modules, not int"),
        (lambda: ms.MemoryDatabase().query(PROGRAM, None, kind=ARRAY), "no query of the kind array([1, 2])"),
        (lambda: ms.Runner.create({}), "there is no runner of the kind {}"),
        (lambda: ms.Builder.create(ARRAY), "there is no builder of the kind array([1, 2])"),
        (lambda: ms.TaskScheduler.create([]), "there is no task scheduler of the kind []"),
        (lambda: ms.CostModel.create([]), "create cannot take (list)"),
        (lambda: ms.MeasureCallback.create(ARRAY), "which is not a measure callback"),
        (lambda: ms.GradientBased(seed=1.5), "seed is 1.5; it is a whole number"),
        (lambda: ms.RandomModel(seed=1.5), "seed is 1.5; it is a whole number"),
        (lambda: ms.RandomModel(path=True), "path is True; it is a path"),
        (lambda: ms.fork_seed(-1, 2), "seed is -1; it is at least 0"),
        (lambda: ms.fork_seed(1, -1), "n is -1; it is at least 0"),
        (lambda: ms.EvaluatorConfig(number=1.5), "number is 1.5; it is a whole number of calls"),
        (lambda: ms.EvaluatorConfig(min_repeat_ms=float("nan")), "measures nothing"),
        (lambda: ms.LocalBuilder(max_workers=10**30), "it is at most 4096"),
        (lambda: ms.LocalBuilder(f_build=3), "f_build is 3; it is a function, the name of one"),
        (lambda: ms.LocalRunner(evaluator_config=ARRAY), "evaluator_config is array([1, 2]); it is an EvaluatorConfig"),
        (lambda: ms.TuneContext(PROGRAM, rand_state=ARRAY), "TuneContext cannot take (PrimFunc, rand_state=ndarray)"),
        (
            lambda: ms.tune_tasks(tasks=3, task_weights=[], work_dir="x", max_trials_global=1),
            "tasks is 3; it is a list",
        ),
        (lambda: ms.tune_tasks(tasks=[3], task_weights=[1], work_dir="x", max_trials_global=1), "a task is 3; it is a"),
        (lambda: te.placeholder(3, ARRAY), "placeholder cannot take (int, ndarray)"),
        (lambda: te.sum((4, 5), len), "sum cannot take (tuple, builtin_function_or_method)"),
        (lambda: te.prod([FACTORS], 1.5), "prod cannot take (list, float)"),
        (lambda: te.comm_reducer(max, max, name=3), "name is 3; it is the name of the reducer"),
        (lambda: T.index_map(3), "made of a function of indices, not of a int"),
    ],
)
def test_what_makes_no_sense(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(tw.Error) as caught:
        call()
    assert said in str(caught.value)


def test_a_part_that_does_not_begin_its_base_class() -> None:
    class Model(ms.CostModel):
        def __init__(self) -> None:
            self.seen = 0

    with pytest.raises(tw.ArgumentError, match=r"Model.__init__\(\) does not call that of its base class") as error:
        tw.tune(PROGRAM, cost_model=Model(), trials=1, progress=None)
    assert error.value.code == "search/parts" and "super().__init__()" in str(error.value)


def test_a_python_function_is_no_program() -> None:
    with pytest.raises(tw.ArgumentError, match="is a Python function; @T"):
        tw.tune(lambda x: x, trials=1, progress=None)  # type: ignore[call-overload]
