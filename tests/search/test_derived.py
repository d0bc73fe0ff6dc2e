"""Components that were written for TVM's names."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms

from .rules.sketches import program


@ms.derived_object
class Rows(ms.PyScheduleRule):
    """Splits by what the target says."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        self.lanes = context.target.vector_bits // 32

    def apply(self, sch: Any, block: Any) -> Any:
        for loop in sch.get_loops(block)[:1]:
            sch.split(loop, [None, self.lanes])
        return [sch]


def test_the_published_method_is_called_with_the_task() -> None:
    space = ms.PostOrderApply(sch_rules=[Rows()], postprocs=[], mutator_probs={})
    task = ms.TuneContext(program("relu"), target="llvm -mcpu=haswell", space_generator=space)
    (sch,) = task.generate_design_space()
    assert sch.get(sch.get_loops("C")[1]).extent.value == 8


def test_a_method_of_our_name_stays() -> None:
    class Both(ms.PyMutator):
        def _initialize_with_tune_context(self, context: Any) -> None:
            raise AssertionError

        def initialize(self, context: Any) -> None:
            self.told = True

    mutator = ms.derived_object(Both)()
    ms.TuneContext(
        program("relu"), target="llvm", space_generator=ms.ScheduleFn(lambda sch: sch, mutator_probs={mutator: 1.0})
    )
    assert mutator.told


@pytest.mark.parametrize("name", [name for name in ms.__all__ if name.startswith("Py")])
def test_published_names_of_bases(name: str) -> None:
    assert getattr(ms, name) is getattr(ms, name.removeprefix("Py"))


def test_there_is_one_for_each_component() -> None:
    components = ["Builder", "CostModel", "Database", "FeatureExtractor", "MeasureCallback", "Mutator", "Postproc"]
    components += ["Runner", "RunnerFuture", "ScheduleRule", "SearchStrategy", "SpaceGenerator", "TaskScheduler"]
    assert {name for name in ms.__all__ if name.startswith("Py")} == {f"Py{name}" for name in components}


def test_small_functions() -> None:
    assert ms.utils.derived_object is ms.derived.derived_object is ms.derived_object
    assert ms.utils.fork_seed(3, 2) == ms.fork_seed(3, 2)
    assert ms.utils.shash2hex(255) == "00000000000000ff"
    resolve = ms.utils.get_global_func_with_default_on_worker
    assert resolve(None, inspect.isclass) is inspect.isclass and resolve(len, None) is len
    assert resolve("meta_schedule.cpu_count", None) is ms.utils.cpu_count
    with pytest.raises(tw.ArgumentError, match="no function"):
        resolve("of.nobody", None)
