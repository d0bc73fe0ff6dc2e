"""MultiLevelTilingTensorCore: fragments of products, held by warps."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.tensor_intrin.cuda import get_wmma_intrin_group
from tilewright.testing import formulas

from .sketches import GPU, annotations, blocks, check, sketches


def _rule(*types: tuple[str, str, bool], scope: str = "shared", **options: Any) -> Any:
    groups = [get_wmma_intrin_group(scope, scope, *each) for each in types or [("float16", "float32", False)]]
    return ms.MultiLevelTilingTensorCore(
        groups,
        **{
            "structure": "SSSRRSRS",
            "tile_binds": ["blockIdx.y", "blockIdx.x", "threadIdx.y"],
            "max_innermost_factor": 4,
            "vector_load_lens": [1, 2, 4, 8],
            "reuse_read": ms.ReuseType("must", [4], scope),
            "reuse_write": ms.ReuseType("must", [2], scope),
            **options,
        },
    )


def _product(*shape: int, types: tuple[str, str] = ("float16", "float32")) -> Any:
    return te.create_prim_func(formulas.matmul(*shape, *types), name="main")


@pytest.mark.parametrize("shape", [(32, 32, 32), (16, 48, 32), (64, 16, 16)])
def test_fragments_of_a_product(shape: tuple[int, int, int]) -> None:
    function = _product(*shape)
    (sch,) = sketches(function, _rule(), target=GPU)
    assert blocks(sch) == [
        "A_reindex_shared",
        "B_reindex_shared",
        "A_reindex_shared_wmma.matrix_a_o",
        "B_reindex_shared_wmma.matrix_b_o",
        "C_o",
        "C_reindex_shared_wmma.accumulator_o",
        "C_reindex_shared",
    ]
    assert annotations(sch, "C_o") == {
        "meta_schedule.auto_tensorize": "wmma_sync_16x16x16_f16f16f32",
        "meta_schedule.auto_tensorize_init": "wmma_fill_16x16x16_f32",
        "meta_schedule.thread_extent_high_inclusive": 1024,
        "meta_schedule.thread_extent_low_inclusive": 1,
        "warp_execution": 1,
    }
    check(function, [sch])


@pytest.mark.parametrize("shape", [(31, 32, 32), (17, 33, 5), (16, 16, 30), (2, 3, 5)])
def test_sizes_that_do_not_divide_are_padded(shape: tuple[int, int, int]) -> None:
    function = _product(*shape)
    (sch,) = sketches(function, _rule(), target=GPU)
    assert annotations(sch, "C_o")["warp_execution"] == 1
    check(function, [sch])


@pytest.mark.parametrize("types", [("int8", "int32"), ("float16", "float16")])
def test_types(types: tuple[str, str]) -> None:
    function = _product(32, 16, 32, types=types)
    check(function, sketches(function, _rule((*types, False)), target=GPU))


def test_a_convolution_is_a_product_of_joined_axes() -> None:
    function = te.create_prim_func(
        formulas.conv2d_nhwc(1, 8, 8, 16, 16, 3, 1, 1, in_dtype="float16", out_dtype="float32"), name="main"
    )
    (sch,) = sketches(function, _rule(), target=GPU)
    copied = sch.get(sch.get_block("PadInput_reindex_shared")).writes[0].buffer
    assert [int(extent) for extent in copied.shape] == [64, 144]
    check(function, [sch])


@pytest.mark.parametrize(("channels", "kernel"), [(3, 3), (16, 1)])
def test_convolutions_whose_reduction_is_padded_or_is_a_plain_product(channels: int, kernel: int) -> None:
    shape = (1, 6, 5, channels, 16, kernel, 1, kernel // 2)
    function = te.create_prim_func(formulas.conv2d_nhwc(*shape, in_dtype="float16", out_dtype="float32"), name="main")
    (sch,) = sketches(function, _rule(), target=GPU)
    assert "wmma.accumulator" in sch.mod.script()
    check(function, [sch])


def test_each_group_that_fits_is_a_schedule_and_none_leaves_the_program() -> None:
    rule = _rule(("float16", "float32", False), ("float16", "float32", True), ("int8", "int32", False))
    # A second operand with its axes in the other order is the same to copies that bring them in order.
    assert len(sketches(_product(32, 32, 32), rule, target=GPU)) == 2
    function = _product(32, 32, 32, types=("float32", "float32"))
    (sch,) = sketches(function, rule, target=GPU)
    assert blocks(sch) == ["C"]


def test_pipelines() -> None:
    function = _product(32, 32, 64)
    (sch,) = sketches(function, _rule(use_software_pipeline=True), target=GPU)
    staged = annotations(sch, "A_reindex_shared")
    assert staged["tir.manifest_shared_memory_local_stage"] == 1 and staged["double_buffer_scope"] == 0
    check(function, [sch])
    short = _product(32, 32, 16)
    (sch,) = sketches(short, _rule(use_software_pipeline=True), target=GPU)
    assert "double_buffer_scope" not in annotations(sch, "A_reindex_shared")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tile_binds": ["blockIdx.y", "threadIdx.x", "threadIdx.y"]}, "threads of a warp"),
        ({"tile_binds": ["blockIdx.y", "blockIdx.x"]}, "no tiles of a warp"),
        ({"structure": "SSSRSS"}, "no two of the reduction"),
        ({"reuse_write": ms.ReuseType("no", [], "shared")}, "reuse_write"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], says: str) -> None:
    with pytest.raises(tw.ArgumentError, match=says) as error:
        _rule(**options)
    assert error.value.code == "multi_level_tiling/tensor-core"


def test_groups_name_intrinsics_that_there_are() -> None:
    with pytest.raises(tw.ArgumentError, match="no intrinsic for init") as error:
        ms.MultiLevelTilingTensorCore([{"compute": "wmma"}], "SSSRRSRS")
    assert error.value.code == "multi_level_tiling/intrin"
    group = {**get_wmma_intrin_group("shared", "shared", "float16", "float32", False), "store": "put"}
    with pytest.raises(tw.ArgumentError, match="'put'"):
        ms.MultiLevelTilingTensorCore([group], "SSSRRSRS")
