"""Tuning modules by rules and by functions, from programs to kernels."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.search.programs import Product

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.database.origins import Origin
from tilewright.database.records import read_database
from tilewright.meta_schedule import (
    EvaluatorConfig,
    JSONDatabase,
    LocalRunner,
    Profiler,
    SQLiteDatabase,
    compile_tir,
    normalize_module,
    tune_tir,
)
from tilewright.meta_schedule.runner.local_runner import kernel_of
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.testing.workloads import matmul

LLVM = tw.Target("llvm -num-cores=1")


@I.ir_module
class Two:
    @T.prim_func
    def add(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(3)


@pytest.fixture
def runner():
    made = LocalRunner(evaluator_config=EvaluatorConfig(number=1, min_repeat_ms=0))
    yield made
    made.close()


def tune(mod, tmp_path, runner, **options):
    chosen = {"max_trials_global": 6, "num_trials_per_iter": 3, "strategy": "replay-trace", "cost_model": "none"}
    chosen |= {"seed": 1, "num_tuning_cores": 2, "runner": runner}
    if chosen["cost_model"] == "none":
        chosen["cost_model"] = None
    return tune_tir(mod, LLVM, tmp_path, **(chosen | options))


def test_a_product_by_rules(tmp_path, runner):
    with Profiler() as profiler:
        database = tune(Product, tmp_path, runner)
    assert isinstance(database, JSONDatabase) and len(database) == 6
    schedule = compile_tir(JSONDatabase(work_dir=tmp_path), Product, LLVM)
    assert schedule is not None and len(schedule.trace) > 3
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 4, (32, 32)).astype("float32") for _ in range(2))
    c = np.empty_like(a)
    tw.compile(schedule, LLVM)(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
    times = profiler.get()
    for name in (
        "InitializeTask",
        "SendToBuilder",
        "SendToRunner",
        "JoinRunnerFutures",
        "MeasureCallback/AddToDatabase",
    ):
        assert 0 <= times[name] <= times["Total"]
    assert compile_tir(database, Two["add"], LLVM) is None


def test_a_module_of_one_function_is_found_as_either(tmp_path, runner):
    @tw.script.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
            for i in range(128):
                with T.block("B"):
                    vi = T.axis.spatial(128, i)
                    B[vi] = A[vi] * 2.0

    database = tune(Module, tmp_path, runner)
    assert compile_tir(database, Module, LLVM) is not None
    assert compile_tir(database, Module["main"], LLVM) is not None


def test_the_same_seed_gives_the_same_candidates(tmp_path, runner):
    traces = []
    for run in ("first", "second"):
        database = tune(Product, tmp_path / run, runner, database="memory")
        traces.append([record.trace.as_json() for record in database.get_all_tuning_records()])
    assert traces[0] == traces[1]
    other = tune(Product, tmp_path / "third", runner, database="memory", seed=2)
    assert [record.trace.as_json() for record in other.get_all_tuning_records()] != traces[0]


@pytest.mark.parametrize("measures", ["a pipeline", "a runner"])
def test_records_say_who_measured(tmp_path, measures):
    own = {} if measures == "a pipeline" else {"builder": ms.LocalBuilder(), "runner": LocalRunner(timeout_sec=5)}
    database = tune_tir(Product, LLVM, str(tmp_path), 2, database="sqlite", strategy="replay-func", **own)
    records = database.get_all_tuning_records()
    assert {record.origin for record in records} == {Origin.here()} and len(records) == 2
    pruned = SQLiteDatabase(tmp_path / "pruned.db")
    database.dump_pruned(pruned)
    assert [record.origin for record in pruned.get_all_tuning_records()] == [Origin.here()]


def test_a_pipeline_measures_as_often_as_the_runner_in_its_place(tmp_path):
    config = EvaluatorConfig(number=5, repeat=3, min_repeat_ms=2)
    database = tune(Product, tmp_path, LocalRunner(evaluator_config=config), database="memory")
    records = database.get_all_tuning_records()
    assert len(records) == 6 and {len(record.run_secs) for record in records} == {3}


def test_a_subclass_of_the_runner_is_called(tmp_path):
    class Counting(LocalRunner):
        seen = 0

        def run(self, runner_inputs):
            self.seen += len(runner_inputs)
            return super().run(runner_inputs)

    counting = Counting(evaluator_config=EvaluatorConfig(number=1, min_repeat_ms=0))
    database = tune(Product, tmp_path, counting, database="memory")
    counting.close()
    assert counting.seen == len(database) == 6


def test_records_of_others_say_what_those_said(tmp_path):
    class Elsewhere(ms.Runner):
        def run(self, runner_inputs):
            found = ms.RunnerResult([1.0], None, origin=Origin('{"machine":"aarch64"}', ""))
            futures = [ms.RunnerFuture(lambda: True, lambda: found) for _ in runner_inputs]
            return [*futures[:-1], ms.RunnerFuture(lambda: True, lambda: ms.RunnerResult([2.0], None))]

    database = tune_tir(Product, LLVM, str(tmp_path), 2, database="sqlite", strategy="replay-func", runner=Elsewhere())
    hosts = {record.mean(): record.origin.host for record in database.get_all_tuning_records()}
    assert hosts == {1.0: '{"machine":"aarch64"}', 2.0: ""}


def test_spaces_of_each_function(tmp_path, runner):
    seen = []

    def lanes(sch: tw.Schedule) -> None:
        seen.append(list(sch.mod.functions))
        (i,) = sch.get_loops(sch.get_block("B"))
        sch.vectorize(sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=16))[1])

    only_add = {"scale": None}
    database = tune(
        Two, tmp_path, runner, space=lanes, special_space=only_add, strategy="replay-func", database="sqlite"
    )
    assert isinstance(database, SQLiteDatabase) and len(database) == 6
    assert compile_tir(database, Two["add"], LLVM) is not None
    assert compile_tir(database, Two["scale"], LLVM) is None
    both = tune(Two, tmp_path, runner, space=lanes, strategy="replay-func", database="memory", max_trials_global=12)
    assert len({record.workload.shash for record in both.get_all_tuning_records()}) == 2
    with pytest.raises(tw.ArgumentError) as error:
        tune(Two, tmp_path, runner, space=lanes, special_space={"add": None, "scale": None})
    assert error.value.code == "tune/no-task"


def test_by_default_candidates_are_built_while_others_are_measured(tmp_path, monkeypatch):
    """Two tasks of a module, each in processes of its own that end with the session."""

    def none(*args, **kwargs):
        raise AssertionError("the pipeline does without")

    from tilewright.meta_schedule import measuring_pipeline

    monkeypatch.setattr(measuring_pipeline, "LocalBuilder", none)
    lanes, make = [], measuring_pipeline._lane_of
    monkeypatch.setattr(measuring_pipeline, "_lane_of", lambda *given: lanes.append(make(*given)) or lanes[-1])
    options = {"num_trials_per_iter": 4, "strategy": "guided", "seed": 1, "cost_model": "none"}
    with Profiler() as profiler:
        database = tune_tir(Two, LLVM, tmp_path, 16, **options)
    assert len(database) >= 2 and all(record.run_secs for record in database.get_all_tuning_records())
    assert len(lanes) == 2 and all(lane.pipeline.pids == [] for lane in lanes)
    assert "StartPipeline" in profiler.get()
    schedule = compile_tir(database, Two["add"], LLVM)
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel_of(tw.compile(schedule.mod, LLVM))(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_programs_without_constant_sizes_go_to_a_builder_and_a_runner(tmp_path, monkeypatch):
    from tilewright.meta_schedule import measuring_pipeline

    @T.prim_func
    def symbolic(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    used = []
    monkeypatch.setattr(
        measuring_pipeline.LocalBuilder,
        "build",
        lambda self, inputs: used.append(len(inputs)) or [ms.BuilderResult(None, "not today") for _ in inputs],
    )
    space = ms.ScheduleFn(lambda sch: None)
    space.schedule_rules, space.postprocs, space.mutators = [], [], []
    tune_tir(symbolic, LLVM, tmp_path, 2, strategy="replay-trace", cost_model="none", space=space, seed=1)
    assert used and sum(used) >= 2


def test_a_postprocessor_that_raises_is_told(tmp_path, caplog):
    class Broken(ms.Postproc):
        def initialize(self, context): ...

        def apply(self, sch):
            raise ValueError("a mistake of mine")

    space = ms.ScheduleFn(lambda sch: None)
    space.schedule_rules, space.postprocs, space.mutators = [], [Broken()], []
    tune_tir(Two["add"], LLVM, tmp_path, 4, strategy="evolutionary", cost_model="random", space=space)
    assert "x postproc/exception (" in caplog.text and "ValueError: a mistake of mine" in caplog.text


@pytest.mark.parametrize("strategy", ["evolutionary", "guided", "replay-trace", "replay-func"])
def test_a_task_without_candidates_says_why(tmp_path, caplog, strategy):
    class Never(ms.Postproc):
        def initialize(self, context): ...

        def apply(self, sch):
            return False

    class Raises(Never):
        def apply(self, sch):
            raise RuntimeError("not this one")

    for postproc, told in ((Never(), r"\d+ x Never\n"), (Raises(), r"\d+ x postproc/exception \(.*not this one")):
        space = ms.ScheduleFn(lambda sch: None, sch_rules=[], postprocs=[postproc], mutator_probs={})
        database = tune_tir(Two["add"], LLVM, tmp_path, 4, strategy=strategy, cost_model="random", space=space)
        assert len(database) == 0
        found = re.search(f"ends without a trial: its space has no valid point: {told}", caplog.text, re.DOTALL)
        assert found is not None, caplog.text


def test_what_leaves_sizes_open_is_told_where_it_is_tuned(tmp_path, caplog):
    @T.prim_func
    def double(a: T.handle, b: T.handle):
        n = T.int32()
        A, B = T.match_buffer(a, (n,)), T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * 2.0

    tune_tir(double, LLVM, tmp_path, 4, strategy="replay-trace", cost_model="random")
    assert re.search(r"x DisallowDynamicLoop\n  hint: the program leaves sizes open: tw.tune\(", caplog.text)


class NotToBegin:
    """Fails for one task, when it is told of it."""

    def initialize(self, context):
        if "add" in context.task_name:
            raise KeyError("nothing known of it")


class PostprocNotToBegin(NotToBegin, ms.Postproc):
    def apply(self, sch):
        return True


class RuleNotToBegin(NotToBegin, ms.ScheduleRule):
    def apply(self, sch, block):
        return [sch]


class MutatorNotToBegin(NotToBegin, ms.Mutator):
    def apply(self, trace, seed):
        return None


@pytest.mark.parametrize(
    "parts",
    [
        {"postprocs": [PostprocNotToBegin()]},
        {"sch_rules": [RuleNotToBegin()]},
        {"mutator_probs": {MutatorNotToBegin(): 1.0}},
    ],
    ids=lambda parts: next(iter(parts)),
)
def test_a_part_that_fails_at_its_beginning_ends_one_task(tmp_path, caplog, runner, parts):
    chosen = {"sch_rules": [], "postprocs": [], "mutator_probs": {}} | parts
    database = tune(Two, tmp_path, runner, space=ms.PostOrderApply(**chosen))
    records = database.get_all_tuning_records()
    assert records and all("T.float32(3" in record.workload.mod.script() for record in records)
    assert "Task #0: 'add' ends: its space failed: KeyError: 'nothing known of it'" in caplog.text
    with pytest.raises(KeyError, match="nothing known of it"):  # there is no other task
        tune(tw.ir.IRModule({"add": Two["add"]}), tmp_path / "alone", runner, space=ms.PostOrderApply(**chosen))


@pytest.mark.parametrize("answer", [KeyError("x"), [1.0]], ids=["raises", "too few"])
def test_a_session_goes_on_without_a_model_that_fails(tmp_path, caplog, answer):
    class Broken(ms.CostModel):
        def update(self, context, candidates, results): ...

        def predict(self, context, candidates):
            if isinstance(answer, Exception):
                raise answer
            return answer

    def halves(sch):
        loop = sch.get_loops(sch.get_block("B"))[0]
        sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=64))

    options = {"space": halves, "strategy": "evolutionary", "cost_model": Broken(), "database": "memory", "seed": 1}
    database = tune_tir(Two["add"], LLVM, tmp_path, 3, **options)
    assert any(record.is_valid() for record in database.get_all_tuning_records())
    assert caplog.text.count("the search continues without its cost model, which failed: ") == 1
    assert (
        "KeyError: 'x'" if isinstance(answer, Exception) else "predict() of a 'Broken' gave [1.0] for"
    ) in caplog.text
    assert "Traceback" not in caplog.text


class RaisingExtractor(ms.FeatureExtractor):
    def extract_from(self, context, candidates):
        raise LookupError("no features today")


class NoLearner(ms.CostModel):
    predictions = 0

    def update(self, context, candidates, results):
        raise ZeroDivisionError("not to be learned")

    def predict(self, context, candidates):
        self.predictions += 1
        return np.zeros(len(candidates))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (NoLearner(), "ZeroDivisionError: not to be learned"),
        (ms.XGBModel(extractor=RaisingExtractor()), "LookupError: no features today"),
    ],
    ids=["model", "extractor"],
)
def test_a_model_that_cannot_learn_is_told_of_once(tmp_path, runner, caplog, model, told):
    def halves(sch):
        loop = sch.get_loops(sch.get_block("B"))[0]
        sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=64))

    chosen = {"strategy": "evolutionary", "cost_model": model, "space": halves, "num_trials_per_iter": 1}
    database = tune(Two["add"], tmp_path, runner, max_trials_global=4, **chosen)
    assert len(database) == 4
    assert caplog.text.count("the search continues without its cost model, which failed: ") == 1
    assert told in caplog.text and "test_tune_tir.py" in caplog.text and "Traceback" not in caplog.text


def test_a_rule_that_raises_is_told_with_its_line(tmp_path, caplog):
    class Broken(ms.ScheduleRule):
        def apply(self, sch, block):
            raise RuntimeError("my bug")

    space = ms.PostOrderApply(sch_rules=[Broken()], postprocs=[], mutator_probs={})
    with pytest.raises(RuntimeError, match="my bug"):  # there is no other task
        tune_tir(Two["add"], LLVM, tmp_path, 2, space=space, strategy="replay-trace", cost_model="none")
    assert "its space failed: RuntimeError: my bug\n" in caplog.text and "test_tune_tir.py" in caplog.text
    assert '            raise RuntimeError("my bug")' in caplog.text and "Traceback" not in caplog.text


def test_programs_are_normalized():
    module = normalize_module(Two["add"])
    assert list(module.functions) == ["main"]


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.search.test_tune_tir import *

if __name__ == "__main__":
    database = tune_tir(
        Product, LLVM, {folder!r}, 10000, num_trials_per_iter=4, strategy="replay-trace", cost_model="none", seed=1
    )
    print("kept", len(database), flush=True)
"""


