"""What parts of a search raise may hold anything, such as the name of a file that is no UTF-8."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import AddOne

import tilewright as tw
from tilewright import meta_schedule as ms


def boom(*_: Any, **__: Any) -> Any:
    raise ValueError("cannot read " + os.fsdecode(b"caf\xe9.txt"))


class OddPostproc(ms.Postproc):
    apply = boom


class OddMutator(ms.Mutator):
    apply = boom


class OddRule(ms.ScheduleRule):
    apply = boom


def tiles(sch: tw.Schedule) -> None:
    loop = sch.get_loops(sch.get_block("B"))[0]
    sch.split(loop, list(sch.sample_perfect_tile(loop, n=2)))


@pytest.mark.parametrize("part", ["postproc", "mutator"])
def test_a_text_that_is_no_utf8_counts_as_any_other(part: str, tmp_path: Path) -> None:
    space = ms.ScheduleFn(tiles)
    space.postprocs = [OddPostproc()] if part == "postproc" else []
    if part == "mutator":
        space.mutators = [(OddMutator(), 1.0)]
    evolution = ms.EvolutionarySearch(population_size=32, init_min_unmeasured=8, genetic_num_iters=2)
    ms.tune_tir(
        *(AddOne, "native", str(tmp_path), 4),
        **{"num_trials_per_iter": 2, "space": space, "cost_model": "none", "strategy": evolution},
        database="memory",
    )


def test_of_a_rule_it_is_told() -> None:
    space = ms.PostOrderApply(sch_rules=[OddRule()], postprocs=[], mutator_probs={})
    with pytest.raises((ValueError, tw.Error), match="cannot read caf"):
        tw.tune(AddOne, space=space, trials=2, progress=None)
