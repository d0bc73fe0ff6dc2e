"""The spaces that the default rules of each kind of target make."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.meta_schedule.schedule_rule import rule_kind
from tilewright.testing import formulas

from .sketches import NEW_GPU, PROGRAMS, annotations, check, program, sketches


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", ["llvm", "avx512", "vnni", "avxvnni", "neon", "dotprod", "hexagon"])
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
        ("llvm -mcpu=sapphirerapids", "vnni"),  # has both
        ("llvm -mcpu=alderlake", "avxvnni"),
        ("llvm -mcpu=sierraforest", "avxvnni"),
        ("llvm -mcpu=haswell", "llvm"),
        ("llvm -mcpu=skylake-avx512 -mattr=-avx512bw", "llvm"),
        ("llvm -mtriple=aarch64-linux-gnu", "asimd"),
        ("llvm -mcpu=cortex-a72", "asimd"),
        ("llvm -mcpu=cortex-a72 -mattr=+dotprod", "dotprod"),
        ("llvm -mcpu=neoverse-n1", "dotprod"),
        ("interpreter", "llvm"),
        ("cuda -arch=sm_70", "cuda"),
        ("cuda -arch=sm_80", "cuda-tensorcore"),
        ("c", "c"),
        ("hexagon -mcpu=hexagonv69", "hexagon"),
    ],
)
def test_kinds(target: str, kind: str) -> None:
    assert rule_kind(tw.Target(target)) == kind


@pytest.mark.parametrize("text", ["native", "native -num-cores=3"])
def test_the_intrinsics_of_this_machine_are_its_own(text: str) -> None:
    target = tw.Target(text)
    kind = rule_kind(target)
    wide = {"avx512vnni": "vnni", "avxvnni": "avxvnni", "avx512bw": "avx512", "dotprod": "dotprod", "neon": "asimd"}
    assert kind == next((known for feature, known in wide.items() if feature in target.features), "llvm")
    intrin = {"vnni": "dot_16x4_vnni", "avxvnni": "dot_16x4_avxvnni", "avx512": "dot_16x4_avx512"}.get(kind)
    if intrin is not None:
        made = sketches(_bytes("uint8", "int8", "int32", 16), *ms.ScheduleRule.defaults(kind), target=text)
        assert all(intrin in str(sch.trace) for sch in made)


def _bytes(lhs: str, rhs: str, sums: str, rows: int) -> tw.ir.PrimFunc:
    """A product whose right operand is packed for instructions on so many rows of four."""
    x = te.placeholder((3, 8), lhs, name="X")
    w = te.placeholder((2, 2, rows, 4), rhs, name="W")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute(
        (3, 2 * rows),
        lambda i, j: te.sum(x[i, k].astype(sums) * w[j // rows, k // 4, j % rows, k % 4].astype(sums), axis=[k]),
        name="C",
    )
    return te.create_prim_func([x, w, c], name="main")


@pytest.mark.parametrize(
    ("kind", "cpu", "types", "intrin"),
    [
        ("vnni", "cascadelake", ("uint8", "int8", "int32", 16), "dot_16x4_vnni"),
        ("avxvnni", "alderlake", ("uint8", "int8", "int32", 16), "dot_16x4_avxvnni"),
        ("avx512", "skylake-avx512", ("uint8", "int8", "int32", 16), "dot_16x4_avx512"),
        ("asimd", "cortex-a72", ("int8", "int8", "int32", 4), "dot_4x4_i8i8s32_neon"),
        ("neon", "cortex-a72", ("int8", "int8", "int32", 4), "dot_4x4_i8i8s32_neon"),
        ("dotprod", "neoverse-n1", ("int8", "int8", "int32", 4), "dot_4x4_i8i8s32_sdot"),
        ("dotprod", "neoverse-n1", ("uint8", "uint8", "uint32", 4), "dot_4x4_u8u8u32_udot"),
        ("dotprod", "neoverse-n1", ("uint8", "uint8", "int32", 4), "dot_4x4_u8u8i32_hdot"),
    ],
)
def test_the_intrinsic_of_a_kind(kind: str, cpu: str, types: tuple[str, str, str, int], intrin: str) -> None:
    function = _bytes(*types)
    made = sketches(function, *ms.ScheduleRule.defaults(kind), target=f"llvm -mcpu={cpu} -num-cores=4")
    assert made and all(f'"{intrin}"' in str(sch.trace) for sch in made)
    check(function, made)


CPUS = {
    "llvm": "haswell",
    "avx512": "skylake-avx512",
    "vnni": "cascadelake",
    "avxvnni": "alderlake",
    "asimd": "cortex-a72",
    "neon": "cortex-a72",
    "dotprod": "neoverse-n1",
}
X86 = (16, 64, 64, [0, 16, 64, 512])
ARM = (8, 32, 32, [0, 8, 32, 256])


@pytest.mark.parametrize("kind", CPUS)
def test_numbers_of_processors(kind: str) -> None:
    """Jobs for each core, the largest innermost tile, vector extent and unrolling, as what rules write says."""
    jobs, innermost, vector, unroll = ARM if kind in ("asimd", "neon", "dotprod") else X86
    target = f"llvm -mcpu={CPUS[kind]} -num-cores=2"
    rules = ms.ScheduleRule.defaults(kind)
    function = te.create_prim_func(formulas.matmul(64, 64, 64), name="main")
    for sch in sketches(function, *rules, target=target):
        assert _drawn(sch, "SamplePerfectTile") == [[4, innermost], [4, innermost], [2, innermost]]
        assert _drawn(sch, "SampleCategorical") == [[unroll, [0.25] * 4]]
        written = annotations(sch, "root")
        assert written["meta_schedule.parallel"] == 2 * jobs and written["meta_schedule.vectorize"] == vector
        assert "meta_schedule.unroll_explicit" in written
    (rfactor,) = (rule for rule in rules if isinstance(rule, ms.AddRFactor))
    for columns, count in ((2 * jobs, 3), (2 * jobs + 1, 1)):
        thin = te.create_prim_func(formulas.matmul(1, columns, 256), name="main")
        made = sketches(thin, rfactor, target=target)
        assert len(made) == count
        assert all(_drawn(sch, "SamplePerfectTile") in ([], [[2, innermost]]) for sch in made)


def test_numbers_of_hexagon() -> None:
    function = te.create_prim_func(formulas.matmul(64, 64, 64), name="main")
    made = sketches(function, *ms.ScheduleRule.defaults("hexagon"), target="hexagon -num-cores=2")
    assert len(made) == 2
    for sch in made:
        assert _drawn(sch, "SamplePerfectTile") == [[3, 128], [2, 128], [2, 128]]
        assert _drawn(sch, "SampleCategorical") == [[[0, 16, 64, 512], [0.25] * 4]]
        written = annotations(sch, "root")
        assert written["meta_schedule.parallel"] == 32 and written["meta_schedule.vectorize"] == 128
        assert [loop.extent.value for loop in map(sch.get, sch.get_loops("C"))][-1] == 32  # 1024 bits of float32
    names = [type(rule).__name__ for rule in ms.ScheduleRule.defaults("hexagon")]
    first = ["ApplyCustomRule", "InlineConstantScalars", "AutoInline"]
    assert names == [*first, "MultiLevelTilingWideVector", "ParallelizeVectorizeUnroll"]


def _drawn(sch: tw.Schedule, kind: str) -> list[Any]:
    """What the draws of a kind are made with."""
    return [step.attrs for step in sch.trace.insts if step.kind.name == kind]


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


def test_gpus_with_tensor_cores_have_two_rules_more() -> None:
    kinds = [[type(rule).__name__ for rule in ms.ScheduleRule.defaults(kind)] for kind in ("cuda", "cuda-tensorcore")]
    assert kinds[1] == [kinds[0][0], *["MultiLevelTilingTensorCore"] * 2, *kinds[0][1:]]


def test_products_of_halves_take_tensor_cores() -> None:
    function = te.create_prim_func(formulas.matmul(64, 64, 64, "float16", "float32"), name="main")
    rules = ms.ScheduleRule.defaults("cuda-tensorcore")
    made = [str(sch.trace) for sch in sketches(function, *rules, target=NEW_GPU)]
    assert all("wmma_sync_16x16x16_f16f16f32" in trace and "m16n8k8" not in trace for trace in made)
    # What the first of the two rules takes, the second one leaves.
    del rules[1]
    (sch,) = sketches(function, *rules, target=NEW_GPU)
    assert "mma_sync_m16n8k8_f16f16f32" in str(sch.trace)
