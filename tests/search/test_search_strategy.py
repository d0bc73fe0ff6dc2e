"""Strategies: what they hand out, when they end, and that it does not depend on the number of threads."""

import itertools

import pytest

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.script.scripts import from_source
from tilewright.support import limits
from tilewright.testing import workloads


class Result:
    """Of a measurement."""

    def __init__(self, seconds=0.5, error=None):
        self.run_secs = [seconds]
        self.error_msg = error


def tiles(sch):
    block = sch.get_block("C")
    i, j, l = sch.get_loops(block)
    i_tiles = sch.split(i, sch.sample_perfect_tile(i, n=3))
    j_tiles = sch.split(j, sch.sample_perfect_tile(j, n=3))
    l_tiles = sch.split(l, sch.sample_perfect_tile(l, n=2))
    sch.reorder(i_tiles[0], j_tiles[0], i_tiles[1], j_tiles[1], l_tiles[0], i_tiles[2], l_tiles[1], j_tiles[2])


def one_tile(sch):
    (loop, *_) = sch.get_loops(sch.get_block("C"))
    sch.split(loop, sch.sample_perfect_tile(loop, n=2))


def context_of(strategy, function=tiles, *, postprocs=(), mutators=None, threads=1, seed=1, shape=(8, 12, 6)):
    space = ms.ScheduleFn(function)
    space.schedule_rules, space.postprocs = [], list(postprocs)
    space.mutators = [(ms.MutateTileSize(), 1.0)] if mutators is None else mutators
    return ms.TuneContext(
        workloads.matmul(*shape),
        target="llvm",
        space_generator=space,
        search_strategy=strategy,
        rand_state=seed,
        num_threads=threads,
    )


def search(context, trials, batch, **parts):
    context.pre_tuning(trials, batch, **parts)
    batches = []
    while (candidates := context.generate_measure_candidates()) is not None:
        batches.append([candidate.sch for candidate in candidates])
        context.notify_runner_results(candidates, [Result() for _ in candidates])
    context.post_tuning()
    return batches


def texts(batches):
    return [[str(sch.mod) for sch in batch] for batch in batches]


@pytest.mark.parametrize("strategy", [ms.ReplayTrace, ms.ReplayFunc])
def test_points_at_random(strategy):
    batches = search(context_of(strategy()), 20, 7)
    assert [len(batch) for batch in batches] == [7, 7, 6]
    assert len({text for batch in texts(batches) for text in batch}) > 10
    assert all(sch.verify() for sch in batches[0])


@pytest.mark.parametrize("strategy", [ms.ReplayTrace, ms.ReplayFunc, lambda: evolution(population_size=16)])
def test_the_same_seed_gives_the_same_candidates(strategy):
    first, second = (texts(search(context_of(strategy()), 24, 8)) for _ in range(2))
    assert first == second
    assert first != texts(search(context_of(strategy(), seed=2), 24, 8))


def evolution(**options):
    options.setdefault("population_size", 32)
    options.setdefault("init_min_unmeasured", 16)
    return ms.EvolutionarySearch(**options)


@pytest.mark.parametrize("strategy", [ms.ReplayTrace, evolution])
def test_threads_change_nothing(strategy):
    postprocs = [ms.RewriteReductionBlock()]
    one, four = (
        texts(search(context_of(strategy(), postprocs=postprocs, threads=threads), 48, 16)) for threads in (1, 4)
    )
    assert one == four
    assert sum(len(batch) for batch in one) == 48


def test_evolution_measures_nothing_twice_and_ends():
    batches = search(context_of(evolution(), one_tile, shape=(16, 4, 4)), 1000, 3)
    flat = [text for batch in texts(batches) for text in batch]
    assert len(flat) == len(set(flat)) == 5
    assert [len(batch) for batch in batches].count(0) == 4


class Smallest(ms.Mutator):
    """Halves the outer tile."""

    def apply(self, trace, seed):
        (inst,) = trace.decisions
        outer, inner = trace.decisions[inst]
        return None if outer == 1 else trace.with_decision(inst, [outer // 2, inner * 2], remove_postproc=True)


def test_evolution_follows_the_cost_model():
    class PrefersInner(ms.CostModel):
        def predict(self, context, candidates):
            return [float(next(iter(c.sch.trace.decisions.values()))[1] ** 4) for c in candidates]

    def wide(sch):
        (loop, *_) = sch.get_loops(sch.get_block("C"))
        sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=-1))

    strategy = evolution(population_size=8, init_min_unmeasured=4, eps_greedy=0.0)
    context = context_of(strategy, wide, mutators=[(Smallest(), 1.0)], shape=(1024, 2, 2))
    context.pre_tuning(4, 4, cost_model=PrefersInner())
    best = context.generate_measure_candidates()[0].sch
    assert next(iter(best.trace.decisions.values()))[1] >= 512


