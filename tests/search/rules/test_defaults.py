"""The spaces that the default rules of each kind of target make."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.meta_schedule.schedule_rule import rule_kind
from tilewright.testing import formulas

from .sketches import NEW_GPU, PROGRAMS, check, program, sketches


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", ["llvm", "avx512", "vnni", "hexagon"])
def test_every_sketch_computes_the_same(kind: str, name: str) -> None:
    function = program(name)
    check(function, sketches(function, *ms.ScheduleRule.defaults(kind)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_sketch_for_a_gpu_is_made(name: str) -> None:
    function = program(name)
    made = sketches(function, *ms.ScheduleRule.defaults("cuda"), target=NEW_GPU)
    assert made
    for sch in made:
        assert sch.trace.simplified(remove_postproc=True) is not None


def test_order_of_rules() -> None:
    names = {
        kind: [type(rule).__name__ for rule in ms.ScheduleRule.defaults(kind)] for kind in ("llvm", "cuda", "dotprod")
    }
    first = ["ApplyCustomRule", "InlineConstantScalars", "AutoInline", "AddRFactor"]
    last = ["MultiLevelTiling", "ParallelizeVectorizeUnroll", "RandomComputeLocation"]
    assert names["llvm"] == first + last
    assert names["dotprod"] == first + ["MultiLevelTilingWithIntrin"] * 3 + last
    assert names["cuda"] == [
        "ApplyCustomRule",
        "MultiLevelTiling",
        "InlineConstantScalars",
        "AutoInline",
        "CrossThreadReduction",
        "ParallelizeVectorizeUnroll",
        "AutoBind",
    ]


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("llvm", "llvm"),
        ("llvm -mcpu=skylake-avx512", "avx512"),
        ("llvm -mcpu=cascadelake", "vnni"),
        ("cuda -arch=sm_70", "cuda"),
        ("cuda -arch=sm_80", "cuda-tensorcore"),
        ("c", "c"),
        ("hexagon -mcpu=hexagonv69", "hexagon"),
    ],
)
def test_kinds(target: str, kind: str) -> None:
    assert rule_kind(tw.Target(target)) == kind


def test_kinds_without_defaults_are_refused() -> None:
    with pytest.raises(tw.ArgumentError, match="Unsupported kind: c") as error:
        ms.ScheduleRule.defaults("c")
    assert error.value.code == "space/no-defaults"


def test_lists_by_their_published_names() -> None:
    for part in (ms.ScheduleRule, ms.Postproc):
        assert [type(each) for each in part.create("llvm")] == [type(each) for each in part.defaults("llvm")]
    mutators = {type(mutator): probability for mutator, probability in ms.Mutator.create("cuda").items()}
    assert mutators == {type(mutator): probability for mutator, probability in ms.Mutator.defaults("cuda")}
    for part in (ms.ScheduleRule, ms.Postproc, ms.Mutator):
        with pytest.raises(tw.ArgumentError, match="Unsupported kind: c"):
            part.create("c")


def test_gpus_with_tensor_cores_have_a_rule_more() -> None:
    kinds = [[type(rule).__name__ for rule in ms.ScheduleRule.defaults(kind)] for kind in ("cuda", "cuda-tensorcore")]
    assert kinds[1] == [kinds[0][0], "MultiLevelTilingTensorCore", *kinds[0][1:]]


def test_products_of_halves_take_tensor_cores() -> None:
    function = te.create_prim_func(formulas.matmul(64, 64, 64, "float16", "float32"), name="main")
    made = sketches(function, *ms.ScheduleRule.defaults("cuda-tensorcore"), target=NEW_GPU)
    assert any("wmma_sync_16x16x16_f16f16f32" in str(sch.trace) for sch in made)
