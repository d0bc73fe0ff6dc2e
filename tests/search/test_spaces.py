"""Spaces: functions, rules, unions, and those that Python defines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tw
from tilewright import _core, ir
from tilewright import meta_schedule as ms
from tilewright.heuristics.cpu import schedule_for_cpu
from tilewright.script import ir as I
from tilewright.script import tir as T

from .rules.sketches import context_of, program


def _module(name: str = "relu") -> ir.IRModule:
    return ir.IRModule({"main": program(name)})


class Splits(ms.ScheduleRule):
    """Two ways to split the first loop of a block."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def apply(self, sch: Any, block: Any) -> Any:
        self.seen.append(sch.get(block).name_hint)
        loops = sch.get_loops(block)
        if not loops:
            return sch
        other = sch.copy()
        sch.split(loops[0], [None, 2])
        other.split(loops[0], [None, 4])
        return [sch, other]


def _given(space: Any, *rules: Any) -> Any:
    space.schedule_rules, space.postprocs, space.mutators = list(rules), [], []
    space.initialize(context_of("llvm"))
    return space


def test_rules_go_from_the_last_block_to_the_first_and_fork() -> None:
    rule = Splits()
    module = _module()
    made = _given(ms.PostOrderApply(), rule).generate_design_space(module)
    assert len(made) == 4
    assert rule.seen == ["root", "compute", "C", "C"]
    names = [step.kind.name for step in made[0].trace.insts]
    assert names[:3] == ["GetBlock"] * 3
    for sch in made:
        sch.verify()
    assert len(_given(ms.PostOrderApply(), rule, rule).generate_design_space(module)) == 16


def test_parts_are_given_as_tvm_does() -> None:
    rule = Splits()
    space = ms.PostOrderApply(sch_rules=[rule], postprocs=[], mutator_probs={ms.MutateTileSize(): 0.75})
    assert space.sch_rules == space.schedule_rules == [rule] and space.postprocs == []
    assert list(space.mutator_probs.values()) == [0.75] and space.mutators[0][1] == 0.75
    space.initialize(context_of("llvm"))
    assert space.sch_rules == [rule] and len(space.generate_design_space(_module())) == 4
    space.sch_rules, space.mutator_probs = [rule, rule], {}
    assert len(space.generate_design_space(_module())) == 16 and space.mutators == []
    for open_ones in (
        ms.PostOrderApply(),
        ms.PostOrderApply(sch_rules="from-target"),
        ms.PostOrderApply(sch_rules=None),
    ):
        assert open_ones.sch_rules is None and open_ones.mutator_probs is None
    kinds = ms.PostOrderApply(sch_rules="cuda", postprocs="cuda", mutator_probs="cuda")
    assert [type(rule) for rule in kinds.sch_rules] == [type(r) for r in ms.ScheduleRule.defaults("cuda")]
    assert kinds.postprocs and kinds.mutator_probs
    function = ms.ScheduleFn(lambda sch: sch, sch_rules=[], postprocs=[], mutator_probs={})
    union = ms.SpaceGeneratorUnion([function, space], sch_rules=[], postprocs=[], mutator_probs={})
    union.initialize(context_of("llvm"))
    assert len(union.generate_design_space(_module())) == 17


def test_parts_that_are_none() -> None:
    for wrong in ({"sch_rules": [3]}, {"sch_rules": 3}, {"postprocs": [Splits()]}, {"mutator_probs": [Splits()]}):
        with pytest.raises(tw.ArgumentError, match=f"{next(iter(wrong))} is not a list of") as caught:
            ms.PostOrderApply(**wrong)
        assert caught.value.code == "search/parts"
    with pytest.raises(tw.Error):
        ms.PostOrderApply(sch_rules="of no target")


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), float("inf")])
def test_probabilities_that_are_none(wrong: float) -> None:
    space, mutator = ms.PostOrderApply(mutator_probs={ms.MutateUnroll(): 0.0}), ms.MutateTileSize()

    def by_attribute() -> None:
        space.mutators = [(mutator, wrong)]

    def by_name() -> None:
        space.mutator_probs = {mutator: wrong}

    for give in (by_attribute, by_name, lambda: ms.PostOrderApply(mutator_probs={mutator: wrong})):
        with pytest.raises(tw.ArgumentError, match="the probability of a MutateTileSize is") as error:
            give()
        assert error.value.code == "search/probability"
    assert space.mutators == [(next(iter(space.mutator_probs)), 0.0)]