def test_measured_candidates_are_parents():
    class Known:
        """A database with one record."""

        module_equality = "structural"

        def __init__(self, trace):
            self.record = type("Record", (), {"trace": trace, "run_secs": [1.0]})()
            self.asked = []

        def commit_workload(self, mod):
            self.asked.append(mod)
            return "workload"

        def get_top_k(self, workload, count):
            assert workload == "workload"
            return [self.record][:count]

    strategy = evolution(population_size=10, init_min_unmeasured=4)
    context = context_of(strategy, mutators=[])
    sch = tw.Schedule(context.mod)
    tiles(sch)
    database = Known(tw.schedule.Trace.from_json(sch.trace.as_json()))
    context.pre_tuning(4, 4, database=database)
    assert context.generate_measure_candidates()
    assert tw.ir.structural_equal(database.asked[0], context.mod)


def test_records_of_an_equal_program_are_used_by_its_names():
    """An entry of a database is that of the first of several programs that differ in the names of their blocks."""
    text = workloads.matmul(16, 4, 4).script()
    first, second = (from_source(text.replace('T.block("C")', f'T.block("{block}")')) for block in ("one", "other"))
    database = ms.database.MemoryDatabase()
    workload = database.commit_workload(ms.normalize_module(first))
    sch = tw.Schedule(workload.mod)
    loop = sch.get_loops(sch.get_block("one"))[0]
    sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=-1, decision=[2, 8]))
    database.commit_tuning_record(ms.database.TuningRecord(sch.trace, workload, [1.0], "llvm"))

    def space(sch):
        loop = sch.get_loops(sch.get_block("other"))[0]
        sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=1, decision=[16, 1]))

    strategy = evolution(population_size=10, init_min_unmeasured=4)
    generator = ms.ScheduleFn(space, sch_rules=[], postprocs=[], mutator_probs={})
    context = ms.TuneContext(
        second, target="llvm", space_generator=generator, search_strategy=strategy, rand_state=1, num_threads=1
    )
    context.pre_tuning(4, 4, database=database)
    found = [list(each.sch.trace.decisions.values()) for each in context.generate_measure_candidates()]
    assert [[2, 8]] in found  # which the space does not have


class Never(ms.Postproc):
    """Refuses everything."""

    def apply(self, sch):
        return False


class Raises(ms.Postproc):
    """Fails at everything."""

    def apply(self, sch):
        raise RuntimeError("broken")


class Forgets(ms.Postproc):
    """Says nothing of what it thinks."""

    def apply(self, sch):
        pass


@pytest.mark.parametrize("strategy", [lambda: ms.ReplayTrace(3), ms.ReplayFunc, evolution])
@pytest.mark.parametrize(
    ("postproc", "reason"), [(Never, "Never"), (Raises, "postproc/exception"), (Forgets, "postproc/answer")]
)
def test_refusals_are_counted_and_end_the_search(strategy, postproc, reason):
    made = strategy()
    context = context_of(made, postprocs=[postproc()])
    context.pre_tuning(8, 4)
    assert context.generate_measure_candidates() is None
    assert set(made.refusals) == {reason}
    assert made.refusals[reason] >= 3


class Breaks(ms.Mutator):
    """Fails at everything."""

    def apply(self, trace, seed):
        raise RuntimeError("broken")


def test_a_mutator_that_fails_is_a_counted_refusal():
    made = evolution(population_size=8, init_min_unmeasured=4)
    context = context_of(made, mutators=[(Breaks(), 1.0)])
    context.pre_tuning(4, 4)
    assert context.generate_measure_candidates()
    assert made.refusals["mutator/exception"] >= 1


def test_a_database_that_fails_says_so_as_it_did():
    class Broken:
        module_equality = "structural"

        def commit_workload(self, mod):
            raise OSError("the disk is gone")  # "database/exception" on its way through C++

    context = context_of(evolution())
    context.pre_tuning(4, 4, database=Broken())
    with pytest.raises(OSError, match="the disk is gone"):
        context.generate_measure_candidates()


