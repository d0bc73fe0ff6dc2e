"""One task of a search, and what its program becomes."""

import itertools
import logging

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.support import limits
from tilewright.testing import workloads


def test_a_function_becomes_a_module():
    context = ms.TuneContext(workloads.matmul(2, 3, 4), target="llvm", task_name="product")
    func = context.mod["main"]
    assert func.attrs["tir.noalias"]
    assert func.attrs["global_symbol"]
    assert context.task_name == "product"
    assert context.num_threads >= 1
    assert context.rand_state != -1
    assert isinstance(context.logger, logging.Logger)


def test_the_only_function_is_called_main():
    module = tw.ir.IRModule({"product": workloads.matmul(2, 3, 4)})
    assert list(ms.TuneContext(module).mod.functions) == ["main"]
    two = tw.ir.IRModule({"a": workloads.matmul(2, 3, 4), "b": workloads.matmul(2, 3, 4)})
    assert len(ms.TuneContext(two).mod.functions) == 2


def test_components_by_name():
    context = ms.TuneContext(
        workloads.matmul(2, 3, 4), space_generator="post-order-apply", search_strategy="replay-trace"
    )
    assert isinstance(context.space_generator, ms.PostOrderApply)
    assert isinstance(context.search_strategy, ms.ReplayTrace)
    context = ms.TuneContext(workloads.matmul(2, 3, 4), space_generator=lambda sch: None)
    assert len(context.generate_design_space()) == 1


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"num_threads": "all"}, "tune-context/num-threads"),
        ({"num_threads": 0}, "tune-context/num-threads"),
        ({"space_generator": "everything"}, "tune-context/space"),
        ({"search_strategy": "luck"}, "search/strategy"),
    ],
)
def test_refusals(wrong, code):
    with pytest.raises(tw.ArgumentError) as error:
        ms.TuneContext(workloads.matmul(2, 3, 4), **wrong)
    assert error.value.code == code


def test_parts_that_are_missing():
    with pytest.raises(tw.ArgumentError) as error:
        ms.TuneContext(workloads.matmul(2, 3, 4)).generate_design_space()
    assert error.value.code == "tune-context/space"
    with pytest.raises(tw.ArgumentError) as error:
        ms.TuneContext(workloads.matmul(2, 3, 4)).pre_tuning(1)
    assert error.value.code == "tune-context/strategy"
    with pytest.raises(tw.ArgumentError) as error:
        ms.TuneContext(space_generator="union").generate_design_space()
    assert error.value.code == "tune-context/module"


def test_a_clone_has_components_of_its_own():
    context = ms.TuneContext(
        workloads.matmul(2, 3, 4), target="llvm", space_generator="union", search_strategy="replay-trace", rand_state=7
    )
    clone = context.clone()
    assert clone.space_generator is not context.space_generator
    assert clone.search_strategy is not context.search_strategy
    assert tw.ir.structural_equal(clone.mod, context.mod)
    assert clone.seed != context.seed
    assert clone.seed == context.clone().seed


def test_components_see_the_very_object():
    seen = []

    class Looks(ms.SearchStrategy):
        def initialize(self, context):
            seen.append(context)

    context = ms.TuneContext(workloads.matmul(2, 3, 4), search_strategy=Looks())
    assert seen == [context]


class Lying:
    """Longer than it is, or shorter; by its length alone, a list of its items would take all memory there is."""

    def __init__(self, length, items):
        self.length, self.items = length, items

    def __len__(self):
        return self.length

    def __getitem__(self, number):
        return self.items[number]


@pytest.mark.parametrize("length", [2**62, 2**40, 0, -1])
def test_what_was_measured_is_told_whatever_its_length_says(length):
    context = ms.TuneContext(
        workloads.matmul(2, 3, 4), target="llvm", space_generator=lambda sch: None, search_strategy="replay-trace"
    )
    context.pre_tuning(4, 1, Lying(length, context.generate_design_space()))
    candidates, results = context.generate_measure_candidates(), [ms.RunnerResult([1.0], None)]
    assert len(candidates) == 1
    context.notify_runner_results(Lying(length, candidates), Lying(length, results))
    for wrong in ((candidates, Lying(length, results * 2)), (Lying(length, candidates * 2), results), (candidates, [])):
        with pytest.raises(tw.ArgumentError, match=r"candidates and \d results") as error:
            context.notify_runner_results(*wrong)
        assert error.value.code == "search/results"


def test_lists_without_an_end_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "MOST_ITEMS", 1000)
    context = ms.TuneContext(
        workloads.matmul(2, 3, 4), target="llvm", space_generator=lambda sch: None, search_strategy="replay-trace"
    )
    (schedule,) = context.generate_design_space()
    context.pre_tuning(4, 1)
    candidates, result = context.generate_measure_candidates(), ms.RunnerResult([1.0], None)
    for use in (
        lambda: context.pre_tuning(4, 1, itertools.repeat(schedule)),
        lambda: context.notify_runner_results(itertools.repeat(candidates[0]), [result]),
        lambda: context.notify_runner_results(candidates, itertools.repeat(result)),
        lambda: context.notify_runner_results(candidates, 7),
        lambda: context.notify_runner_results("x", [result]),
    ):
        with pytest.raises(tw.ArgumentError, match="it is a list of") as error:
            use()
        assert error.value.code == "arguments/kind"