class Forgetful(ms.ScheduleRule):
    """Returns nothing."""

    def apply(self, sch: Any, block: Any) -> Any:
        sch.get_loops(block)


def test_a_rule_that_forgets_to_return_is_told_so() -> None:
    with pytest.raises(tw.ArgumentError, match=r"Forgetful.apply\(\) returned None") as caught:
        _given(ms.PostOrderApply(), Forgetful()).generate_design_space(_module())
    assert caught.value.code == "search/schedule" and "[sch] where there is nothing to do" in str(caught.value)


class OnlyAtLoops(ms.ScheduleRule):
    """Splits, and fails on blocks of the names that it is given."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def apply(self, sch: Any, block: Any) -> Any:
        if sch.get(block).name_hint in self.names:
            sch.split(sch.get_loops(block)[0], [3, 3, 3, 3])  # what was done by then does not stay
            raise ValueError("this one")
        for loop in sch.get_loops(block)[:1]:
            sch.split(loop, [None, 2])
        return sch


def test_a_block_that_a_rule_fails_on_stays_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    rule = OnlyAtLoops({"C"})
    space = _given(ms.PostOrderApply(), rule, Splits())
    for times in (1, 2):
        made = space.generate_design_space(_module())
        assert len(made) == 4
        for sch in made:
            sch.verify()
            assert [len(sch.get_loops(sch.get_block(name))) for name in ("C", "compute")] == [4, 4]
        assert space.refusals == {"space/exception": times}
    assert caplog.text.count("OnlyAtLoops fails on block 'C', which stays as it was: ") == 1
    assert "test_spaces.py" in caplog.text
    union = ms.SpaceGeneratorUnion([space, space])
    assert sum(union.refusals.values()) == 4 and union.first_refusals == space.first_refusals
    space.initialize(context_of("llvm"))
    assert space.refusals == {} == ms.ScheduleFn(lambda sch: sch).refusals


def test_blocks_that_are_gone_are_left_out() -> None:
    class Inline(ms.ScheduleRule):
        def apply(self, sch: Any, block: Any) -> Any:
            if sch.get(block).name_hint == "B":
                sch.compute_inline(block)
            return [sch]

    rule = Splits()
    a = tw.te.placeholder((8, 8), name="A")
    b = tw.te.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = tw.te.compute((8, 8), lambda i, j: b[i, j] * 2.0, name="C")
    module = ir.IRModule({"main": tw.te.create_prim_func([a, c], name="main")})
    assert len(_given(ms.PostOrderApply(), Inline(), rule).generate_design_space(module)) == 2
    assert rule.seen == ["root", "C"]


def test_a_filter_of_blocks() -> None:
    rule = Splits()
    space = ms.PostOrderApply(lambda block: block.name_hint == "C")
    assert len(_given(space, rule).generate_design_space(_module())) == 2
    assert rule.seen == ["C"]


@pytest.mark.parametrize("made", [lambda sch: tw.Schedule(_module()), lambda sch: tw.Schedule(sch.mod)])
def test_rules_go_on_with_what_they_got(made: Callable[[tw.Schedule], tw.Schedule]) -> None:
    """Blocks are known by the schedule that a rule was given, and not by another one of the same program."""

    class Another(ms.ScheduleRule):
        def apply(self, sch: tw.Schedule, block: Any) -> list[tw.Schedule]:
            return [made(sch)]

    with pytest.raises(tw.ScheduleError, match="not made of the one it got") as error:
        _given(ms.PostOrderApply(), Another()).generate_design_space(_module())
    assert error.value.code == "post_order_apply/P2"


def test_blocks_need_names_of_their_own() -> None:
    @T.prim_func
    def twice(A: T.Buffer((4,), "float32")) -> None:
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                A[vi] = 1.0
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                A[vi] = 2.0

    with pytest.raises(tw.ScheduleError, match="Duplicated block name B in function main") as error:
        _given(ms.PostOrderApply()).generate_design_space(ir.IRModule({"main": twice}))
    assert error.value.code == "post_order_apply/P1"


def test_all_functions_of_a_module_without_a_main_one() -> None:
    @I.ir_module
    class Two:
        @T.prim_func
        def first(A: T.Buffer((4,), "float32")) -> None:
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    A[vi] = 1.0

        @T.prim_func
        def second(A: T.Buffer((4,), "float32")) -> None:
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    A[vi] = 2.0

    assert len(_given(ms.PostOrderApply(), Splits()).generate_design_space(Two)) == 4


def test_functions_as_spaces() -> None:
    def nothing(sch: Any) -> None:
        sch.split(sch.get_loops("C")[0], [None, 2])

    def several(sch: Any) -> Any:
        return [sch, sch.copy()]

    module = _module()
    (sch,) = ms.ScheduleFn(nothing).generate_design_space(module)
    assert len(sch.get_loops("C")) == 4
    sch.verify()
    assert len(ms.ScheduleFn(several).generate_design_space(module)) == 2
    union = ms.SpaceGeneratorUnion([ms.ScheduleFn(nothing), ms.ScheduleFn(several)])
    assert len(union.generate_design_space(module)) == 3
    with pytest.raises(tw.ArgumentError) as error:
        ms.ScheduleFn(lambda sch: 3).generate_design_space(module)
    assert error.value.code == "search/schedule"


def test_exceptions_come_back_as_they_were_raised() -> None:
    class Failure(Exception):
        pass

    failure = Failure("here")

    def fails(sch: Any) -> None:
        raise failure

    with pytest.raises(Failure) as error:
        ms.ScheduleFn(fails).generate_design_space(_module())
    assert error.value is failure


def test_a_union_initializes_its_members() -> None:
    inner = ms.PostOrderApply()
    union = ms.SpaceGeneratorUnion([inner])
    union.initialize(context_of("llvm"))
    assert next(type(rule).__name__ for rule in inner.schedule_rules) == "ApplyCustomRule"
    assert len(union.clone().generate_design_space(_module())) == len(union.generate_design_space(_module()))


def test_what_is_not_given_follows_from_the_target() -> None:
    space = ms.PostOrderApply()
    space.schedule_rules = []
    space.initialize(context_of("llvm"))
    assert space.schedule_rules == []
    assert space.postprocs is not None and space.mutators is not None
    unknown = ms.PostOrderApply()
    unknown.initialize(_core.TuneContext())
    assert unknown.schedule_rules is None
    assert len(unknown.generate_design_space(_module())) == 1
    with pytest.raises(tw.ArgumentError, match="Unsupported kind: c"):
        ms.PostOrderApply().initialize(context_of("c"))


def test_the_same_seed_draws_the_same() -> None:
    def tiles(seed: int) -> list[str]:
        space = ms.PostOrderApply()
        space.initialize(context_of("llvm", seed))
        return [sch.trace.as_json() for sch in space.generate_design_space(_module("matmul"))]

    assert tiles(3) == tiles(3)
    assert tiles(3) != tiles(4)


class Known(ms.SpaceGenerator):
    """The schedule as it is, and what it was initialized with."""

    def __init__(self) -> None:
        super().__init__()
        self.task = ""

    def initialize(self, context: Any) -> None:
        super().initialize(context)
        self.task = context.task_name

    def generate_design_space(self, module: Any) -> Any:
        return [tw.Schedule(module), tw.Schedule(module)]


def test_a_space_of_a_subclass() -> None:
    context = context_of("llvm")
    context.task_name = "mine"
    context.space_generator = space = Known()
    assert context.space_generator is space
    context.initialize()
    assert space.task == "mine"
    assert len(ms.SpaceGeneratorUnion([space, space]).generate_design_space(_module())) == 4
    assert space.clone() is space


def test_what_a_subclass_leaves_out() -> None:
    class Empty(ms.SpaceGenerator):
        pass

    class Nothing(ms.ScheduleRule):
        pass

    with pytest.raises(NotImplementedError, match="Empty does not define generate_design_space"):
        ms.SpaceGeneratorUnion([Empty()]).generate_design_space(_module())
    with pytest.raises(NotImplementedError, match="Nothing does not define apply"):  # fails on every block
        _given(ms.PostOrderApply(), Nothing()).generate_design_space(_module())
    sch = tw.Schedule(_module())
    with pytest.raises(NotImplementedError, match="Nothing does not define apply"):
        Nothing().apply(sch, sch.get_block("C"))


def test_generators_by_name() -> None:
    assert type(ms.SpaceGenerator.create()) is ms.PostOrderApply
    given = ms.SpaceGenerator.create("post-order-apply", sch_rules=[])
    assert type(given) is ms.PostOrderApply and given.sch_rules == []
    assert ms.SpaceGenerator.create(given) is given
    function = ms.SpaceGenerator.create(lambda sch: [sch, sch], postprocs=[])
    assert type(function) is ms.ScheduleFn and function.postprocs == []
    assert ms.SpaceGenerator.create("union").generate_design_space(_module()) == []
    assert len(ms.SpaceGenerator.create("union", [function]).generate_design_space(_module())) == 2
    with pytest.raises(tw.ArgumentError, match="there is no space 'intersection'") as error:
        ms.SpaceGenerator.create("intersection")
    assert error.value.code == "search/space"


def test_a_union_of_functions() -> None:
    @tw.space(program("relu"))
    def tiles(sch: Any) -> None:
        sch.split(sch.get_loops("C")[0], [None, 2])

    union = ms.SpaceGeneratorUnion([tiles, lambda sch: [sch, sch.copy()], ms.ScheduleFn(lambda sch: sch)])
    made = union.generate_design_space(_module())
    assert [len(sch.get_loops("C")) for sch in made] == [4, 3, 3, 3]
    for wrong in (3, "post-order-apply"):
        with pytest.raises(tw.ArgumentError, match="space_generators holds what is not a space") as error:
            ms.SpaceGeneratorUnion([wrong])  # type: ignore[list-item]
        assert error.value.code == "search/parts"


def test_the_published_name_of_the_filter() -> None:
    rule = Splits()
    space = ms.PostOrderApply(f_block_filter=lambda block: block.name_hint == "C")
    assert len(_given(space, rule).generate_design_space(_module())) == 2
    assert rule.seen == ["C"]
    with pytest.raises(tw.ArgumentError, match="names of one argument") as error:
        ms.PostOrderApply(lambda block: True, f_block_filter=lambda block: True)
    assert error.value.code == "search/parts"


def _spaces_seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The generators that searches begin with."""
    seen: list[Any] = []
    initialize = _core.TuneContext.initialize

    def noting(self: Any) -> None:
        seen.append(self.space_generator)
        initialize(self)

    monkeypatch.setattr(_core.TuneContext, "initialize", noting)
    return seen