def test_a_strategy_that_fails_says_so_as_it_did():
    class Broken(ms.SearchStrategy):
        def initialize(self, context):
            raise LookupError("no idea")  # "strategy/exception" on its way through C++

    with pytest.raises(LookupError, match="no idea"):
        context_of(Broken())


def test_a_strategy_that_was_not_initialized():
    with pytest.raises(tw.ArgumentError) as error:
        ms.ReplayFunc().pre_tuning(8, 4, [tw.Schedule(workloads.matmul(8, 12, 6))])
    assert error.value.code == "search/no-space"
    with pytest.raises(tw.ArgumentError) as error:
        ms.EvolutionarySearch().sample_init_population(4)
    assert error.value.code == "search/not-started"


def test_a_search_begins_and_ends_once():
    context = context_of(ms.ReplayTrace())
    for early in (context.generate_measure_candidates, context.post_tuning):
        with pytest.raises(tw.ArgumentError) as error:
            early()
        assert error.value.code == "search/not-started"
    context.pre_tuning(8, 4)
    with pytest.raises(tw.ArgumentError) as error:
        context.pre_tuning(8, 4)
    assert error.value.code == "search/under-way"
    context.post_tuning()
    with pytest.raises(tw.ArgumentError) as error:
        context.pre_tuning(8, 0)
    assert error.value.code == "search/plan"


def test_results_are_told_of_each_candidate(monkeypatch):
    monkeypatch.setattr(limits, "MOST_ITEMS", 1000)
    strategy = ms.ReplayTrace()
    strategy.pre_tuning(8, 2, context_of(strategy).generate_design_space())
    candidates = strategy.generate_measure_candidates()
    good = [Result(), Result(error="it crashed")]
    for given, results, code in (
        (candidates, 7, "arguments/kind"),
        (candidates, "x", "arguments/kind"),
        (candidates, itertools.repeat(Result()), "arguments/kind"),
        (itertools.repeat(candidates[0]), good, "arguments/kind"),
        (7, good, "arguments/kind"),
        ([None, None], good, "search/candidate"),
        ([*candidates, 7], [*good, Result()], "search/candidate"),
        (candidates, [None, None], "search/results"),
        (candidates, [Result("x"), Result()], "search/results"),
        (candidates, [*good, Result()], "search/results"),
        (candidates, good[:1], "search/results"),
    ):
        with pytest.raises(tw.ArgumentError) as error:
            strategy.notify_runner_results(given, results)
        assert error.value.code == code
    strategy.notify_runner_results(iter(candidates), iter(good))  # the batch is still the one that is told of
    assert strategy.generate_measure_candidates()


@pytest.mark.parametrize("answer", [7, "x", [None], [7], itertools.repeat(7)])
def test_a_strategy_that_answers_with_something_else(answer, monkeypatch):
    class Odd(ms.SearchStrategy):
        def initialize(self, context):
            pass

        def pre_tuning(self, *_):
            pass

        def generate_measure_candidates(self):
            return answer

        def post_tuning(self):
            pass

    monkeypatch.setattr(limits, "MOST_ITEMS", 1000)
    told = r"the answer of generate_measure_candidates\(\) of a 'Odd'"
    with pytest.raises(tw.ArgumentError, match=told) as error:
        tw.tune(workloads.matmul(8, 12, 6), space=tiles, trials=4, strategy=Odd(), progress=None)
    assert error.value.code in ("arguments/kind", "search/candidate")


def test_names_and_options():
    assert isinstance(ms.SearchStrategy.create("evolutionary", population_size=3), ms.EvolutionarySearch)
    assert isinstance(ms.SearchStrategy.create("replay-trace"), ms.ReplayTrace)
    with pytest.raises(tw.ArgumentError) as error:
        ms.SearchStrategy.create("luck")
    assert error.value.code == "search/strategy"
    with pytest.raises(tw.ArgumentError) as error:
        ms.TuneContext(workloads.matmul(2, 2, 2), search_strategy="replay-func")
    assert error.value.code == "search/no-space"
    with pytest.raises(tw.ArgumentError) as error:
        ms.EvolutionarySearch(eps_greedy=1.5)
    assert error.value.code == "search/probability"


def test_a_cost_model_scores_each_candidate():
    class Short(ms.CostModel):
        def predict(self, context, candidates):
            return [1.0]

    context = context_of(evolution())
    context.pre_tuning(8, 4, cost_model=Short())
    with pytest.raises(tw.ArgumentError) as error:
        context.generate_measure_candidates()
    assert error.value.code == "search/scores"


