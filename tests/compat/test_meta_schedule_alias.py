"""Parts of a search in Python, as scripts for TVM write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.compat.tvm  # noqa: F401  isort: skip
import tvm
from tvm import meta_schedule as ms
from tvm.meta_schedule.runner.utils import alloc_argument_common, run_evaluator_common
from tvm.meta_schedule.testing.dummy_object import DummyBuilder, DummyRunner
from tvm.meta_schedule.testing.local_rpc import LocalRPC
from tvm.script import tir as T


@tvm.script.ir_module
class Product:
    @T.prim_func
    def main(a: T.handle, b: T.handle, c: T.handle) -> None:
        T.func_attr({"global_symbol": "main"})
        A = T.match_buffer(a, (64, 64), "float32")
        B = T.match_buffer(b, (64, 64), "float32")
        C = T.match_buffer(c, (64, 64), "float32")
        for i, j, k in T.grid(64, 64, 64):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def doubled(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(16):
        B[i] = A[i] * T.float32(2)


def tiles(sch: tvm.tir.Schedule) -> None:
    i, j, _ = sch.get_loops(sch.get_block("product"))
    sch.split(i, sch.sample_perfect_tile(i, n=2))
    sch.split(j, sch.sample_perfect_tile(j, n=2))


def record_of(database: Any, seconds: float) -> Any:
    sch = tvm.tir.Schedule(Product)
    tiles(sch)
    workload = database.commit_workload(Product)
    infos = ms.arg_info.ArgInfo.from_entry_func(Product)
    record = ms.database.TuningRecord(sch.trace, workload, [seconds], tvm.target.Target("llvm"), infos)
    database.commit_tuning_record(record)
    return record


@ms.derived_object
class OwnDatabase(ms.database.PyDatabase):
    def __init__(self):
        super().__init__()
        self.records = []
        self.workloads = []

    def has_workload(self, mod):
        return any(tvm.ir.structural_equal(mod, known.mod) for known in self.workloads)

    def commit_workload(self, mod):
        for known in self.workloads:
            if tvm.ir.structural_equal(mod, known.mod):
                return known
        self.workloads.append(ms.database.Workload(mod))
        return self.workloads[-1]

    def commit_tuning_record(self, record):
        self.records.append(record)

    def get_top_k(self, workload, top_k):
        return sorted(self.records, key=lambda record: sum(float(s) for s in record.run_secs))[:top_k]

    def get_all_tuning_records(self):
        return self.records

    def __len__(self):
        return len(self.records)


def test_database_in_python():
    database = OwnDatabase()
    record_of(database, 2.0)
    best = record_of(database, 1.0)
    target = tvm.target.Target("llvm")
    assert len(database) == 2 and len(database.records) == 2
    assert database.query_tuning_record(Product, target, "main") is best
    sch = database.query_schedule(Product, target, "main")
    tvm.ir.assert_structural_equal(sch.mod, database.query_ir_module(Product, target, "main"))
    with database:
        assert ms.database.Database.current() is database
    assert isinstance(database, ms.database.Database)


def test_queries_that_are_overridden():
    @ms.derived_object
    class Answering(ms.database.PyDatabase):
        def query_schedule(self, mod, target, workload_name):
            return (mod, target, workload_name)

        def query_ir_module(self, mod, target, workload_name):
            return super().query_ir_module(mod, target, workload_name)

        def has_workload(self, mod):
            return False

    database = Answering()
    assert database.query(Product, "llvm", workload_name="w", kind="schedule") == (Product, "llvm", "w")
    assert database.query(Product, "llvm", workload_name="w", kind="record") is None
    with pytest.raises(tvm.TVMError, match="PyDatabase's GetTopK method not implemented!"):
        database.get_top_k(None, 1)


def contexts(count: int) -> list[Any]:
    return [
        ms.TuneContext(
            Product,
            target=tvm.target.Target("llvm -num-cores=1"),
            space_generator=ms.space_generator.ScheduleFn(tiles, sch_rules=[], postprocs=[], mutator_probs={}),
            search_strategy="replay-trace",
            task_name=f"task {number}",
            rand_state=42,
        )
        for number in range(count)
    ]


def tune(scheduler: Any, tasks: list[Any], database: Any, **options: Any) -> None:
    scheduler.tune(
        tasks=tasks,
        task_weights=[1.0] * len(tasks),
        builder=DummyBuilder(),
        runner=DummyRunner(),
        database=database,
        measure_callbacks=[ms.measure_callback.AddToDatabase()],
        cost_model=None,
        **{"max_trials_global": 40, "max_trials_per_task": 7, "num_trials_per_iter": 3, **options},
    )


@pytest.mark.parametrize("kind", ["round-robin", "gradient"])
def test_schedulers_with_dummies(kind):
    database = ms.database.MemoryDatabase()
    tune(ms.task_scheduler.create(kind), contexts(3), database)
    assert len(database) == 21
    best = database.get_top_k(database.commit_workload(Product), 100)
    assert [record.mean() for record in best] == sorted(record.mean() for record in best)


def test_scheduler_in_python():
    @ms.derived_object
    class Own(ms.task_scheduler.PyTaskScheduler):
        picked: list = []  # noqa: RUF012

        def next_task_id(self):
            outer = self._outer()
            for task_id, task in enumerate(outer.tasks_):
                if not task.is_terminated:
                    outer.touch_task(task_id)
                    if task.runner_futures is not None:
                        outer.join_running_task(task_id)
                    self.picked.append(task_id)
                    return task_id
            return -1

    scheduler, database = Own(), ms.database.MemoryDatabase()
    tune(scheduler, contexts(2), database)
    assert len(database) == 14 and set(scheduler.picked) == {0, 1}
    assert scheduler.database_ is database and scheduler.remaining_tasks_ == 0

    @ms.derived_object
    class Nothing(ms.task_scheduler.PyTaskScheduler):
        pass

    with pytest.raises(tvm.TVMError, match="PyTaskScheduler's NextTaskId method not implemented!"):
        Nothing().next_task_id()


def test_runners_builders_and_callbacks_in_python():
    seen = []

    @ms.derived_object
    class Builder(ms.builder.PyBuilder):
        def build(self, build_inputs):
            return [ms.builder.BuilderResult("somewhere", None) for _ in build_inputs]

    @ms.derived_object
    class Future(ms.runner.PyRunnerFuture):
        def __init__(self, seconds):
            super().__init__()
            self.seconds = seconds

        def done(self):
            return True

        def result(self):
            return ms.runner.RunnerResult([self.seconds], None)

    @ms.derived_object
    class Runner(ms.runner.PyRunner):
        def run(self, runner_inputs):
            return [Future(1.5) for _ in runner_inputs]

    @ms.derived_object
    class Callback(ms.measure_callback.PyMeasureCallback):
        def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
            seen.extend(result.run_secs for result in runner_results)

    ms.task_scheduler.RoundRobin().tune(
        contexts(1), [1.0], 4, 4, 2, Builder(), Runner(), [Callback()], ms.database.MemoryDatabase(), None
    )
    assert seen == [[1.5]] * 4
    assert str(Callback()).startswith("meta_schedule.Callback(0x")
    for part in (Builder(), Runner(), Callback()):
        assert isinstance(part, (ms.builder.Builder, ms.runner.Runner, ms.measure_callback.MeasureCallback))


def test_what_refuses():
    with pytest.raises(TypeError, match="Relax"):
        ms.relax_integration.tune_relax(None, None)
    task = ms.ExtractedTask("name", Product, tvm.target.Target("llvm"), [Product], 3)
    assert (task.task_name, task.weight) == ("name", 3)
    with pytest.raises(tvm.TVMError):
        LocalRPC()


def test_modules_of_parts():
    from tvm.meta_schedule.builder.builder import PyBuilder
    from tvm.meta_schedule.measure_callback.update_cost_model import UpdateCostModel
    from tvm.meta_schedule.task_scheduler.gradient_based import GradientBased

    assert PyBuilder is ms.builder.PyBuilder and UpdateCostModel is ms.measure_callback.UpdateCostModel
    assert GradientBased is ms.task_scheduler.GradientBased


def test_the_best_records_as_numbers_with_values():
    database = ms.database.MemoryDatabase()
    for seconds in (2.0, 1.0, 1e10, 3.0):
        record_of(database, seconds)
    workload = database.commit_workload(Product)
    assert [[s.value for s in record.run_secs] for record in database.get_top_k(workload, 2)] == [[1.0], [2.0]]
    assert str(record_of(database, 1.5).run_secs) == "[1.5]"


def test_the_trace_of_a_record_reads_the_same_after_json(words_of_tvm):
    record = record_of(ms.database.MemoryDatabase(), 1.0)
    again = ms.database.TuningRecord.from_json(record.as_json(), record.workload)
    assert str(again.trace) == str(record.trace)
    assert [info.as_json() for info in again.args_info] == [info.as_json() for info in record.args_info]


def test_small_names_of_the_search() -> None:
    import tilewright

    assert ms.space_generator.SpaceGenerator.create("union").generate_design_space(Product) == []
    union = ms.space_generator.SpaceGeneratorUnion([tiles, ms.space_generator.ScheduleFn(tiles)])
    assert len(union.generate_design_space(Product)) == 2
    for name in ("cost_model", "mlp_model", "random_model", "xgb_model"):
        assert getattr(ms.cost_model, name).__name__.endswith(name)
    assert ms.cost_model.metric.max_curve([1.0, 3.0, 2.0, 4.0]).tolist() == [1.0, 3.0, 3.0, 4.0]
    with pytest.raises(AttributeError):
        _ = ms.cost_model.of_nobody
    future = ms.runner.LocalRunnerFuture(res=[0.5])
    assert future.done() and future.result().run_secs == [0.5]
    assert ms.runner.local_runner.LocalRunnerFuture(error_message="lost").result().error_msg == "lost"
    with pytest.raises(ValueError, match="Either res or error_message"):
        ms.runner.LocalRunnerFuture()
    for prefix in ("", "tvm."):
        normalize = tvm.get_global_func(f"{prefix}meta_schedule.normalize_mod")
        assert list(normalize(Product["main"]).functions) == ["main"]
        assert tvm.get_global_func(f"{prefix}meta_schedule.tune_tir") is not None
    assert tilewright.meta_schedule.utils.fork_seed is ms.utils.fork_seed


def test_tuning_by_name(tmp_path: Any) -> None:
    tune = tvm.get_global_func("tvm.meta_schedule.tune_tir")
    parts = (None, 4, DummyBuilder(), DummyRunner(), "memory", "none", [ms.measure_callback.AddToDatabase()])
    database = tune(Product, "llvm", str(tmp_path), 4, *parts, "round-robin", tiles, "replay-trace")
    assert len(database) == 4


def test_options_of_evolution_can_be_read() -> None:
    strategy = ms.search_strategy.create("evolutionary", population_size=64)
    assert (strategy.population_size, strategy.eps_greedy) == (64, 0.05)
    assert ms.TuneContext(search_strategy="evolutionary").search_strategy.population_size == 512
    with pytest.raises(TypeError, match="population"):
        ms.search_strategy.EvolutionarySearch(population=64)


def test_runners_of_the_user_share_functions() -> None:
    def fill(array: Any) -> None:
        array.copyfrom(np.ones(array.shape))

    sets = alloc_argument_common(fill, tvm.cpu(), [["TENSOR", "float32", [16]], ["TENSOR", "float32", [16]]], 2)
    assert [[array.sum() for array in arrays] for arrays in sets] == [[16, 16], [16, 16]]
    with pytest.raises(NotImplementedError, match="SCALAR"):
        alloc_argument_common(fill, tvm.cpu(), [["SCALAR", 1]], 1)
    kernel = tvm.build(doubled, target="llvm")
    costs = run_evaluator_common(kernel, tvm.cpu(), ms.runner.EvaluatorConfig(1, 3, 0), sets)
    assert len(costs) == 6 and min(costs) > 0
