"""What is told of parts of somebody's own that fail: once, by their name, with the line that it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import double

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.support.notes import CostModelWarning


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
    evolution = ms.EvolutionarySearch(population_size=32, init_min_unmeasured=8, genetic_num_iters=2)
    chosen |= {"space": eighths, "strategy": evolution, "seed": 1, "num_trials_per_iter": 3}
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
    said = "the search continues without its cost model, which failed: "
    assert caplog.text.count(said) == 1
    assert "extract_from() of a 'NoFeatures' gave None\n  hint: it gives a matrix of numbers" in caplog.text
    assert "Traceback" not in caplog.text


class Mutates(ms.Mutator):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def apply(self, trace: Any, seed: int) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", ["x", [tw.Schedule(double).trace]], ids=["text", "list"])
def test_what_a_mutator_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: Any) -> None:
    session(tmp_path, space=space_with(mutators=[(Mutates(answer), 1.0)]))
    said = f"(Mutates.apply() returned a '{type(answer).__name__}', neither a trace nor None)"
    assert caplog.text.count(f"x mutator/answer {said}") == 1, caplog.text


def test_what_a_mutator_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert len(session(tmp_path, space=space_with(mutators=[(Mutates(KeyError("no change")), 1.0)]))) == 12
    is_told(caplog, "x mutator/exception (KeyError: 'no change')\n", "raise self.answer")


@pytest.mark.parametrize("name", ["mutators", "mutator_probs"])
def test_how_mutators_are_given(name: str) -> None:
    for right in ([(Mutates(None), 0.5)], {Mutates(None): 0.5}, {}, []):
        space = space_with(**{name: right})
        assert space.mutators is not None and [share for _, share in space.mutators] == [0.5] * len(right)
    with pytest.raises(tw.ArgumentError, match=f"{name} is not a list of mutators with their probabilities") as error:
        space_with(**{name: [Mutates(None)]})
    assert error.value.code == "search/parts" and "[(MyMutator(), 1.0)] or {MyMutator(): 1.0}" in error.value.hint


class Rule(ms.ScheduleRule):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def apply(self, sch: Any, block: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (["abc"], "search/schedule", r"Rule.apply\(\) returned a 'str' in its list"),
        ("abc", "search/schedule", r"Rule.apply\(\) returned a 'str'"),
        (None, "search/schedule", r"Rule.apply\(\) returned None"),
        ([], "space/empty", r"Rule.apply\(\) left no schedule: it returned \[\]"),
    ],
)
def test_what_a_rule_answers(tmp_path: Path, answer: Any, code: str, said: str) -> None:
    space = ms.PostOrderApply(sch_rules=[Rule(answer)], postprocs=[], mutator_probs={})
    with pytest.raises(
        tw.ArgumentError, match=f"{said}\n  hint: return .*\\[sch\\] where there is nothing to do"
    ) as error:
        session(tmp_path, space=space)
    assert error.value.code == code


@pytest.mark.parametrize("answer", [[], None])
def test_a_space_without_a_schedule(tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: Any) -> None:
    class Nothing(ms.SpaceGenerator):
        def generate_design_space(self, module: Any) -> Any:
            return answer

    with pytest.raises(tw.ArgumentError, match="Nothing gives no schedule of 'main'") as error:
        session(tmp_path, space=Nothing())
    assert error.value.code == "space/empty" and "ends: its space failed" in caplog.text


def test_what_a_function_of_a_space_returns(tmp_path: Path) -> None:
    with pytest.raises(
        tw.ArgumentError, match="the space 'halves' returned a 'int'\n  hint: change the schedule"
    ) as error:

        def halves(sch: tw.Schedule) -> int:
            return 2

        session(tmp_path, space=ms.SpaceGeneratorUnion([halves]))
    assert error.value.code == "search/schedule"


def test_a_strategy_that_fails_at_its_beginning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(OneBatch):
        def initialize(self, context: Any) -> None:
            raise KeyError("no beginning")

    with pytest.raises(KeyError, match="no beginning"):
        session(tmp_path, strategy=Broken())
    is_told(caplog, "ends: its strategy failed: KeyError: 'no beginning'\n")


class Scores(ms.CostModel):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def update(self, context: Any, candidates: Any, results: Any) -> None: ...

    def predict(self, context: Any, candidates: Any) -> Any:
        return self.answer(len(candidates))


NAN = float("nan")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n: None, "which failed: predict() of a 'Scores' gave None for "),
        (lambda n: "x", "which failed: predict() of a 'Scores' gave 'x' for "),
        (lambda n: [NAN] * n, "which failed: predict() of a 'Scores' gave nan for all of "),
        (lambda n: [NAN, *[1.0] * (n - 1)], "predict() of a 'Scores' gave nan for 1 of "),
    ],
    ids=["none", "text", "nan", "one nan"],
)
def test_what_a_cost_model_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: Any, said: str) -> None:
    assert len(session(tmp_path, cost_model=Scores(answer))) == 12
    assert caplog.text.count(said) == 1, caplog.text


def test_the_warning_of_a_cost_model_names_the_call() -> None:
    with pytest.warns(CostModelWarning, match="gave None for") as told:
        tw.tune(double, space=eighths, cost_model=Scores(lambda n: None), trials=24, progress=None)
    assert {warning.filename for warning in told} == {__file__}


def test_candidates_that_are_all_not_built(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Without(ms.Builder):
        def build(self, build_inputs: Any) -> Any:
            return [ms.BuilderResult(None, "no compiler") for _ in build_inputs]

    session(tmp_path, builder=Without())
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert told == ["Task #0: 'main': no candidate was measured, and none is kept: 12 x not built: no compiler"]
