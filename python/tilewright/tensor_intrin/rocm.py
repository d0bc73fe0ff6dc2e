"""Tensor intrinsics of AMD's GPUs. Data: no code is generated for them yet."""

from __future__ import annotations

from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin import rocm_mfma
from tilewright.tensor_intrin.dot_product_common import dot_of_four, on_four
from tilewright.tensor_intrin.rocm_mfma import *  # noqa: F403
from tilewright.tensor_intrin.table import register_at_import

__all__ = ["AMDGPU_SDOT4_INTRIN", *rocm_mfma.__all__]


@T.macro
def _by_sdot4(A: Any, B: Any, C: Any) -> None:
    C[0] = C[0] + T.call_llvm_pure_intrin(
        "int32",
        "llvm.amdgcn.sdot4",
        T.reinterpret("int32", A[0:4]),
        T.reinterpret("int32", B[0:4]),
        T.int32(0),
        T.bool(True),
    )


AMDGPU_SDOT4_INTRIN = "sdot4"
_BYTES = ("int8", "int8", "int32")
register_at_import(AMDGPU_SDOT4_INTRIN, dot_of_four(*_BYTES), on_four(AMDGPU_SDOT4_INTRIN, _by_sdot4, *_BYTES))
