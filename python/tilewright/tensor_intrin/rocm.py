"""Tensor intrinsics of AMD's GPUs. Data: no code is generated for them yet."""

from __future__ import annotations

from tilewright.script import tir as T
from tilewright.tensor_intrin import rocm_mfma
from tilewright.tensor_intrin.dot_product_common import dot_of_four
from tilewright.tensor_intrin.rocm_mfma import *  # noqa: F403
from tilewright.tensor_intrin.table import register_at_import

__all__ = ["AMDGPU_SDOT4_INTRIN", *rocm_mfma.__all__]


@T.prim_func
def sdot4(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4,), "int8", align=4, offset_factor=1, scope="shared")
    B = T.match_buffer(b, (4,), "int8", align=4, offset_factor=1, scope="shared")
    C = T.match_buffer(c, (1,), "int32", align=4, offset_factor=1, scope="local")
    with T.block("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        C[0] = C[0] + T.call_llvm_pure_intrin(
            "int32",
            "llvm.amdgcn.sdot4",
            T.reinterpret("int32", A[0:4]),
            T.reinterpret("int32", B[0:4]),
            T.int32(0),
            T.bool(True),
        )


AMDGPU_SDOT4_INTRIN = "sdot4"
register_at_import(AMDGPU_SDOT4_INTRIN, dot_of_four("int8", "int8", "int32"), sdot4)