def processes_with(mark: str) -> list[int]:
    """Processes that were started with that text in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (place / "environ").read_text(errors="replace"):
                found.append(int(place.name))
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_sessions(tmp_path, how):
    """Ctrl-C ends a session in good order; after both, what was measured is there, and no process is."""
    script, mark = tmp_path / "session.py", f"TILEWRIGHT_TEST_MARK={tmp_path}"
    script.write_text(SCRIPT.format(root=str(Path(__file__).parents[2]), folder=str(tmp_path / "work")))
    name, _, value = mark.partition("=")
    session = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env={**os.environ, name: value}
    )
    records = tmp_path / "work" / "database_tuning_record.json"
    until = time.monotonic() + 60
    while time.monotonic() < until and not (records.exists() and records.read_text().count("\n") >= 4):
        time.sleep(0.05)
    session.send_signal(how)
    printed, _ = session.communicate(timeout=60)
    database = JSONDatabase(work_dir=tmp_path / "work")
    assert len(database) >= 4
    if how == signal.SIGINT:
        assert session.returncode == 0 and printed == f"kept {len(database)}\n"
        log = (tmp_path / "work" / "logs" / "tvm.meta_schedule.logging.task_scheduler.log").read_text()
        assert "interrupted; what was measured is kept" in log
    while time.monotonic() < until + 10 and processes_with(mark):
        time.sleep(0.05)
    assert processes_with(mark) == []
    assert compile_tir(database, Product, LLVM) is not None


def test_results_that_a_ctrl_c_meets_on_their_way_are_kept(tmp_path):
    """Whoever is told of a batch before the database is."""
    heard = []

    class Hears(ms.MeasureCallback):
        def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
            heard.append(len(runner_results))
            signal.raise_signal(signal.SIGINT)

    recorded = Recorded()
    database = tune_tir(
        Product,
        LLVM,
        tmp_path,
        64,
        num_trials_per_iter=4,
        builder=recorded,
        runner=recorded,
        measure_callbacks=[Hears(), ms.AddToDatabase()],
        strategy="replay-trace",
        cost_model="none",
        seed=1,
    )
    assert heard == [4] and len(database) == 4


class Recorded(ms.Builder, ms.Runner):
    """Measures nothing: the time of a program follows from its text; every seventh fails."""

    def __init__(self):
        self.measured = []

    def build(self, build_inputs):
        return [ms.BuilderResult(each.mod.script(), None) for each in build_inputs]

    def run(self, runner_inputs):
        return [self.future(each.artifact_path) for each in runner_inputs]

    def future(self, script):
        number = int.from_bytes(hashlib.blake2b(script.encode(), digest_size=4).digest())
        self.measured.append(script)
        result = (
            ms.RunnerResult(None, "run_crash: signal 11") if number % 7 == 0 else ms.RunnerResult([1 + number], None)
        )
        return ms.RunnerFuture(lambda: True, lambda: result)


class Stream(ms.MeasureCallback):
    """What was told of, in order; interrupts as Ctrl-C does."""

    def __init__(self, until=1000):
        self.seen, self.until = [], until

    def apply(self, scheduler, task_id, candidates, built, results):
        self.seen += [(str(c.sch.trace), r.run_secs, r.error_msg) for c, r in zip(candidates, results, strict=True)]
        if len(self.seen) >= self.until:
            raise KeyboardInterrupt


def recorded_session(folder, parts, until=1000, **options):
    stream = Stream(until)
    evolution = ms.EvolutionarySearch(population_size=24, init_min_unmeasured=12, genetic_num_iters=2)
    if options.get("strategy", "evolutionary") == "evolutionary":
        options["strategy"] = evolution
    chosen = {"cost_model": "xgb", "seed": 5, "num_trials_per_iter": 6, **options}
    space = ms.PostOrderApply()
    callbacks = ["add-to-database", "update-cost-model", stream]
    database = tune_tir(
        Product, LLVM, folder, 30, space=space, builder=parts, runner=parts, measure_callbacks=callbacks, **chosen
    )
    return stream.seen, database


@pytest.mark.parametrize(
    ("strategy", "database"),
    [("evolutionary", "json"), ("evolutionary", "sqlite"), ("evolutionary", "memory"), ("replay-trace", "json")],
)
def test_an_interrupted_session_goes_on_with_the_same_candidates(tmp_path, database, strategy):
    options = {"database": database, "strategy": strategy}
    whole, _ = recorded_session(tmp_path / "whole", Recorded(), **options)
    parts, last = Recorded(), 0
    for until in (6, 18):
        seen, _ = recorded_session(tmp_path / "parts", parts, until, **options)
        assert seen == whole[: len(seen)] and last < len(seen) < len(whole)
        assert len(parts.measured) <= len(seen) + 6  # the batch under way
        last = len(seen)
    seen, kept = recorded_session(tmp_path / "parts", parts, **options)
    assert seen == whole and len(whole) == 30
    assert len(kept) == 30 and len(parts.measured) == 30
    again, kept = recorded_session(tmp_path / "parts", parts, **options)
    assert again == whole and len(parts.measured) == 30 and len(kept) == 30
    longer, _ = recorded_session(tmp_path / "parts", parts, **options, seed=6)
    assert longer != whole and len(parts.measured) == 60


def test_harmed_notes(tmp_path):
    """What is not known any more is measured, as a candidate like others."""
    whole, _ = recorded_session(tmp_path / "whole", Recorded())
    parts = Recorded()
    recorded_session(tmp_path / "parts", parts, until=12)
    (notes,) = (tmp_path / "parts" / "sessions").glob("*.jsonl")
    lines = notes.read_bytes().splitlines(keepends=True)
    notes.write_bytes(b"".join([b"\xff" + lines[0], *lines[1:-1], lines[-1][:20]]))
    seen, kept = recorded_session(tmp_path / "parts", parts)
    assert len(seen) == 30 and len(kept) >= 30 and {each[0] for each in seen} != {each[0] for each in whole}


def test_without_a_seed_a_session_goes_on_where_the_last_was_interrupted(tmp_path):
    parts = Recorded()
    first, _ = recorded_session(tmp_path, parts, until=12, seed=None)
    second, _ = recorded_session(tmp_path, parts, seed=None)
    assert second[: len(first)] == first and len(parts.measured) == 30
    third, _ = recorded_session(tmp_path, parts, seed=None)  # nothing was interrupted: a seed of its own
    assert third != second and len(parts.measured) > 30


def test_the_next_batch_is_built_while_the_last_one_is_measured(tmp_path, monkeypatch):
    from tilewright.meta_schedule.task_session import TaskScheduler

    seen, sample = [], TaskScheduler._sample_batch

    def watched(self, task_id):
        task = self.tasks[task_id]
        under_way = len(task.runner_futures or ())
        batch = sample(self, task_id)
        seen.append((len(task.latency_ms), under_way, None if batch is None else len(batch[0])))
        return batch

    monkeypatch.setattr(TaskScheduler, "_sample_batch", watched)
    stream = Stream()
    options = {"strategy": "replay-trace", "cost_model": "none", "seed": 1, "num_trials_per_iter": 8}
    database = tune_tir(Product, LLVM, tmp_path, 20, measure_callbacks=["add-to-database", stream], **options)
    assert len(database) == 20 and len(stream.seen) == 20
    assert seen == [(0, 0, 8), (6, 2, 8), (14, 2, 4)]


@pytest.mark.parametrize("kind", [ms.ScheduleRule, ms.Postproc, ms.Mutator])
def test_parts_without_their_base_say_so(kind):
    class Mine(kind):
        def __init__(self):
            pass

    parts = {"sch_rules": [], "postprocs": [], "mutator_probs": {}}
    if kind is ms.Mutator:
        parts["mutator_probs"] = {Mine(): 1.0}
    else:
        parts["sch_rules" if kind is ms.ScheduleRule else "postprocs"] = [Mine()]
    with pytest.raises(tw.ArgumentError, match=r"Mine.__init__\(\) does not call that of its base class"):
        ms.PostOrderApply(**parts)


def quick(mod, work_dir, **options):
    chosen = {"strategy": "replay-trace", "cost_model": "none", "num_trials_per_iter": 2, "seed": 1}
    return tune_tir(mod, LLVM, str(work_dir), 2, **(chosen | options))


def test_tune_finds_what_tune_tir_measured_and_the_other_way_round(tmp_path):
    program = matmul(16, 16, 16)
    quick(program, tmp_path, database="sqlite")
    kernel = tw.compile(program, target=LLVM, database=tmp_path / "database.db")
    assert kernel.schedule == "recorded"
    (workload,) = read_database(tmp_path / "database.db").workloads()
    assert workload.name == "matmul"
    tw.tune(program, trials=2, database=tmp_path / "other.db", target=str(LLVM), progress=None)
    other = SQLiteDatabase(tmp_path / "other.db")
    assert compile_tir(other, program, LLVM) is not None
    assert other.query(normalize_module(program), LLVM) is not None
    before = len(other)
    quick(program, tmp_path, database=other)
    assert len(read_database(tmp_path / "other.db").workloads()) == 1 and len(other) == before + 2
    # And what both have measured there is gone on with by either.
    again = tw.tune(program, trials=3, database=tmp_path / "other.db", target=str(LLVM), progress=None)
    assert again.progress.earlier == 2 and again.kernel is not None


def test_modules_whose_only_function_has_a_name(tmp_path):
    module = tw.ir.IRModule({"product": matmul(16, 16, 16)})
    found = tw.tune(module, trials=2, database=tmp_path / "records.db", target=str(LLVM), progress=None)
    assert found.schedule.mod["product"] is not None
    database = SQLiteDatabase(tmp_path / "records.db")
    assert compile_tir(database, module, LLVM) is not None
    assert compile_tir(database, module["product"], LLVM) is not None
    assert tw.compile(module["product"], target=LLVM, database=tmp_path / "records.db").schedule == "recorded"


def test_each_function_of_a_module_gets_its_schedule(tmp_path, runner):
    database = tune(Two, tmp_path, runner)
    found = compile_tir(database, Two, LLVM)
    assert set(found.mod.functions) == {"add", "scale"}
    for name in ("add", "scale"):
        own = compile_tir(database, Two[name], LLVM)
        tw.ir.assert_structural_equal(found.mod[name], own.mod["main"].without_attr("tir.noalias"))
    kernels = tw.compile(found, LLVM)
    a, b = np.arange(64, dtype="float32"), np.empty(64, "float32")
    kernels["scale"](a, b)
    np.testing.assert_array_equal(b, 3 * a)
    # One that has none stays as it is; where none has one there is nothing.
    three = tw.ir.IRModule({**Two.functions, "product": matmul(16, 16, 16)})
    found = compile_tir(database, three, LLVM)
    tw.ir.assert_structural_equal(found.mod["product"], three["product"])
    assert not tw.ir.structural_equal(found.mod["add"], three["add"])
    assert compile_tir(database, tw.ir.IRModule({"a": matmul(8, 8, 8), "b": matmul(4, 4, 4)}), LLVM) is None


@pytest.mark.parametrize("place", ["text", "path"])
def test_a_database_by_its_path(tmp_path, place):
    path = tmp_path / "records.db"
    database = quick(Product, tmp_path / "work", database=str(path) if place == "text" else path)
    assert isinstance(database, SQLiteDatabase) and len(SQLiteDatabase(path)) == 2
    assert not (tmp_path / "work" / "database.db").exists()


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ({"database": "postgres"}, "database/server-address", "postgresql://user@host/name"),
        ({"database": "union"}, "database/read-only", "unions store no records"),
        ({"database": "ordered_union"}, "database/read-only", "unions store no records"),
        ({"database": "sqlit"}, "database/database-kind", "did you mean sqlite"),
        ({"database": 3}, "arguments/kind", "the path of a file"),
        ({"special_space": {"mian": None}}, "tune/special-space", "did you mean main"),
        ({"measure_callbacks": [print]}, "callback/kind", r"holds <built-in function print>, .*\n.*\[\] for"),
        ({"measure_callbacks": ["default", ms.AddToDatabase]}, "callback/kind", "holds the class AddToDatabase"),
        ({"measure_callbacks": None}, "callback/kind", "holds None"),
    ],
)
def test_what_is_refused_before_anything_is_written(tmp_path, options, code, text):
    with pytest.raises(tw.ArgumentError, match=text) as error:
        quick(Product, tmp_path / "work", **options)
    assert error.value.code == code and not (tmp_path / "work").exists()