def test_a_subclass_chooses():
    class FirstOnly(ms.SearchStrategy):
        def initialize(self, context):
            self.name = context.task_name

        def pre_tuning(self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None):
            self.spaces = list(design_spaces)

        def generate_measure_candidates(self):
            return [ms.MeasureCandidate(self.spaces.pop(), [])] if self.spaces else None

        def notify_runner_results(self, measure_candidates, results):
            assert len(measure_candidates) == len(results)

        def post_tuning(self):
            pass

    strategy = FirstOnly()
    assert [len(batch) for batch in search(context_of(strategy), 8, 4)] == [1]
    assert strategy.name == "main"
    with pytest.raises(NotImplementedError):
        ms.SearchStrategy().post_tuning()


@pytest.mark.parametrize("shape", [(16, 24, 12), (13, 7, 11), (1, 30, 9)])
def test_candidates_of_the_default_space_mean_the_same(shape):
    context = ms.TuneContext(
        workloads.matmul_relu(*shape),
        target="llvm -num-cores=2",
        space_generator="post-order-apply",
        search_strategy=evolution(population_size=24),
        rand_state=3,
        num_threads=2,
    )
    batches = search(context, 24, 24)
    assert sum(len(batch) for batch in batches) >= 20
    assert all(sch.verify() for batch in batches for sch in batch[:6])


def looks(sch):
    """A space whose steps depend on what is drawn: it splits where the draw says so."""
    i, j, _ = sch.get_loops(sch.get_block("C"))
    if sch.get(sch.sample_categorical([0, 1], [0.5, 0.5])):
        outer, inner = sch.sample_perfect_tile(i, n=2)
        sch.split(i, [sch.get(outer), sch.get(inner)])
    tiles = [sch.get(part) for part in sch.sample_perfect_tile(j, n=2)]
    sch.split(j, tiles)


def function_context(function, threads=1, **options):
    space = _core.FunctionSpace(lambda sch, first: function(sch))
    space.schedule_rules, space.postprocs, space.mutators = [], [], [(ms.MutateTileSize(), 1.0)]
    return ms.TuneContext(
        workloads.matmul(16, 64, 6),
        target="llvm",
        space_generator=space,
        search_strategy=evolution(**options),
        rand_state=1,
        num_threads=threads,
    )


def test_evolution_runs_a_function_that_looks_again():
    """Children are what the function makes of mutated decisions: each is a program of the space."""
    seen = []
    for threads in (1, 3):
        batches = search(function_context(looks, threads, eps_greedy=0.0), 40, 8)
        flat = [sch for batch in batches for sch in batch]
        seen.append([str(sch.mod) for sch in flat])
        assert len(set(seen[-1])) == len(flat) > 20
        for sch in flat:
            again = tw.Schedule(ms.normalize_module(workloads.matmul(16, 64, 6)))
            again.take_decisions(list(sch.trace.decisions.values()))
            looks(again)
            assert again.mod["main"].script() == sch.mod["main"].script()
    assert seen[0] == seen[1]


def test_evolution_finds_what_chance_does_not():
    """One of 7 ** 6 points: a cost model leads there from the best of before."""

    def six(sch):
        block = sch.get_block("C")
        ways = [sch.get(sch.sample_categorical(list(range(7)), [1 / 7] * 7)) for _ in range(6)]
        sch.annotate(block, "ways", ways)

    class CountsSixes(ms.CostModel):
        def load(self, path): ...
        def save(self, path): ...
        def update(self, context, candidates, results): ...
        def predict(self, context, candidates):
            return [float(4 ** list(c.sch.trace.decisions.values()).count(6)) for c in candidates]

    context = function_context(six, population_size=64, genetic_num_iters=6, eps_greedy=0.0)
    batches = search(context, 40, 8, cost_model=CountsSixes())
    best = [max(list(sch.trace.decisions.values()).count(6) for sch in batch) for batch in batches]
    assert max(best) == 6 and best[0] >= 3


def test_a_candidate_has_one_schedule() -> None:
    """Handles of what it gave out once are those of what it gives out later."""
    schedule = tw.Schedule(workloads.matmul(8, 8, 8))
    candidate = ms.MeasureCandidate(schedule, [])
    (i, _, _) = candidate.sch.get_loops(candidate.sch.get_block("C"))
    assert candidate.sch.get(i).extent == 8 and candidate.sch is candidate.sch
