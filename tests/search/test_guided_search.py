"""Draft and verify, and descent: what they hand out for given results, on any number of threads, and how soon."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tw
from search.programs import scale
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.heuristics.cpu import schedule_for_cpu
from tilewright.meta_schedule.runner import RunnerResult
from tilewright.testing import workloads

TARGET = "llvm -mcpu=znver4 -num-cores=1"
WAYS = 12


def annotations(sch: tw.Schedule) -> None:
    """20736 points that differ in nothing but their decisions."""
    i, _ = sch.get_loops(sch.get_block("Y"))
    for n in range(4):
        sch.annotate(i, f"a{n}", sch.sample_categorical(list(range(WAYS)), [1 / WAYS] * WAYS))


def annotations_read(sch: tw.Schedule, first: bool) -> None:
    i, _ = sch.get_loops(sch.get_block("Y"))
    for n in range(4):
        sch.annotate(i, f"a{n}", int(sch.sample_categorical(list(range(WAYS)), [1 / WAYS] * WAYS)))


def context_of(space: Any, strategy: Any, *, program: Any = scale, seed: int = 7, threads: int = 1) -> ms.TuneContext:
    if not isinstance(space, str):
        space.schedule_rules, space.postprocs, space.mutators = [], [], []
    return ms.TuneContext(
        program,
        target=TARGET,
        space_generator=space,
        search_strategy=strategy,
        rand_state=seed,
        num_threads=threads,
    )


def searched(
    context: ms.TuneContext, seconds_of: Callable[[Any], float], trials: int, *, model: Any = None, ahead: bool = True
) -> list[tuple[str, float]]:
    """The trace of each candidate and its seconds, results told one batch late where `ahead`."""
    context.pre_tuning(trials, 8, cost_model=model)
    told: list[Any] = []
    history: list[tuple[str, float]] = []

    def tell(batch: list[Any], results: list[RunnerResult]) -> None:
        if model is not None:
            model.update(context, batch, results)
        context.notify_runner_results(batch, results)

    while (batch := context.generate_measure_candidates()) is not None:
        times = [seconds_of(candidate.sch) for candidate in batch]
        history += [(str(c.sch.trace), s) for c, s in zip(batch, times, strict=True)]
        told.append((batch, [RunnerResult([s], None) for s in times]))
        while len(told) > (1 if ahead else 0):
            tell(*told.pop(0))
    context.post_tuning()
    return history


def recorded(sch: tw.Schedule) -> float:
    """As if it had been measured: the estimate, times what each program has of its own."""
    digest = hashlib.blake2b(sch.mod.script().encode(), digest_size=4).digest()
    noise = 1 + int.from_bytes(digest, "big") / 2**32
    seconds: float = _core.estimate_cost(sch.mod, TARGET)["seconds"]
    return seconds * noise


def test_the_same_measurements_give_the_same_candidates_on_any_number_of_threads() -> None:
    program = workloads.matmul(128, 128, 128)
    runs = []
    for threads in (1, 4):
        context = context_of("post-order-apply", "guided", program=program, threads=threads)
        runs.append(searched(context, recorded, 40, model=ms.ResidualModel()))
    assert len(runs[0]) == 40 and runs[0] == runs[1]
    assert len({trace for trace, _ in runs[0]}) == 40
    other = context_of("post-order-apply", "guided", program=program, seed=8)
    assert searched(other, recorded, 16, model=ms.ResidualModel()) != runs[0][:16]


def separable(sch: tw.Schedule) -> float:
    """Each decision has a best way of its own: 3, 4, 5, 6."""
    decisions = [int(value) for value in sch.trace.decisions.values()]
    return 1e-3 * (1 + sum(abs(value - 3 - n) for n, value in enumerate(decisions)) / 10)


@pytest.mark.parametrize("space", [ms.ScheduleFn(annotations), _core.FunctionSpace(annotations_read)])
def test_descent_finds_the_best_of_many_points(space: Any) -> None:
    history = searched(context_of(space, "descent"), separable, 1000)
    best = min(seconds for _, seconds in history)
    assert best == pytest.approx(1e-3)
    # A statistical stop, long before the trials are used up; by chance one point in 20736 is that good.
    assert len(history) < 400
    assert len({trace for trace, _ in history}) == len(history)


def test_the_default_descends_too_and_goes_on() -> None:
    history = searched(context_of(ms.ScheduleFn(annotations), "guided"), separable, 200)
    assert len(history) == 200
    assert min(seconds for _, seconds in history) <= 1.201e-3
    drafts = searched(context_of(ms.ScheduleFn(annotations), "draft-and-verify"), separable, 200)
    assert len(drafts) == 200


def test_drafts_are_better_than_chance() -> None:
    """Where the estimate is off by up to a factor of two, the best of a few drafts beats the best of as many draws."""
    program = workloads.matmul(128, 128, 128)

    def best(strategy: str, seed: int) -> float:
        context = context_of("post-order-apply", strategy, program=program, seed=seed)
        return min(seconds for _, seconds in searched(context, recorded, 16, ahead=False))

    wins = sum(best("draft-and-verify", seed) < best("replay-trace", seed) for seed in range(1, 6))
    assert wins >= 4


def test_a_space_is_gone_through_to_its_end() -> None:
    def few(sch: tw.Schedule, first: bool) -> None:
        i, j = sch.get_loops(sch.get_block("Y"))
        if int(sch.sample_categorical([0, 1], [0.99, 0.01])):
            sch.split(j, [None, int(sch.sample_categorical([3, 6, 12], [0.9, 0.1, 0.0]))])
        else:
            sch.split(i, [None, 4])

    context = context_of(_core.FunctionSpace(few), "guided")
    history = searched(context, recorded, 100)
    assert len(history) == 3 and context.search_strategy.attempts <= 4


def test_refused_points_are_counted_and_not_tried_again() -> None:
    seen = []

    def at_times(sch: tw.Schedule, first: bool) -> None:
        i, _ = sch.get_loops(sch.get_block("Y"))
        way = int(sch.sample_categorical(list(range(8)), [1 / 8] * 8, decision=0 if first else None))
        seen.append(way)
        if way % 2:
            raise ValueError("odd")
        sch.annotate(i, "way", way)

    context = context_of(_core.FunctionSpace(at_times), "guided")
    assert len(searched(context, recorded, 100)) == 4
    assert context.search_strategy.refusals == {"space/exception": 4} and len(seen) <= 9


def test_options_and_kinds() -> None:
    for options in ({"descent_share": 2.0}, {"random_share": -0.1}):
        with pytest.raises(tw.ArgumentError) as caught:
            _core.GuidedSearch(**options)
        assert caught.value.code == "search/probability"
    with pytest.raises(tw.ArgumentError) as caught:
        _core.GuidedSearch(drafts=0)
    assert caught.value.code == "search/plan"
    with pytest.raises(tw.ArgumentError, match="known: guided, draft-and-verify, descent"):
        ms.SearchStrategy.create("luck")
    with pytest.raises(tw.ArgumentError) as caught:
        _core.GuidedSearch().initialize(_core.TuneContext())
    assert caught.value.code == "search/no-module"


def test_trial_by_trial_the_estimate_of_another_model_decides() -> None:
    """A prior of one's own: it likes what the last decision makes large."""

    class Last(ms.CostModel):
        def load(self, path): ...

        def save(self, path): ...

        def update(self, context, candidates, results): ...

        def predict(self, context, candidates):
            return [float([*c.sch.trace.decisions.values()][-1]) for c in candidates]

    strategy = _core.GuidedSearch(prior=Last(), descent_share=0.0, random_share=0.0)
    history = searched(context_of(ms.ScheduleFn(annotations), strategy), lambda sch: 1.0, 24)
    lasts = [json.loads(trace.split("decision=")[-1].split(")")[0]) for trace, _ in history]
    assert sorted(lasts[1:]) == [WAYS - 1] * 15 or min(lasts[1:16]) >= WAYS - 2