@pytest.mark.parametrize("kind", ["post-order-apply", "cpu-rules", "function", "union"])
def test_tune_takes_any_space(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    product = tw.testing.workloads.matmul(16, 32, 16)

    def vectors(sch: tw.Schedule) -> None:
        _, j, _ = sch.get_loops(sch.get_block("C"))
        sch.split(j, factors=sch.sample_perfect_tile(j, n=2))

    given: Any = {
        "function": ms.ScheduleFn(vectors),
        "union": ms.SpaceGeneratorUnion([ms.PostOrderApply(), ms.CpuRules(), ms.ScheduleFn(vectors)]),
    }.get(kind, kind)
    seen = _spaces_seen(monkeypatch)
    result = tw.tune(product, space=given, trials=4, progress=None)
    assert result.record is not None and result.progress.outcomes.get("wrong_result", 0) == 0
    classes = {"post-order-apply": ms.PostOrderApply, "cpu-rules": ms.CpuRules.__base__, "function": ms.ScheduleFn}
    assert isinstance(seen[0], classes.get(kind, ms.SpaceGeneratorUnion))
    if not isinstance(given, str):
        assert seen[0] is not given and given.postprocs is None  # each search has its own


def test_points_of_a_union_come_from_all_members() -> None:
    """Where steps depend on draws, the function is run anew for each point, beside spaces whose steps are fixed."""
    runs = []

    def reads(sch: tw.Schedule, first: bool) -> None:
        runs.append(first)
        (i, j) = sch.get_loops(sch.get_block("B"))[:2]
        for _ in range(int(sch.sample_categorical([0, 1, 2], [0.2, 0.3, 0.5]))):
            _, j = sch.split(j, [None, 2])

    def fixed(sch: tw.Schedule) -> None:
        sch.annotate(sch.get_block("B"), "ways", sch.sample_categorical([1, 2, 3, 4], [0.25] * 4))

    @T.prim_func
    def double(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
        for i, j in T.grid(8, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    members = [ms.ScheduleFn(fixed), ms.SpaceGeneratorUnion([_core.FunctionSpace(reads)])]
    union = ms.SpaceGeneratorUnion(members, sch_rules=[], postprocs=[], mutator_probs={})
    task = ms.TuneContext(double, target="llvm", space_generator=union, search_strategy="guided", rand_state=3)
    task.pre_tuning(max_trials=40, num_trials_per_iter=8)
    kinds = set()
    found = 0
    while (candidates := task.generate_measure_candidates()) is not None:
        for candidate in candidates:
            names = [step.kind.name for step in candidate.sch.trace.insts]
            kinds.add((names.count("Split"), "Annotate" in names))
        found += len(candidates)
        task.notify_runner_results(candidates, [ms.RunnerResult([1.0], None) for _ in candidates])
    assert kinds == {(0, True), (0, False), (1, False), (2, False)} and found == 7
    assert runs[0] and not all(runs)


def test_cpu_rules_go_by_the_target_and_the_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    product = tw.testing.workloads.matmul(64, 64, 64)
    lanes = {}
    for cpu in ("haswell", "skylake-avx512"):
        target = f"llvm -mcpu={cpu} -num-cores=1"
        (made,) = ms.TuneContext(product, target=target, space_generator="cpu-rules").generate_design_space()
        reference = tw.Schedule(product)
        schedule_for_cpu(reference, tw.Target(target), best=True)
        assert tw.ir.structural_equal(made.mod["main"].body, reference.mod["main"].body)
        lanes[cpu] = made.mod.script()
    assert lanes["haswell"] != lanes["skylake-avx512"]
    given = []
    monkeypatch.setattr("tilewright.heuristics.cpu.schedule_for_cpu", lambda *_, sizes, **__: given.append(sizes))
    ms.TuneContext(product, target="llvm", space_generator=ms.CpuRules({"n": 8}).clone()).generate_design_space()
    assert given == [{"n": 8}]
    with pytest.raises(tw.ArgumentError, match="the context has no target") as error:
        ms.TuneContext(product, space_generator="cpu-rules").generate_design_space()
    assert error.value.code == "space/no-target"


def test_spaces_that_a_search_cannot_use() -> None:
    class Empty(ms.SpaceGenerator):
        def generate_design_space(self, module: ir.IRModule) -> list[tw.Schedule]:
            return []

    product = tw.testing.workloads.matmul(16, 16, 16)
    with pytest.raises(tw.ArgumentError, match="Empty gives no schedule") as error:
        tw.tune(product, space=Empty(), trials=1, progress=None)
    assert error.value.code == "space/empty"
    with pytest.raises(tw.ArgumentError, match="no space 'post-order'") as error:
        tw.tune(product, space="post-order", trials=1, progress=None)
    assert error.value.code == "space/name" and "cpu-rules" in error.value.hint


def test_layouts_of_parameters_stay_in_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    product = tw.testing.workloads.matmul(16, 16, 16).with_attr("layout_free_buffers", [1])
    seen = _spaces_seen(monkeypatch)
    result = tw.tune(product, space="post-order-apply", trials=2, progress=None)
    assert result.record is not None and "wrong_result" not in result.progress.outcomes
    assert not any(isinstance(postproc, ms.RewriteLayout) for postproc in seen[0].postprocs)


def test_a_cost_model_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.meta_schedule import cost_model

    made = []
    create = cost_model.create
    monkeypatch.setattr(cost_model, "create", lambda *args, **kw: made.append((args, kw)) or create(*args, **kw))
    product = tw.testing.workloads.matmul(16, 16, 16)
    assert tw.tune(product, cost_model="random", trials=2, seed=5, progress=None).record is not None
    assert made == [(("random",), {"seed": 5})]
    tw.tune(product, cost_model="none", trials=1, progress=None)
    with pytest.raises(tw.ArgumentError, match="no cost model of the kind 'tree'"):
        tw.tune(product, cost_model="tree", trials=1, progress=None)
