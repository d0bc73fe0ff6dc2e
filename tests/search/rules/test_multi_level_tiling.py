"""MultiLevelTiling: levels, copies, thread axes."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.testing import formulas

from .sketches import GPU, NEW_GPU, annotations, blocks, check, made_by, program, sketches


def _loops(sch: Any, block: str) -> list[str]:
    return [sch.get(loop).loop_var.name_hint for loop in sch.get_loops(sch.get_block(block))]


def test_loops_in_the_order_of_the_structure() -> None:
    function = program("matmul")
    (sch,) = sketches(function, ms.MultiLevelTiling("SSRSRS", max_innermost_factor=4))
    assert _loops(sch, "C") == ["i_0", "j_0", "i_1", "j_1", "k_0", "i_2", "j_2", "k_1", "i_3", "j_3"]
    assert annotations(sch, "C") == {"meta_schedule.tiling_structure": "SSRSRS"}
    check(function, [sch])


@pytest.mark.parametrize("name", ["matmul", "conv2d", "groups", "depthwise", "transposed", "capsule", "heads"])
def test_copies_of_the_result_at_each_level_or_none(name: str) -> None:
    function = program(name)
    rule = ms.MultiLevelTiling("SSRSRS", reuse_write=ms.ReuseType("may", [1, 2], "global"))
    made = sketches(function, rule)
    assert len(made) == 3
    check(function, made)


def test_a_block_behind_that_copies_is_taken_as_the_copy() -> None:
    function = program("relu")
    made = sketches(function, ms.MultiLevelTiling("SSRSRS", reuse_write=ms.ReuseType("may", [1, 2], "global")))
    assert [blocks(sch) for sch in made].count(["C", "compute"]) == 3
    depths = [len(_loops(sch, "compute")) for sch in made]
    assert sorted(depths) == [2, 4, 6]
    check(function, made)


def test_must_and_the_annotation_that_says_where() -> None:
    a, b, _ = formulas.matmul(6, 4, 5)
    k = te.reduce_axis((0, 5), name="k")
    c = te.compute(
        (6, 4),
        lambda i, j: te.sum(a[i, k] * b[k, j], axis=[k]),
        name="C",
        attrs={"meta_schedule.write_cache_level": [2]},
    )
    function = te.create_prim_func([a, b, c], name="main")
    made = sketches(function, ms.MultiLevelTiling("SSRSRS", reuse_write=ms.ReuseType("may", [1], "global")))
    assert [blocks(sch) for sch in made] == [["C", "C_global"]]
    assert len(_loops(made[0], "C_global")) == 6
    check(function, made)


def test_for_a_gpu() -> None:
    function = program("matmul")
    rule = ms.MultiLevelTiling(
        "SSSRRSRS",
        ["blockIdx.x", "vthread.x", "threadIdx.x"],
        64,
        [1, 2, 3, 4, 8, 16],
        ms.ReuseType("must", [4], "shared"),
        ms.ReuseType("must", [3], "local"),
    )
    (sch,) = sketches(function, rule, target=GPU)
    assert blocks(sch) == ["A_shared", "B_shared", "C", "C_local"]
    assert annotations(sch, "C")["meta_schedule.thread_extent_low_inclusive"] == 32  # 91 spatial iterations
    assert annotations(sch, "C")["meta_schedule.thread_extent_high_inclusive"] == 1024
    assert annotations(sch, "A_shared")["meta_schedule.cooperative_fetch"] in (1, 2, 3, 4)  # of float32
    draws = [step for step in sch.trace.insts if step.kind.name == "SampleCategorical"]
    assert [list(step.attrs[0]) for step in draws] == [[1, 2, 3, 4]] * 2
    pipelines = sketches(function, rule, target=NEW_GPU)
    assert len(pipelines) == 3
    stages = [
        dict(sch.get(loop).annotations).get("software_pipeline_stage")
        for sch in pipelines
        for loop in sch.get_loops(sch.get_block("C"))
        if sch.get(loop).annotations
    ]
    assert sorted(list(each) for each in stages) == [[0, 0, 2], [0, 0, 3]]


def test_what_is_not_tiled() -> None:
    rule = ms.MultiLevelTiling("SSRSRS")
    for name in ("softmax", "norm", "pool"):  # nothing is read again along a spatial axis
        (sch,) = sketches(program(name), rule)
        assert not any(annotations(sch, block) for block in blocks(sch) if block != "T_softmax_norm")
    function = program("matmul")
    (sch,) = sketches(function, rule, rule)  # once
    assert len(_loops(sch, "C")) == 10


def test_a_filter_asks_for_more() -> None:
    seen = []

    def wanted(sch: Any, block: Any) -> bool:
        seen.append(sch.get(block).name_hint)
        return sch.get(block).name_hint == "C"

    function = program("norm")
    (sch,) = sketches(function, ms.MultiLevelTiling("SRS", filter_fn=wanted))
    assert annotations(sch, "C") == {"meta_schedule.tiling_structure": "SRS"}
    assert seen == ["D", "C"]
    check(function, [sch])


@pytest.mark.parametrize("target", [GPU, NEW_GPU])
@pytest.mark.parametrize("levels", [4, 5, 7])
def test_levels_without_loops_are_those_around(target: str, levels: int) -> None:
    """A filter may choose a block that reduces nothing: it has no loops at the levels of reductions."""
    a = te.placeholder((32, 48), name="A")
    b = te.compute((32, 48), lambda i, j: a[i, j] + 1.0, name="B")
    function = te.create_prim_func([a, b], name="main")
    rule = ms.MultiLevelTiling(
        "SSSRRSRS",
        reuse_read=ms.ReuseType("must", [levels], "shared"),
        reuse_write=ms.ReuseType("must", [4], "local"),
        filter_fn=lambda sch, block: sch.get(block).name_hint == "B",
    )
    (sch,) = sketches(function, rule, target=target)
    assert blocks(sch) == ["A_shared", "B", "B_local"]
    spatial = {4: 3, 5: 3, 7: 4}[levels]  # levels of spatial loops up to it
    fused = 1  # the copy's own loops
    assert len(_loops(sch, "A_shared")) == 2 * spatial + fused
    check(function, [sch])


def test_a_level_before_all_loops_has_no_copy() -> None:
    a = te.placeholder((32, 48), name="A")
    b = te.compute((32, 48), lambda i, j: a[i, j] + 1.0, name="B")
    function = te.create_prim_func([a, b], name="main")
    rule = ms.MultiLevelTiling(
        "RSRS",
        reuse_read=ms.ReuseType("must", [1], "shared"),
        reuse_write=ms.ReuseType("must", [1], "local"),
        filter_fn=lambda sch, block: sch.get(block).name_hint == "B",
    )
    (sch,) = sketches(function, rule, target=GPU)
    assert blocks(sch) == ["B"]
    check(function, [sch])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"structure": "SXS"}, "multi_level_tiling/structure"),
        ({"structure": "SS"}, "multi_level_tiling/structure"),
        ({"structure": "SRS", "reuse_write": ms.ReuseType("must", [4], "local")}, "multi_level_tiling/levels"),
        ({"structure": "SRS", "reuse_read": ms.ReuseType("may", [1], "local")}, "multi_level_tiling/read-reuse"),
        ({"structure": "SRS", "reuse_read": ("may", [1], "local")}, "multi_level_tiling/reuse"),
    ],
)
def test_refusals(arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.MultiLevelTiling(**arguments)
    assert error.value.code == code


def test_a_requirement_is_one_of_three() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.MultiLevelTiling("SRS", reuse_read=ms.ReuseType("perhaps", [1], "local"))
    assert error.value.code == "reuse/requirement"


def test_blocks_whose_axes_do_not_pair_with_loops() -> None:
    a = te.placeholder((6, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=[k]), name="B")
    function = te.create_prim_func([a, b], name="main")

    class Fused(ms.ScheduleRule):
        def apply(self, sch: Any, block: Any) -> Any:
            if len(sch.get_loops(block)) == 2:
                sch.split(sch.get_loops(block)[0], [2, 3])
            return [sch]

    rule = ms.MultiLevelTiling("SRS", filter_fn=lambda sch, block: True)
    (made,), space = made_by(function, Fused(), rule)
    assert len(made.get_loops(made.get_block("B"))) == 3 and space.refusals == {"multi_level_tiling/P1": 1}
    late = te.compute(
        (6,), lambda i: te.sum(a[i, k], axis=[k]), name="B", attrs={"meta_schedule.write_cache_level": [9]}
    )
    rule = ms.MultiLevelTiling("SRS", reuse_write=ms.ReuseType("may", [1], "global"), filter_fn=lambda sch, block: True)
    _, space = made_by(te.create_prim_func([a, late], name="main"), rule)
    assert space.refusals == {"multi_level_tiling/P2": 1}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"tile_binds": ["nonsense.x"]}, "multi_level_tiling/tile-binds"),
        ({"tile_binds": ["blockIdx.x", "threadIdx"]}, "multi_level_tiling/tile-binds"),
        ({"max_innermost_factor": 0}, "multi_level_tiling/innermost"),
        ({"max_innermost_factor": -2}, "multi_level_tiling/innermost"),
    ],
)
def test_tiles_that_cannot_be(wrong: dict[str, Any], code: str) -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.MultiLevelTiling("SSRSRS", **wrong)
    assert error.value.code == code
    for good in ({"tile_binds": ["blockIdx.x", "vthread.x", "vthread"]}, {"max_innermost_factor": -1}):
        assert isinstance(ms.MultiLevelTiling("SSRSRS", **good), ms.ScheduleRule)
