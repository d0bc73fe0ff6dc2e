"""MultiLevelTilingTensorCore: fragments of products, held by warps, by wmma or in registers (m16n8k8)."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.tensor_intrin.cuda import get_m16n8k8_intrin_group, get_wmma_intrin_group
from tilewright.testing import formulas

from .sketches import GPU, NEW_GPU, annotations, blocks, check, context_of, sketches


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
        ({"tile_binds": ["blockIdx.y", "threadIdx.x", "threadIdx.y"]}, "lanes of a warp"),
        ({"tile_binds": ["blockIdx.y", "blockIdx.x"]}, "spatial tile bound to threadIdx.y"),
        ({"structure": "SSSRSS"}, "two reduction tiles"),
        ({"reuse_write": ms.ReuseType("no", [], "shared")}, "reuse_write"),
        ({"reuse_read": ms.ReuseType("no", [], "shared")}, "reuse_read"),
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


# ---- m16n8k8


def _registers(*out_dtypes: str, **options: Any) -> Any:
    groups = [get_m16n8k8_intrin_group(out_dtype) for out_dtype in out_dtypes or ["float32"]]
    return ms.MultiLevelTilingTensorCore(
        groups,
        **{
            "structure": "SSSRRSRS",
            "tile_binds": ["blockIdx.y", "blockIdx.x", "threadIdx.y"],
            "max_innermost_factor": 4,
            "vector_load_lens": [1, 2, 4, 8],
            "reuse_read": ms.ReuseType("must", [4], "shared.dyn"),
            "reuse_write": ms.ReuseType("no", [], "shared.dyn"),
            "use_software_pipeline": True,
            **options,
        },
    )


def _names(copied: str = "") -> list[str]:
    a, b, c = f"A_reindex{copied}_shared.dyn", f"B_reindex{copied}_shared.dyn", f"C_reindex{copied}_m16n8k8.matrixC"
    return [a, b, f"{a}_m16n8k8.matrixA_o", f"{b}_m16n8k8.matrixB_o", "C_o", c]


def _loop_annotations(sch: Any) -> list[dict[str, Any]]:
    """Of the loops of the reduction around the product: of those that copies stand in."""
    loops = [sch.get(loop) for loop in sch.get_loops(sch.get_block("C_o"))[3:5]]
    return [{key: list(value) for key, value in loop.annotations.items()} for loop in loops]


@pytest.mark.parametrize("shape", [(32, 32, 64), (32, 64, 16), (64, 32, 8)])
@pytest.mark.parametrize("out_dtype", ["float16", "float32"])
def test_registers_of_a_product(shape: tuple[int, int, int], out_dtype: str) -> None:
    function = _product(*shape, types=("float16", out_dtype))
    (sch,) = sketches(function, _registers("float16", "float32"), target=GPU)
    assert blocks(sch) == _names()
    product, short = annotations(sch, "C_o"), {"float16": "f16", "float32": "f32"}[out_dtype]
    assert product["meta_schedule.auto_tensorize"] == f"mma_sync_m16n8k8_f16f16{short}"
    assert product["meta_schedule.auto_tensorize_init"] == f"mma_init_m16n8k8_{short}"
    assert product["warp_execution"] == 1
    check(function, [sch])


def test_regions_are_copied_in_a_layout_of_their_own() -> None:
    (sch,) = sketches(_product(32, 32, 64), _registers(), target=GPU)
    names = _names()
    for operand, copied, loaded in zip("AB", names[:2], names[2:4], strict=True):
        by_rule = annotations(sch, copied)
        assert by_rule["auto_copy"] == 1 and by_rule["permuted_layout"] == f"g2s_{operand}"
        assert [int(number) for number in by_rule["buffer_dim_align"][0]] == [0, 0, 32, 8]
        assert annotations(sch, loaded) == {
            "meta_schedule.auto_tensorize": f"mma_load_m16n8k8_f16_{operand}_shared_dyn",
            "permuted_layout": f"s2l_{operand}",
        }
    assert annotations(sch, names[-1]) == {"auto_copy": 1}


def test_copies_of_registers_run_ahead() -> None:
    function = _product(32, 32, 64)
    (sch,) = sketches(function, _registers(), target=GPU)
    assert _loop_annotations(sch) == [
        {
            "software_pipeline_async_stages": [0],
            "software_pipeline_stage": [0, 0, 1, 2, 2],
            "software_pipeline_order": [0, 1, 3, 2, 4],
        },
        {"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]},
    ]
    assert annotations(sch, "A_reindex_shared.dyn")["vector_bytes"] == 16
    for rule, product in ((_registers(use_software_pipeline=False), function), (_registers(), _product(32, 32, 8))):
        (sch,) = sketches(product, rule, target=GPU)
        assert _loop_annotations(sch) == [{}, {}]
        assert "vector_bytes" not in annotations(sch, "A_reindex_shared.dyn")


def test_tiles_of_a_warp_are_whole_loads() -> None:
    (sch,) = sketches(_product(128, 128, 32), _registers(), target=GPU)
    drawn = [step.split(" = ")[1] for step in str(sch.trace).splitlines() if "sample_partitioned_tile" in step]
    assert [step[step.index("partition_pos") : step.index(", decision")] for step in drawn] == [
        "partition_pos=3, innerpart_factor=2",
        "partition_pos=3, innerpart_factor=4",
    ]


@pytest.mark.parametrize("shape", [(31, 32, 32), (60, 29, 13), (31, 31, 31)])
def test_registers_of_padded_sizes(shape: tuple[int, int, int]) -> None:
    function = _product(*shape)
    (sch,) = sketches(function, _registers(), target=GPU)
    assert [name.replace("_pad", "") for name in blocks(sch)] == _names()
    check(function, [sch])


@pytest.mark.parametrize("shape", [(1, 8, 8, 8, 32, 3, 1, 1), (1, 6, 5, 8, 32, 3, 1, 1)])
def test_registers_of_convolutions(shape: tuple[int, ...]) -> None:
    function = te.create_prim_func(formulas.conv2d_nhwc(*shape, in_dtype="float16", out_dtype="float32"), name="main")
    (sch,) = sketches(function, _registers(), target=GPU)
    assert "m16n8k8.matrixC" in sch.mod.script()
    check(function, [sch])


@pytest.mark.parametrize(
    "function",
    [
        _product(16, 32, 32),
        _product(32, 16, 32),
        _product(33, 40, 20),
        _product(32, 32, 32, types=("int8", "int32")),
        te.create_prim_func(formulas.batch_matmul_nkkm(2, 32, 32, 16, "float16", "float32"), name="main"),
    ],
)
def test_what_fills_no_loads_or_has_batches_stays(function: Any) -> None:
    (sch,) = sketches(function, _registers(), target=GPU)
    assert len(blocks(sch)) == 1 and "tiling_structure" not in sch.mod.script()


@pytest.mark.parametrize(
    ("options", "copied"),
    [
        ({"reuse_write": ms.ReuseType("must", [2], "shared.dyn")}, 1),
        ({"reuse_write": ms.ReuseType("may", [2], "shared.dyn")}, 0),
        (
            {
                "structure": "SSRSRS",
                "tile_binds": ["blockIdx.x", "threadIdx.y"],
                "reuse_read": ms.ReuseType("must", [3], "shared.dyn"),
            },
            0,
        ),
    ],
)
def test_registers_with_other_copies_and_tiles(options: dict[str, Any], copied: int) -> None:
    function = _product(64, 64, 32)
    made = sketches(function, _registers(**options), target=GPU)
    for sch in made:
        assert len(blocks(sch)) == len(_names()) + copied
    check(function, made)


@pytest.mark.parametrize("seed", range(4))
def test_other_draws_of_registers(seed: int) -> None:
    function = _product(60, 96, 24)
    check(function, sketches(function, _registers(), target=GPU, seed=seed))


def test_blocks_of_threads_that_share_rows_or_columns() -> None:
    function = _product(128, 128, 16)
    (sch,) = sketches(function, _registers(), target=GPU)
    decisions = iter([[2, 2, 1, 2, 1], [2, 2, 1, 4, 1], [1, 1, 2]])
    other = tw.Schedule(function, seed=1)
    sch.trace.apply_to_schedule(
        other,
        remove_postproc=True,
        decision_provider=lambda step, *rest: next(decisions) if "Sample" in str(step.kind) else rest[-1],
    )
    check(function, [other])


def test_postprocessors_put_the_instructions_in() -> None:
    (sch,) = sketches(_product(64, 64, 64), _registers(), target=NEW_GPU)
    sch.enter_postproc()
    context = context_of(NEW_GPU)
    for postproc in ms.Postproc.defaults("cuda-tensorcore"):
        postproc.initialize(context)
        assert postproc.apply(sch)
    text = sch.mod.script()
    for word in ("T.ptx_ldmatrix", "T.ptx_mma", 'thread="threadIdx.x"'):
        assert word in text
    assert "auto_tensorize" not in text
