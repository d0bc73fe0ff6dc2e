"""Sessions: which task gets its turn, what is counted, and that nothing ends them."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import AddOne, Product

import tilewright as tw
from tilewright.meta_schedule import (
    AddToDatabase,
    ArgInfo,
    Builder,
    BuilderResult,
    EvaluatorConfig,
    GradientBased,
    LocalBuilder,
    LocalRunner,
    MeasureCallback,
    MemoryDatabase,
    RoundRobin,
    Runner,
    RunnerFuture,
    RunnerResult,
    SQLiteDatabase,
    TaskScheduler,
)
from tilewright.script import ir as I
from tilewright.script import tir as T


class Candidate:
    def __init__(self, number: int) -> None:
        self.number = number
        self.sch = tw.Schedule(Product)
        self.sch.split(self.sch.get_loops(self.sch.get_block("C"))[0], factors=[None, 2])
        self.args_info = None


class Context:
    """A task with so many candidates, in batches."""

    def __init__(self, name: str, candidates: int = 100, mod: Any = Product) -> None:
        self.task_name, self.mod, self.target = name, mod, tw.Target("llvm")
        self.logger = logging.getLogger(f"test.{name}")
        self.left, self.handed, self.told, self.ended = candidates, 0, [], 0

    def generate_design_space(self) -> list[tw.Schedule]:
        return [tw.Schedule(self.mod)]

    def pre_tuning(self, max_trials, num_trials_per_iter, design_spaces, database, cost_model) -> None:
        self.left, self.batch = min(self.left, max_trials), num_trials_per_iter

    def generate_measure_candidates(self):
        if self.left == 0:
            return None
        count = min(self.batch, self.left)
        self.left -= count
        self.handed += count
        return [Candidate(self.handed - count + i) for i in range(count)]

    def notify_runner_results(self, candidates, results) -> None:
        assert len(candidates) == len(results)
        self.told += results

    def post_tuning(self) -> None:
        self.ended += 1


class Stub(Builder, Runner):
    """Builds and measures nothing: seconds of a candidate follow from its number."""

    def __init__(self, seconds: Callable[[int], float | None] = lambda n: 1.0 / (n + 1)) -> None:
        self.seconds, self.order = seconds, []

    def build(self, build_inputs):
        return [BuilderResult("nowhere.o", None)] * len(build_inputs)

    def run(self, runner_inputs):
        return [RunnerFuture(lambda: True, lambda: RunnerResult([0.5], None)) for _ in runner_inputs]


def tune(scheduler, tasks, *, callbacks=(), trials=1000, per_task=1000, batch=4, part=None, database=None, **more):
    part = part or Stub()
    weights = more.pop("weights", [1.0] * len(tasks))
    scheduler.tune(tasks, weights, trials, per_task, batch, part, part, callbacks, database, None, **more)
    return scheduler


@pytest.mark.parametrize("kind", ["round-robin", "gradient"])
def test_all_candidates_are_measured_and_told_of(kind):
    tasks = [Context("a", 10), Context("b", 7), Context("c", 0)]
    database = MemoryDatabase()
    scheduler = tune(TaskScheduler.create(kind), tasks, callbacks=[AddToDatabase()], database=database)
    assert [len(task.told) for task in tasks] == [10, 7, 0]
    assert [task.ended for task in tasks] == [1, 1, 1]
    assert len(database) == 17 and scheduler.stop_reason == "finished" and scheduler.remaining_tasks == 0
    assert all(task.is_terminated for task in scheduler.tasks)


def test_round_robin_takes_turns():
    order = []

    class Noting(Context):
        def generate_measure_candidates(self):
            order.append(self.task_name)
            return super().generate_measure_candidates()

    tune(RoundRobin(), [Noting("a", 8), Noting("b", 4), Noting("c", 8)])
    assert order == ["a", "b", "c", "a", "b", "c", "a", "c"]


def test_budgets():
    tasks = [Context("a"), Context("b")]
    scheduler = tune(RoundRobin(), tasks, trials=10, batch=4)
    assert scheduler.stop_reason == "trials" and [task.handed for task in tasks] == [8, 4]
    tasks = [Context("a"), Context("b")]
    tune(RoundRobin(), tasks, per_task=6, batch=4)
    assert [task.handed for task in tasks] == [6, 6]
    tasks = [Context("a")]
    scheduler = tune(RoundRobin(), tasks, max_seconds=0.0)
    assert scheduler.stop_reason == "seconds" and tasks[0].handed == 0 and tasks[0].ended == 1
    with pytest.raises(tw.ArgumentError) as error:
        tune(RoundRobin(), tasks, weights=[1.0, 2.0])
    assert error.value.code == "tune/weights"


@pytest.mark.parametrize(("limits", "why"), [({"trials": 2}, "used up all trials"), ({"max_seconds": 1e-9}, "time of")])
def test_a_task_that_never_had_its_turn_is_not_blamed(limits, why, caplog):
    tasks = [Context("first"), Context("second")]
    scheduler = tune(RoundRobin(), tasks, batch=2, **limits)
    assert tasks[1].handed == 0 and not scheduler.tasks[1].latency_ms
    (said,) = [message for message in caplog.messages if "'second' ends without a trial" in message]
    assert why in said and "strategy" not in said


def test_the_gradient_goes_where_time_is_to_be_won():
    """Of two tasks alike, the one that weighs a hundred times as much gets the trials; one that never works gets none
    beyond its first."""
    fast, heavy, broken = Context("fast"), Context("heavy"), Context("broken")
    results = {"broken": RunnerResult(None, "no")}
    current = []

    class Naming(Stub):
        def run(self, runner_inputs):
            answer = results.get(current[-1], RunnerResult([0.5], None))
            return [RunnerFuture(lambda: True, lambda: answer) for _ in runner_inputs]

    for task in (fast, heavy, broken):
        task.generate = task.generate_measure_candidates
        task.generate_measure_candidates = lambda task=task: (current.append(task.task_name), task.generate())[1]
    scheduler = tune(
        GradientBased(seed=1), [fast, heavy, broken], trials=40, batch=4, part=Naming(), weights=[1, 100, 1]
    )
    assert (fast.handed, broken.handed) == (4, 4) and heavy.handed == 32
    assert scheduler.tasks[2].run_error_count == 4


def test_failures_are_counted():
    class Failing(Stub):
        def build(self, build_inputs):
            return [BuilderResult(None, "unbuilt"), BuilderResult("a.o", None), BuilderResult("b.o", None)]

        def run(self, runner_inputs):
            assert [each.artifact_path for each in runner_inputs] == ["a.o", "b.o"]
            raised = RunnerFuture(lambda: True, lambda: 1 // 0)
            return [raised, RunnerFuture(lambda: True, lambda: RunnerResult([1e-3, 3e-3, 2e-3], None))]

    database = MemoryDatabase()
    scheduler = tune(
        RoundRobin(), [Context("a", 3)], batch=3, part=Failing(), callbacks=[AddToDatabase()], database=database
    )
    task = scheduler.tasks[0]
    assert (task.build_error_count, task.run_error_count) == (1, 1)
    assert task.latency_ms == [1e9, 1e9, 2.0] and task.best_ms == 2.0
    assert [record.run_secs for record in database.get_all_tuning_records()][:2] == [[1e10], [1e10]]
    assert [result.error_msg and result.error_msg.split("\n")[0] for result in task.ctx.told] == [
        "unbuilt",
        "the runner raised",
        None,
    ]


class Refusing(Stub):
    def __init__(self, where: str, answer: Any) -> None:
        super().__init__()
        self.where, self.answer = where, answer

    def build(self, build_inputs):
        return self._answer("build") or super().build(build_inputs)

    def run(self, runner_inputs):
        return self._answer("run") or super().run(runner_inputs)

    def _answer(self, where: str) -> Any:
        if where == self.where and isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if where == self.where else None


@pytest.mark.parametrize("where", ["build", "run"])
@pytest.mark.parametrize("answer", [ValueError("not today"), [None]])
def test_builders_and_runners_that_fail(where, answer):
    scheduler = tune(RoundRobin(), [Context("a", 6)], batch=3, part=Refusing(where, answer))
    task = scheduler.tasks[0]
    assert task.build_error_count + task.run_error_count == 6 and scheduler.stop_reason == "finished"


@pytest.mark.parametrize(
    "method",
    ["generate_design_space", "pre_tuning", "generate_measure_candidates", "notify_runner_results", "post_tuning"],
)
@pytest.mark.parametrize("kind", ["round-robin", "gradient"])
def test_a_task_that_fails_ends_alone(method, kind):
    def fail(*args):
        raise ValueError("not today")

    bad, good = Context("bad", 8), Context("good", 8)
    setattr(bad, method, fail)
    scheduler = tune(TaskScheduler.create(kind), [bad, good])
    assert len(good.told) == 8 and good.ended == 1
    assert scheduler.tasks[0].is_terminated and scheduler.remaining_tasks == 0


def test_a_session_of_which_nothing_can_begin():
    def fail():
        raise ValueError("not today")

    tasks = [Context("a", 4), Context("b", 4)]
    for task in tasks:
        task.generate_design_space = fail
    with pytest.raises(ValueError, match="not today"):
        tune(RoundRobin(), tasks)


def test_callbacks_that_fail():
    class Failing(MeasureCallback):
        def apply(self, *args):
            raise ValueError("not today")

    database = MemoryDatabase()
    tune(RoundRobin(), [Context("a", 8)], callbacks=[Failing(), AddToDatabase()], database=database)
    assert len(database) == 8


def test_interruption_keeps_what_was_measured():
    database = MemoryDatabase()

    class Interrupted(Stub):
        def __init__(self):
            super().__init__()
            self.batches = 0

        def run(self, runner_inputs):
            self.batches += 1
            done = self.batches < 2
            result = RunnerResult([0.5], None)

            def wait():
                if done:
                    return result
                raise KeyboardInterrupt

            first = RunnerFuture(lambda: True, lambda: result)
            return [first, *[RunnerFuture(lambda: done, wait) for _ in runner_inputs[1:]]]

    tasks = [Context("a"), Context("b", 0)]
    scheduler = tune(RoundRobin(), tasks, callbacks=[AddToDatabase()], database=database, part=Interrupted())
    assert scheduler.stop_reason == "canceled"
    assert len(database) == 5  # the first batch, and what was done of the second one
    assert [task.ended for task in tasks] == [1, 1] and scheduler.tasks[0].run_error_count == 0


@pytest.mark.parametrize("ends", ["by itself", "by an error", "by Ctrl-C"])
def test_what_was_measured_is_in_the_file_when_the_session_ends(tmp_path: Path, ends: str) -> None:
    class Ending(RoundRobin):
        def next_task_id(self):
            if len(self.tasks[0].latency_ms) == 8:
                if ends == "by an error":
                    raise ZeroDivisionError
                if ends == "by Ctrl-C":
                    raise KeyboardInterrupt
            return super().next_task_id()

    database = SQLiteDatabase(tmp_path / "records.db")
    expected = pytest.raises(ZeroDivisionError) if ends == "by an error" else contextlib.nullcontext()
    with expected:
        tune(Ending(), [Context("a", 12)], callbacks=[AddToDatabase()], database=database)
    copy = shutil.copy(tmp_path / "records.db", tmp_path / "copy.db")  # without the log beside it
    assert len(SQLiteDatabase(copy)) >= 8
    assert len(database) == len(SQLiteDatabase(copy))  # which is open all the while


def test_no_wrong_kernel_is_kept(tmp_path, monkeypatch):
    """A candidate that computes something else, in one element, is told of, and kept as one that failed."""

    @I.ir_module
    class AddTwo:
        @T.prim_func
        def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
            for i in range(64):
                with T.block("B"):
                    vi = T.axis.spatial(64, i)
                    B[vi] = A[vi] + T.if_then_else(vi == 63, T.float32(2), T.float32(1))

    class Programs(Context):
        def generate_measure_candidates(self):
            if self.left == 0:
                return None
            self.left = 0
            made = []
            for module in (AddOne, AddTwo, AddOne):
                candidate = Candidate(0)
                candidate.sch = tw.Schedule(module)
                candidate.sch.split(candidate.sch.get_loops(candidate.sch.get_block("B"))[0], factors=[None, 8])
                candidate.args_info = ArgInfo.from_entry_func(module)
                made.append(candidate)
            return made

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    database = MemoryDatabase()
    builder = LocalBuilder(max_workers=2)
    runner = LocalRunner(evaluator_config=EvaluatorConfig(number=1, min_repeat_ms=0))
    task = Programs("a", mod=AddOne)
    callbacks = MeasureCallback.create("default")
    try:
        scheduler = RoundRobin()
        scheduler.tune([task], [1.0], 10, 10, 10, builder, runner, callbacks, database, None)
    finally:
        builder.close()
        runner.close()
    errors = [result.error_msg for result in task.told]
    assert errors[0] is None and errors[2] is None
    assert errors[1].startswith("wrong_result: ") and "B[63]" in errors[1]
    assert [record.run_secs == [1e10] for record in database.get_all_tuning_records()] == [False, True, False]
    assert scheduler.tasks[0].run_error_count == 1
    assert list(tmp_path.iterdir()) == []


def test_statistics():
    scheduler = tune(RoundRobin(), [Context("product", 4), Context("none", 0, AddOne)], weights=[2.0, 1.0])
    product, none, total = scheduler.statistics().rows
    assert product[:4] == ("0", "product", "65536", "2") and product[-2:] == ("4", "Y")
    assert float(product[4]) == pytest.approx(65536 / 0.5 / 1e9, abs=1e-4)
    assert (product[5], product[6]) == ("500000.0000", "1000000.0000")
    assert none[4:7] == ("N/A", "N/A", "N/A")
    assert total[6:8] == ("1000000.0000", "4")


def test_wrong_uses():
    scheduler = tune(RoundRobin(), [Context("a", 4)])
    with pytest.raises(tw.ArgumentError) as error:
        scheduler.join_running_task(0)
    assert error.value.code == "tune/nothing-under-way"
    with pytest.raises(tw.ArgumentError) as error:
        scheduler.terminate_task(0)
    assert error.value.code == "tune/terminated"
    with pytest.raises(tw.ArgumentError) as error:
        TaskScheduler.create("chaos")
    assert error.value.code == "tune/scheduler"
    assert TaskScheduler.create(scheduler) is scheduler


def test_a_scheduler_of_ones_own():
    class Backwards(TaskScheduler):
        def next_task_id(self):
            for task_id in reversed(range(len(self.tasks))):
                if not self.tasks[task_id].is_terminated:
                    if self.tasks[task_id].runner_futures is not None:
                        self.join_running_task(task_id)
                    return task_id
            return -1

    tasks = [Context("a", 5), Context("b", 5)]
    scheduler = tune(Backwards(), tasks, trials=5)
    assert [len(task.told) for task in tasks] == [0, 5]
    assert scheduler.stop_reason == "trials"
