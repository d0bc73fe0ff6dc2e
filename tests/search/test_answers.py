"""Parts of somebody's own that give the wrong kind of thing: told in words, and the session goes on where it can."""

from __future__ import annotations

import itertools
import math
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.search.programs import double

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.meta_schedule.post_optimization import descend
from tilewright.search.space_samples import run_space
from tilewright.support.user_lines import last_raise, place_of


def halves(sch: tw.Schedule) -> None:
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.vectorize(sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=64))[1])


class Giving(ms.Runner):
    """Its results are always the same."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def run(self, runner_inputs: Any) -> Any:
        return [ms.RunnerFuture(lambda: True, lambda: self.result) for _ in runner_inputs]


class Built(ms.Builder):
    def build(self, build_inputs: Any) -> Any:
        return [ms.BuilderResult("nowhere", None) for _ in build_inputs]


def session(folder: Path, **options: Any) -> tuple[ms.Database, list[str]]:
    """What was recorded, and why candidates failed."""
    errors = []

    class Reasons(ms.MeasureCallback):
        def apply(self, scheduler, task_id, candidates, builder_results, runner_results):  # type: ignore[no-untyped-def]
            errors.extend(str(b.error_msg or r.error_msg) for b, r in zip(builder_results, runner_results, strict=True))

    given: dict[str, Any] = {"runner": Giving(ms.RunnerResult([1.0], None)), "builder": Built(), "cost_model": None}
    given |= {"space": halves, "strategy": "replay-func", "database": "memory"}
    given |= {"measure_callbacks": [ms.AddToDatabase(), Reasons()]} | options
    given = {"max_trials_global": 2, "num_trials_per_iter": 2} | given
    found = ms.tune_tir(double, "llvm -num-cores=1", work_dir=folder, **given)
    return found, errors


@pytest.mark.parametrize("seconds", [[-1.0], [math.nan], [0.0], [math.inf], [1.0, math.nan], []])
def test_what_is_no_time_is_a_failed_candidate(tmp_path: Path, seconds: list[float]) -> None:
    database, errors = session(tmp_path, runner=Giving(ms.RunnerResult(seconds, None)))
    assert not any(record.is_valid() for record in database.get_all_tuning_records())
    workload = database.commit_workload(ms.normalize_module(double))
    assert database.get_top_k(workload, 1) == []
    said = "the runner gave neither times" if not seconds else "as the seconds of a call"
    assert len(errors) == 2 and all(said in error for error in errors)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runner": Giving(None)}, "the runner gave None, no RunnerResult"),
        ({"runner": Giving(ms.RunnerResult(None, 5))}, "5"),  # type: ignore[arg-type]
        (
            {"runner": type("R", (ms.Runner,), {"run": lambda self, inputs: [1] * len(inputs)})()},
            "a int, no RunnerFuture",
        ),
        ({"runner": type("R", (ms.Runner,), {"run": lambda self, inputs: None})()}, "the runner gave None, no list"),
        ({"runner": type("R", (ms.Runner,), {"run": lambda self, inputs: []})()}, "0 futures for 2 inputs"),
        ({"builder": type("B", (ms.Builder,), {"build": lambda self, inputs: [1, 2]})()}, "a int, no BuilderResult"),
        ({"builder": type("B", (ms.Builder,), {"build": lambda self, inputs: "x"})()}, "a str, no list of results"),
        (
            {"builder": type("B", (ms.Builder,), {"build": lambda self, inputs: [ms.BuilderResult(None, None)] * 2})()},
            "neither a file nor an error",
        ),
    ],
)
def test_what_is_no_result_is_a_failed_candidate(
    tmp_path: Path, options: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    many: Any = {"max_trials_global": 4, "space": eighths}
    _, errors = session(tmp_path, **many, **options)
    assert len(errors) == 4 and all(said in error for error in errors), errors
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    if said != "5":  # a failure that the runner tells of is no news
        (part,) = options
        (text,) = told  # once, and not for each candidate
        assert f"Task #0: 'main': {part}/answer: such candidates fail: the {part} " in text and said in text
        assert "\n  hint: " in text
    else:
        assert told == ["Task #0: 'main': no candidate was measured, and none is kept: 4 x not measured: 5"]


def eighths(sch: tw.Schedule) -> None:
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=4, max_innermost_factor=64))


class Raises(ms.Builder, ms.Runner):  # type: ignore[misc]
    """Builds and measures nothing."""

    def build(self, build_inputs: Any) -> Any:
        raise KeyError("no compiler")

    def run(self, runner_inputs: Any) -> Any:
        def result() -> Any:
            raise KeyError("no device")

        return [ms.RunnerFuture(lambda: True, result) for _ in runner_inputs]


@pytest.mark.parametrize(("part", "said"), [("builder", "no compiler"), ("runner", "no device")])
def test_what_a_part_raises_is_told_once(
    tmp_path: Path, part: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    options: Any = {part: Raises(), "space": eighths, "max_trials_global": 4}
    _, errors = session(tmp_path, **options)
    assert len(errors) == 4 and all("Traceback" in error and said in error for error in errors)
    (text,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"{part}/answer" in text and f"the {part} raised KeyError: '{said}'" in text
    assert f'raise KeyError("{said}")' in text and "Traceback" not in text  # the user's own line


class Endless(ms.Runner):
    def run(self, runner_inputs: Any) -> Any:
        return itertools.repeat(ms.RunnerFuture(lambda: True, lambda: ms.RunnerResult([1.0], None)))


def test_more_results_than_asked_for_are_not_counted(tmp_path: Path) -> None:
    _, errors = session(tmp_path, runner=Endless())
    assert len(errors) == 2 and all("the runner gave more than 2 futures for 2 inputs" in error for error in errors)


@pytest.mark.parametrize(
    ("builder", "runner", "code"),
    [
        (type("B", (ms.Builder,), {"build": lambda self, inputs: []})(), Giving(None), "builder/answer"),
        (Built(), type("R", (ms.Runner,), {"run": lambda self, inputs: []})(), "runner/answer"),
        (Built(), Giving(None), "runner/answer"),
    ],
)
def test_answers_after_a_session(
    tmp_path: Path, builder: Any, runner: Any, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    database, _ = session(tmp_path, space=eighths, seed=1)
    workload = database.commit_workload(ms.normalize_module(double))
    best = descend(database, workload, "llvm -num-cores=1", 4, builder, runner)
    assert best is not None and best.run_secs == [1.0] and len(database) == 6
    (text,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"'descent': {code}: such candidates fail: the {code.partition('/')[0]} gave" in text and "hint" in text


class Scheduler(ms.TaskScheduler):
    def __init__(self, choice: Any) -> None:
        super().__init__()
        self.choice = choice

    def next_task_id(self) -> Any:
        return self.choice


@pytest.mark.parametrize("choice", [99, None, "x", -2, True])
def test_a_task_that_is_not_there(tmp_path: Path, choice: Any) -> None:
    with pytest.raises(tw.ArgumentError, match=r"(?s)next_task_id\(\) gave .*tasks are 0 to 0") as error:
        session(tmp_path, task_scheduler=Scheduler(choice))
    assert error.value.code == "tune/task"


def test_a_task_whose_batch_is_under_way(tmp_path: Path) -> None:
    def many(sch: tw.Schedule) -> None:
        (i,) = sch.get_loops(sch.get_block("B"))
        sch.annotate(i, "n", sch.sample_categorical([*range(50)], [0.02] * 50))

    with pytest.raises(tw.ArgumentError, match=r"(?s)under way.*join_running_task") as error:
        session(tmp_path, task_scheduler=Scheduler(0), space=many, max_trials_global=8)
    assert error.value.code == "tune/task"


@pytest.mark.parametrize("answer", [5, ["x"], "x"])
def test_a_strategy_that_gives_no_candidates(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(tw.ArgumentError, match=r"(?s)generate_measure_candidates\(\) gave .*MeasureCandidate") as error:
        session(tmp_path, strategy=_strategy(answer))
    assert error.value.code == "tune/candidates"


def _strategy(answer: Any) -> ms.SearchStrategy:
    class Strategy(ms.SearchStrategy):
        def initialize(self, context: Any) -> None:
            pass

        def pre_tuning(self, *args: Any) -> None:
            pass

        def post_tuning(self) -> None:
            pass

        def generate_measure_candidates(self) -> Any:
            return answer

        def notify_runner_results(self, candidates: Any, results: Any) -> None:
            pass

        def clone(self) -> Any:
            return self

    return Strategy()


class Top(ms.MemoryDatabase):
    answer: Callable[[], Any]

    def get_top_k(self, workload: Any, top_k: int) -> Any:
        return type(self).answer()


@pytest.mark.parametrize("answer", [None, [1], "x"])
def test_a_database_that_gives_no_records(tmp_path: Path, answer: Any) -> None:
    kind = type("OfMine", (Top,), {"answer": staticmethod(lambda: answer)})
    with pytest.raises(tw.ArgumentError, match=r"get_top_k\(\) of a 'OfMine' gave a") as error:
        session(tmp_path, database=kind(), strategy="evolutionary")
    assert error.value.code == "database/answer"


@pytest.mark.parametrize("given", [3, "x", [1], ["a", None], np.array([1, 2]), object(), [double], {}])
def test_spaces_that_give_no_schedules(tmp_path: Path, given: Any) -> None:
    class Space(ms.SpaceGenerator):
        def generate_design_space(self, module: Any) -> Any:
            return given

        def clone(self) -> Any:
            return self

    for use in (
        lambda: tw.tune(double, space=Space(), trials=1, progress=None),
        lambda: session(tmp_path, space=Space()),
    ):
        with pytest.raises(tw.ArgumentError, match="of a 'Space' gave a '") as error:
            use()
        assert error.value.code == "space/answer" and "a list of schedules" in str(error.value.hint)


class Answering(ms.MemoryDatabase):
    """Gives something else than asked for."""

    def __init__(self, method: str, answer: Any) -> None:
        super().__init__()
        if method:
            setattr(self, method, lambda *_: answer)


@pytest.mark.parametrize("answer", [None, 3, [3], np.array([1.0])])
@pytest.mark.parametrize("method", ["commit_workload", "get_all_tuning_records", "get_top_k"])
def test_databases_that_give_something_else(tmp_path: Path, method: str, answer: Any) -> None:
    uses: dict[str, Callable[[], object]] = {
        "tune": lambda: tw.tune(double, trials=1, database=Answering(method, answer), progress=None),
        "tune_tir": lambda: session(tmp_path, database=Answering(method, answer), strategy="evolutionary"),
    }
    asked = {"commit_workload": ["tune", "tune_tir"], "get_all_tuning_records": ["tune"], "get_top_k": ["tune_tir"]}
    for name in asked[method]:
        with pytest.raises(tw.ArgumentError) as error:
            uses[name]()
        if error.value.code != "arguments/types":  # as the database itself says of its own answer
            assert error.value.code == "database/answer" and f"{method}() of a 'Answering' gave a '" in str(error.value)


ASKED = ["query_tuning_record", "query_schedule", "commit_workload", "get_top_k"]


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        *itertools.product(ASKED, [3, "x", [3], object(), np.array([1, 2]), double]),
        ("has_workload", np.array([True, False])),  # others are true or false
    ],
)
def test_databases_that_are_asked_by_a_compilation(tmp_path: Path, method: str, answer: Any) -> None:
    module = tw.ir.IRModule({name: double.with_attr("global_symbol", name) for name in ("f", "g")})

    def asked() -> ms.Database:
        database = Answering(method, answer)
        # What comes before is right.
        if method in ("commit_workload", "get_top_k"):
            database.has_workload = lambda _: True  # type: ignore[method-assign]
        return database

    uses: list[Callable[[], object]] = [
        lambda: tw.compile(double, database=asked()),
        lambda: tw.compile(module, database=asked()),
        lambda: tw.compile(double, database=ms.UnionDatabase(asked())),
        lambda: tw.compile(double, database=ms.OrderedUnionDatabase(ms.MemoryDatabase(), asked())),
        lambda: ms.compile_tir(asked(), double, "llvm"),
        lambda: ms.UnionDatabase(asked()).query_schedule(ms.normalize_module(double), "llvm"),
        lambda: asked().query_ir_module(ms.normalize_module(double), "llvm"),
    ]
    if method == "query_schedule":
        del uses[5], uses[2]  # which ask for records
    for use in uses:
        with pytest.raises(tw.ArgumentError, match="it gives ") as error:
            use()
        assert error.value.code == "database/answer"
        assert f"{method}() of a 'Answering' gave a '" in str(error.value)


@pytest.mark.parametrize("answer", [np.array([True, False]), np.array([])])
def test_answers_that_are_neither_true_nor_false(answer: Any) -> None:
    class Mask(ms.Postproc):
        def apply(self, sch: Any) -> Any:
            return answer

    for _ in range(2):  # an error that was left behind would show in the next call
        result = tw.tune(double, space=ms.ScheduleFn(halves, postprocs=[Mask()]), trials=1, progress=None)
        (reason,) = result.progress.refusals
        assert reason == "postproc/exception" and "ambiguous" in result.progress.refusals[reason][1]
    generator = ms.PostOrderApply(f_block_filter=lambda block: answer)
    with pytest.raises(ValueError, match="ambiguous"):
        ms.TuneContext(double, target="llvm", space_generator=generator).generate_design_space()


@pytest.mark.parametrize("part", ["schedule_rules", "sch_rules", "postprocs", "mutators", "mutator_probs"])
def test_parts_that_are_none(part: str) -> None:
    generator = ms.ScheduleFn(halves)
    given: Any = {"mutators": [(None, 1.0)], "mutator_probs": {None: 1.0}}.get(part, [None])
    with pytest.raises(tw.ArgumentError, match="s is not a list of") as error:
        setattr(generator, part, given)
    assert error.value.code == "search/parts"
    if part not in ("mutators", "schedule_rules"):
        with pytest.raises(tw.ArgumentError, match=f"{part} is not a list of"):
            ms.PostOrderApply(**{part: given})


class Fruitless:
    """Copies of it are nothing."""

    def clone(self) -> Any:
        return None


def test_clones_that_are_none() -> None:
    def parts() -> list[tuple[str, Any]]:
        rule = type("Rule", (Fruitless, ms.ScheduleRule), {"apply": lambda self, sch, block: [sch]})()
        postproc = type("Post", (Fruitless, ms.Postproc), {"apply": lambda self, sch: True})()
        mutator = type("Varies", (Fruitless, ms.Mutator), {"apply": lambda self, trace: None})()
        return [("schedule_rules", [rule]), ("postprocs", [postproc]), ("mutators", [(mutator, 0.5)])]

    for part, given in parts():
        generator = ms.ScheduleFn(halves)
        setattr(generator, part, given)
        with pytest.raises(tw.ArgumentError, match=r"clone\(\) gave a 'NoneType'") as error:
            tw.tune(double, space=generator, trials=1, progress=None)
        assert error.value.code == "search/clone"
    space = type(
        "Space", (Fruitless, ms.SpaceGenerator), {"generate_design_space": lambda self, mod: [tw.Schedule(mod)]}
    )
    with pytest.raises(tw.ArgumentError, match=r"Space.clone\(\) gave a 'NoneType'"):
        tw.tune(double, space=ms.SpaceGeneratorUnion([space()]), trials=1, progress=None)


@pytest.mark.parametrize("batch", [[], ()])
def test_a_strategy_that_gives_empty_batches_has_no_candidates(tmp_path: Path, batch: Any) -> None:
    class Empty(ms.SearchStrategy):
        def pre_tuning(self, *args: Any) -> None: ...

        def generate_measure_candidates(self) -> Any:
            return batch

        def notify_runner_results(self, *args: Any) -> None: ...

        def post_tuning(self) -> None: ...

    assert tw.tune(double, space=halves, strategy=Empty(), trials=4, progress=None).stop_reason == "exhausted"
    database, errors = session(tmp_path, strategy=Empty())
    assert not errors and len(database) == 0


@pytest.mark.parametrize("answer", [np.array([True, False]), np.array([]), None, "x"])
def test_a_future_that_cannot_say_whether_it_is_done(tmp_path: Path, answer: Any) -> None:
    class Vague(ms.Runner):
        def run(self, runner_inputs: Any) -> Any:
            return [ms.RunnerFuture(lambda: answer, lambda: ms.RunnerResult([1.0], None)) for _ in runner_inputs]

    database, errors = session(tmp_path, runner=Vague(), task_scheduler="round-robin")
    assert len(errors) == 2 and len(database) == 2


@pytest.mark.parametrize(
    "use",
    [
        lambda: ms.RunnerResult(7, None),  # type: ignore[arg-type]
        lambda: ms.TuningRecord(tw.Schedule(double).trace, ms.Workload(ms.normalize_module(double)), 7),  # type: ignore[arg-type]
        lambda: ms.compile_tir(7, double, "llvm"),  # type: ignore[arg-type]
        lambda: ms.MemoryDatabase().commit_workload(7),  # type: ignore[arg-type]
        lambda: ms.UnionDatabase(None),  # type: ignore[arg-type]
    ],
)
def test_values_that_make_no_sense_are_named(use: Callable[[], object]) -> None:
    with pytest.raises(tw.ArgumentError, match=r"cannot take \(|; it is an? "):
        use()


def length_of(error: BaseException) -> int:
    return len(traceback.extract_tb(error.__traceback__))


class Same(ms.Builder, ms.Runner, ms.MeasureCallback):  # type: ignore[misc]
    """Raises the same object, wherever it is asked."""

    def __init__(self, error: Exception, where: str) -> None:
        self.error, self.where = error, where

    def build(self, build_inputs: Any) -> Any:
        if self.where == "build":
            raise self.error
        return Built().build(build_inputs)

    def run(self, runner_inputs: Any) -> Any:
        if self.where == "run":
            raise self.error
        return [ms.RunnerFuture(self._done, self._result) for _ in runner_inputs]

    def _done(self) -> bool:
        if self.where == "done":
            raise self.error
        return True

    def _result(self) -> ms.RunnerResult:
        if self.where == "result":
            raise self.error
        return ms.RunnerResult([1.0], None)

    def apply(self, *_: Any) -> None:
        if self.where == "apply":
            raise self.error


@pytest.mark.parametrize("where", ["build", "run", "done", "result", "apply"])
def test_one_exception_that_is_raised_again_and_again(tmp_path: Path, where: str) -> None:
    part = Same(KeyError("no luck"), where)
    options: Any = {"space": eighths, "max_trials_global": 40, "task_scheduler": "round-robin"}
    options |= {"builder": part, "runner": part, "measure_callbacks": [part]}
    session(tmp_path, **options)
    assert 1 <= length_of(part.error) <= 4
    texts = [path.read_text() for path in (tmp_path / "logs").iterdir()]
    assert all(text.count("raise self.error") <= 40 for text in texts)


@pytest.mark.parametrize("error", [KeyError("no luck"), tw.ScheduleError("no luck")])
def test_a_space_that_raises_one_exception_again_and_again(error: Exception) -> None:
    space = tw.search.Space(double, lambda sch: raise_it(error))
    for _ in range(20):
        with pytest.raises(tw.ScheduleError, match="no luck"):
            run_space(space, tw.Schedule(double))
    # Where it was raised, and who has called: what the last time added, but for one more of those who let it through.
    shown = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert shown.count("raise_it") == 1 and len(shown) <= 5, shown


def raise_it(error: Exception) -> None:
    raise error


def test_an_exception_of_another_thread_keeps_its_place() -> None:
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(raise_it, KeyError("there"))
        try:
            future.result()
        except KeyError as error:
            assert "raise error" in place_of(last_raise(error))


class SamePart:
    """Of a search whose parts are asked by compiled code: raises the same object, wherever it is asked."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def apply(self, *_: Any) -> Any:
        return self.fail()

    def fail(self) -> Any:
        raise self.error


