"""The dot product of four bytes that one GPU instruction computes (dp4a)."""

from __future__ import annotations

from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.programs import on_three, tile
from tilewright.tensor_intrin.table import register_at_import

__all__ = [
    "DP4A_S8S8S32_INTRIN",
    "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN",
    "DP4A_U8U8U32_INTRIN",
    "get_dp4a_intrin",
]


def dot_of_four(dtype_a: str, dtype_b: str, dtype_c: str) -> Any:
    """Return the description of C[0] += A[0:4] . B[0:4]."""

    @T.macro
    def products(A: Any, B: Any, C: Any) -> None:
        for i in range(4):
            with T.block("update"):
                vi = T.axis.reduce(4, i)
                C[0] = C[0] + T.Cast(dtype_c, A[vi]) * T.Cast(dtype_c, B[vi])

    return on_four("desc", products, dtype_a, dtype_b, dtype_c)


def on_four(name: str, body: Any, dtype_a: str, dtype_b: str, dtype_c: str) -> Any:
    """Return a program over four elements of A and B in shared memory, and one of C."""
    left, right = (tile((4,), dtype, "shared", align=4) for dtype in (dtype_a, dtype_b))
    return on_three(name, body, left, right, tile((1,), dtype_c, "local", align=4))


def get_dp4a_intrin(dtype_a: str, dtype_b: str, dtype_c: str) -> tuple[Any, Any]:
    """Return desc and impl by CUDA's __dp4a."""

    @T.macro
    def by_dp4a(A: Any, B: Any, C: Any) -> None:
        C[0] = C[0] + T.call_pure_extern(dtype_c, "__dp4a", A[0:4], B[0:4], T.Cast(dtype_c, 0))

    return dot_of_four(dtype_a, dtype_b, dtype_c), on_four("impl", by_dp4a, dtype_a, dtype_b, dtype_c)


DP4A_S8S8S32_INTRIN = "dp4a_s8s8s32"
DP4A_U8S8S32_INTRIN = "dp4a_u8s8s32"
DP4A_S8U8S32_INTRIN = "dp4a_s8u8s32"
DP4A_U8U8U32_INTRIN = "dp4a_u8u8u32"
for _name, *_dtypes in (
    (DP4A_S8S8S32_INTRIN, "int8", "int8", "int32"),
    (DP4A_U8S8S32_INTRIN, "uint8", "int8", "int32"),
    (DP4A_S8U8S32_INTRIN, "int8", "uint8", "int32"),
    (DP4A_U8U8U32_INTRIN, "uint8", "uint8", "uint32"),
):
    register_at_import(_name, *get_dp4a_intrin(*_dtypes))
