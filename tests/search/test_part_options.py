"""Parts of a search: what their constructors take and say follows from the options of their C++ aggregates."""

import inspect
import re

import pytest

import tilewright as tw
from tilewright import _core

KINDS = (_core.ScheduleRule, _core.Postproc, _core.Mutator, _core.SearchStrategy, _core.FeatureExtractor)
PARTS = [cls for cls in vars(_core).values() if isinstance(cls, type) and issubclass(cls, KINDS) and cls not in KINDS]


def parameters(cls: type) -> list[str]:
    """Of the constructor, as nanobind writes it."""
    signature = str(cls.__init__.__nb_signature__[0][0])
    return re.findall(r"[(,] ?(\w+)(?=:)", signature)


@pytest.mark.parametrize("cls", PARTS, ids=lambda cls: cls.__name__)
def test_what_is_said_of_arguments_is_said_of_each_in_order(cls: type) -> None:
    said = re.findall(r"^    (\w+): ", inspect.getdoc(cls.__init__) or "", re.MULTILINE)
    taken = parameters(cls)
    assert said == taken or cls is _core.PerStoreFeature, (said, taken)


def test_the_list_of_parts_is_not_empty() -> None:
    assert len(PARTS) > 25
    assert parameters(_core.AddRFactor) == ["max_jobs_per_core", "max_innermost_factor"]


def test_none_stands_for_the_default_of_a_list() -> None:
    _core.AutoBind(thread_extents=None)
    _core.ParallelizeVectorizeUnroll(unroll_max_steps=None)
    with pytest.raises(tw.ArgumentError):
        _core.CrossThreadReduction(thread_extents=None)
    with pytest.raises(tw.ArgumentError):
        _core.AddRFactor(max_jobs_per_core=None)


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(tw.ArgumentError, match=r"not in \[0, 1\]"):
        _core.GuidedSearch(descent_share=2.0)
    with pytest.raises(tw.ArgumentError, match="population_size is below 1"):
        _core.EvolutionarySearch(population_size=0)
    with pytest.raises(tw.ArgumentError, match="at least 1"):
        _core.PerStoreFeature(buffers_per_store=0)


def test_parts_of_cpp_can_be_subclassed() -> None:
    class Mine(_core.EvolutionarySearch):
        def __init__(self) -> None:
            super().__init__(population_size=4)
            self.label = "mine"

    strategy = Mine()
    assert strategy.label == "mine"
    assert isinstance(strategy.clone(), _core.EvolutionarySearch)