def resident() -> int:
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("read", [False, True])
def test_memory_does_not_grow_with_the_candidates(read: bool) -> None:
    """Of thousands of candidates a search keeps decisions and times, not programs."""

    def many(sch: tw.Schedule, *_: bool) -> None:
        for block in sch.get_child_blocks(sch.get_block("root")):
            tiles = [sch.sample_perfect_tile(loop, n=4, max_innermost_factor=64) for loop in sch.get_loops(block)]
            for loop, factors in zip(sch.get_loops(block), tiles, strict=True):
                sch.split(loop, factors=[int(factor) for factor in factors] if read else factors)

    def fixed(sch: tw.Schedule) -> tw.Schedule:
        many(sch)
        return sch

    space = _core.FunctionSpace(many) if read else _core.ScheduleFn(fixed)
    context = context_of(space, _core.GuidedSearch(drafts=8, exploration=64), program=workloads.matmul(512, 512, 512))
    context.pre_tuning(3000, 8, database=None, cost_model=None)
    grown = []
    for batch in range(3000 // 8):
        candidates = context.generate_measure_candidates()
        results = [RunnerResult([1.0 + hash((batch, n)) % 1000 / 1000], None) for n in range(len(candidates))]
        context.notify_runner_results(candidates, results)
        del candidates
        grown.append(resident())
    assert grown[-1] - grown[len(grown) // 3] < 8 << 20


@pytest.mark.parametrize("size", [128, 96])
def test_a_space_by_rules_makes_no_program_twice(size: int) -> None:
    """Each of its runs takes milliseconds: neighbors that are known are not made again, and no decision is drawn that
    nothing depends on."""
    target = tw.Target(TARGET)
    runs: list[str] = []

    def by_rules(sch: tw.Schedule, first: bool) -> None:
        schedule_for_cpu(sch, target, best=first)
        runs.append(sch.mod.script())

    context = context_of(
        _core.FunctionSpace(by_rules),
        _core.GuidedSearch(drafts=64, exploration=8),
        program=workloads.matmul(size, size, size),
    )
    history = searched(context, recorded, 32)
    assert len(history) == 32
    assert len(runs) == len(set(runs))
