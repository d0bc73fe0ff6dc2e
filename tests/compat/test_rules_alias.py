"""Spaces and rules under TVM's names."""

from __future__ import annotations

import re
from typing import Any

import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import te
from tvm.meta_schedule.schedule_rule import PyScheduleRule
from tvm.meta_schedule.space_generator import PySpaceGenerator
from tvm.meta_schedule.testing import te_workload
from tvm.meta_schedule.testing.space_generation import check_sketches, generate_design_space, get_rules


def _matmul() -> Any:
    return te.create_prim_func(te_workload.matmul(6, 4, 8))


@ms.derived_object
class Halves(PyScheduleRule):
    """Two ways to split the first loop."""

    def __init__(self, least: int = 2) -> None:
        super().__init__()
        self.least = least

    @classmethod
    def coarse(cls) -> Any:
        return cls(3)

    def _initialize_with_tune_context(self, context: Any) -> None:
        self.task = context.task_name

    def apply(self, sch: Any, block: Any) -> list[Any]:
        if not sch.get_loops(block):
            return [sch]
        sch.split(sch.get_loops(block)[0], [None, self.least])
        return [sch]


def test_a_rule_of_ones_own() -> None:
    rule = Halves.coarse()
    assert isinstance(rule, Halves)
    assert rule.least == 3
    rule.least = 2
    (sch,) = generate_design_space("llvm", _matmul(), tvm.target.Target("llvm"), None, [rule])
    assert rule.task == "test"
    assert rule._inst._outer() is rule
    assert len(sch.get_loops(sch.get_block("C"))) == 4
    assert re.fullmatch(r"meta_schedule.Halves\(0x[0-9a-f]+\)", str(rule))


def test_what_a_component_does_not_define() -> None:
    @ms.derived_object
    class Nothing(PyScheduleRule):
        pass

    @ms.derived_object
    class Nowhere(PySpaceGenerator):
        pass

    with pytest.raises(tvm.TVMError, match="PyScheduleRule's InitializeWithTuneContext method not implemented!"):
        Nothing().initialize(None)
    with pytest.raises(tvm.TVMError, match="PySpaceGenerator's GenerateDesignSpace method not implemented!"):
        Nowhere().generate_design_space(None)
    with pytest.raises(TypeError, match="not allowed"):
        ms.derived_object(type("More", (Nothing,), {}))


def test_sketches_are_found_whatever_their_order() -> None:
    mod = _matmul()
    rules = get_rules("llvm", ms.schedule_rule.MultiLevelTiling)
    made = generate_design_space("llvm", mod, tvm.target.Target("llvm"), None, rules)
    decisions = [
        ("SamplePerfectTile", [1, 2, 1, 3]),
        ("SamplePerfectTile", [2, 1, 2, 1]),
        ("SamplePerfectTile", [4, 2]),
    ]
    expected = []
    for sketch in reversed(made):
        sch = tvm.tir.Schedule(mod)
        draws = [step for step in sketch.trace.insts if step.kind.name.startswith("Sample")]
        taken = dict(zip(draws, [value for _, value in decisions], strict=True))
        type(sketch.trace)(sketch.trace.insts, taken).apply_to_schedule(sch, remove_postproc=True)
        expected.append(sch.mod["main"])
    check_sketches(mod, made, expected, [decisions] * 3)
    with pytest.raises(AssertionError, match="Expected sketch #0"):
        check_sketches(mod, made, [mod, *expected[:2]], [decisions] * 3)
    with pytest.raises(AssertionError, match="3 sketches, 1 were expected"):
        check_sketches(mod, made, expected[:1], [decisions])


def test_rules_by_kind() -> None:
    assert len(ms.ScheduleRule.create("cuda")) == 7
    with pytest.raises(ValueError, match="Unsupported kind"):
        ms.ScheduleRule.create("c")
    space = ms.space_generator.PostOrderApply(sch_rules="llvm", postprocs=[], mutator_probs={})
    assert len(space.sch_rules) == 7
    assert ms.SpaceGenerator.create(lambda sch: None).sch_rules is None


@pytest.mark.parametrize("name", te_workload.CONFIGS)
def test_workloads(name: str) -> None:
    for number in range(len(te_workload.CONFIGS[name][1])):
        assert te_workload.create_te_workload(name, number).params


def test_tensors_of_one_shape_are_added_as_a_whole() -> None:
    a = te.placeholder((4, 6), name="A")
    b = te.placeholder((4, 6), name="B")
    text = te.create_prim_func([a, b, a + b]).script()
    assert "T_add[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[v_ax0, v_ax1]" in text
    with pytest.raises(TypeError, match="element by element"):
        _ = a + te.placeholder((6, 4), name="C")


def test_processors_of_other_makes() -> None:
    assert tvm.target.Target("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -num-cores 2").attrs["num-cores"] == 2
    hexagon = tvm.target.hexagon("v69", num_cores=4, vtcm_capacity=1024)
    assert str(hexagon) == "hexagon -mcpu=hexagonv69 -num-cores=4 -vtcm-capacity=1024"
    assert tvm.target.Target(hexagon, host=hexagon).host == hexagon


def test_threads_of_a_gpu_are_known_where_they_are_said() -> None:
    assert tvm.target.Target("cuda -arch=sm_70").attrs["max_threads_per_block"] == 0
    assert tvm.target.Target("nvidia/geforce-rtx-3070").attrs["max_threads_per_block"] == 1024


def test_winograd_is_cached_at_the_level_of_the_target() -> None:
    levels = []
    for target in ("llvm", "nvidia/nvidia-a100"):
        with tvm.target.Target(target):
            function = te_workload.create_te_workload("C2D_WIN_NHWC", 0)
        sch = tvm.tir.Schedule(function)
        block = sch.get(sch.get_block("bgemm"))
        levels.append([int(level) for level in block.annotations["meta_schedule.write_cache_level"]])
    assert levels == [[2], [3]]
