"""Tensor intrinsics by TVM's names."""

import pytest
import tvm

START = """
import tilewright.compat.tvm
import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.tir.schedule.testing import verify_trace_roundtrip
"""

PRODUCT_OF_BYTES = """
def product(lhs, rhs, n=128):
    a = te.placeholder((n, n), name="A", dtype=lhs)
    b = te.placeholder((n, n), name="B", dtype=rhs)
    k = te.reduce_axis((0, n), name="k")
    terms = lambda i, j: a[i, k].astype("int32") * b[j, k].astype("int32")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(terms(i, j), axis=[k]), name="C")])
"""


@pytest.mark.parametrize(
    "name",
    ["dot_product_common import DP4A_S8S8S32_INTRIN", "rocm import AMDGPU_SDOT4_INTRIN"],
)
def test_four_bytes_at_a_time_on_a_gpu(python, name):
    python(
        START,
        PRODUCT_OF_BYTES,
        f"from tvm.tir.tensor_intrin.{name} as INTRIN",
        """
        func = product("int8", "int8")
        sch = tir.Schedule(func, debug_mask="all")
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        by, ty, yi = sch.split(i, factors=sch.sample_perfect_tile(i, n=3))
        bx, tx, xi = sch.split(j, factors=sch.sample_perfect_tile(j, n=3))
        ko, ki = sch.split(k, [None, 4])
        sch.reorder(by, bx, ty, tx, yi, xi)
        result = sch.cache_write(block, 0, "local")
        sch.reverse_compute_at(result, tx)
        for index in (0, 1):
            sch.compute_at(sch.cache_read(block, index, "shared"), ko, True)
        sch.decompose_reduction(block, ko)
        sch.tensorize(ki, INTRIN)
        verify_trace_roundtrip(sch=sch, mod=func)
        """,
    )


@pytest.mark.parametrize(
    ("name", "types", "lanes", "group"),
    [
        ("x86 import VNNI_DOT_16x4_INTRIN", ("uint8", "int8"), 16, 4),
        ("x86 import AVX512_DOT_16x4_INTRIN", ("uint8", "int8"), 16, 4),
        ("arm_cpu import ARM_DOT_4x4_i8_SDOT_INTRIN", ("int8", "int8"), 4, 4),
        ("arm_cpu import ARM_DOT_4x4_i8_NEON_INTRIN", ("int8", "int8"), 4, 4),
        ("hexagon import VRMPY_u8u8i32_INTRIN", ("uint8", "uint8"), 32, 4),
        ("hexagon import VDMPY_i16i16i32_INTRIN", ("int16", "int16"), 32, 2),
    ],
)
def test_rows_of_groups(python, name, types, lanes, group):
    python(
        START,
        PRODUCT_OF_BYTES,
        f"from tvm.tir.tensor_intrin.{name} as INTRIN",
        f"""
        func = product(*{types})
        sch = tir.Schedule(func, debug_mask="all")
        block = sch.get_block("C")
        packed = sch.cache_read(block, 1, "global")
        layout = lambda i, j: [i // {lanes}, j // {group}, i % {lanes}, j % {group}]
        sch.transform_layout(packed, ("write", 0), layout)
        i, j, k = sch.get_loops(block)
        jo, ji = sch.split(j, factors=[None, {lanes}])
        ko, ki = sch.split(k, factors=[None, {group}])
        sch.reorder(ko, ji, ki)
        sch.decompose_reduction(block, ko)
        sch.tensorize(ji, INTRIN)
        verify_trace_roundtrip(sch=sch, mod=func)
        """,
    )


def test_pointers_to_memory_of_any_layout(python):
    text = python(
        START,
        """
        @T.prim_func
        def row(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
            for i, j, k in T.grid(8, 8, 4):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
        """,
        """
        @T.prim_func
        def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
            A = T.match_buffer(a, (4,), offset_factor=1)
            B = T.match_buffer(b, (4,), offset_factor=1)
            C = T.match_buffer(c, (), offset_factor=1)
            with T.block("root"):
                T.reads(C[()], A[0:4], B[0:4])
                T.writes(C[()])
                for i in range(0, 4):
                    with T.block("update"):
                        vi = T.axis.remap("R", [i])
                        C[()] = C[()] + A[vi] * B[vi]

        @T.prim_func
        def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
            A = T.match_buffer(a, (4,), offset_factor=1)
            B = T.match_buffer(b, (4,), offset_factor=1)
            C = T.match_buffer(c, (), offset_factor=1)
            with T.block("root"):
                T.reads(C[()], A[0:4], B[0:4])
                T.writes(C[()])
                T.evaluate(T.call_extern("int32", "dot", C.data, C.elem_offset, A.data, B.data))

        tir.TensorIntrin.register("dot", desc, impl)
        assert tir.TensorIntrin.get("nothing", allow_missing=True) is None
        sch = tir.Schedule(row, debug_mask="all")
        sch.tensorize(sch.get_loops(sch.get_block("C"))[2], "dot")
        verify_trace_roundtrip(sch=sch, mod=row)
        print(sch.mod.script())
        """,
    )
    assert any("T.match_buffer(C[vi_o, vj_o], ()" in line for line in text)


@pytest.mark.parametrize(
    ("constant", "name"),
    [
        ("WMMA_LOAD_16x16x16_F16_A_INTRIN", "wmma_load_16x16x16_f16_a_shared"),
        ("WMMA_LOAD_16x16x16_S8_B_TRANS_DYN_INTRIN", "wmma_load_16x16x16_s8_b_trans_shared_dyn"),
        ("WMMA_LOAD_8x8x32_S4_B_TRANS_INTRIN", "wmma_load_8x8x32_s4_b_trans_shared"),
        ("WMMA_FILL_16x16x16_F32_INTRIN", "wmma_fill_16x16x16_f32"),
        ("WMMA_STORE_16x16x16_F16_SHARED_DYN_INTRIN", "wmma_store_16x16x16_f16_shared_dyn"),
        ("WMMA_STORE_8x8x32_S32_GLOBAL_INTRIN", "wmma_store_8x8x32_s32_global"),
        ("WMMA_SYNC_16x16x16_f16f16f32_TRANS_INTRIN", "wmma_sync_16x16x16_f16f16f32_trans"),
        ("MMA_store_16x16_f32_global_INTRIN", "mma_store_16x16_f32_global_"),
    ],
)
def test_constants_of_gpus(constant, name):
    assert getattr(tvm.tir.tensor_intrin.cuda, constant) == name
    assert tvm.tir.TensorIntrin.get(name).desc is not None


def test_factors_of_one_type():
    from tvm.tir.tensor_intrin import cuda, rocm

    group = cuda.get_mma_intrin_group("shared", "global", "float16", "float32", False, True, False)
    assert (group["load_a"], group["compute"]) == ("mma_ldmatrix_f16_a", "mma_f16f16f32_trans_b")
    assert (cuda.WARP_SIZE, rocm.WARP_SIZE, cuda.M_DIM) == (32, 64, 16)
    place = cuda.index_map_shared_16x16_to_ldmatrix_32x8_layout([9, 3])
    assert place == list(cuda.shared_16x16_to_ldmatrix_32x8_layout(9, 3))