class SameRule(SamePart, ms.ScheduleRule):
    pass


class SamePostproc(SamePart, ms.Postproc):
    pass


class SameMutator(SamePart, ms.Mutator):
    pass


@pytest.mark.parametrize("kind", [SameRule, SamePostproc, SameMutator])
@pytest.mark.parametrize("error", [KeyError("no luck"), tw.ScheduleError("no luck")])
def test_a_part_that_raises_one_exception_again_and_again(kind: Any, error: Exception) -> None:
    part = kind(error)
    space: Any = ms.PostOrderApply() if kind is SameRule else ms.ScheduleFn(eighths)
    space.schedule_rules = [part] if kind is SameRule else []
    space.postprocs = [part] if kind is SamePostproc else []
    space.mutators = [(part, 1.0)] if kind is SameMutator else []
    strategy = ms.EvolutionarySearch(population_size=16, init_min_unmeasured=4)
    context = ms.TuneContext(double, target="llvm", space_generator=space, search_strategy=strategy, rand_state=1)
    for _ in range(3):
        if kind is SameRule:
            with pytest.raises(type(error), match="no luck"):
                context.generate_design_space()
        else:
            context.pre_tuning(16, 4)
            context.generate_measure_candidates()
            context.post_tuning()
            assert sum(strategy.refusals.values()) >= 4
    shown = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    # Where it was raised, and who was called; and who let it through since, where it came back to Python.
    assert shown.count("apply") == shown.count("fail") == 1 and len(shown) <= 6, shown
