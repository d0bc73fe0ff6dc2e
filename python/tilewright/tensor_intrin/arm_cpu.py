"""Tensor intrinsics of 64-bit Arm processors: four sums of products of bytes."""

from __future__ import annotations

from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.dot_product_common import (
    DP4A_S8S8S32_INTRIN,
    DP4A_S8U8S32_INTRIN,
    DP4A_U8S8S32_INTRIN,
    DP4A_U8U8U32_INTRIN,
)
from tilewright.tensor_intrin.table import register_at_import
from tilewright.tensor_intrin.words import dot_of_rows, on_rows, word, words

__all__ = [
    "DP4A_S8S8S32_INTRIN",
    "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN",
    "DP4A_U8U8U32_INTRIN",
    "ARM_DOT_4x4_i8_NEON_INTRIN",
    "ARM_DOT_4x4_i8_SDOT_INTRIN",
    "ARM_DOT_4x4_u8_HDOT_INTRIN",
    "ARM_DOT_4x4_u8_UDOT_INTRIN",
]


def _by_dot(name: str, element: str, result: str) -> Any:
    def compute(a: Any, b: Any, sums: Any) -> Any:
        bytes_a = T.reinterpret(f"{element}x16", T.broadcast(word(a), 4))
        bytes_b = T.reinterpret(f"{element}x16", words(b, 0, 4))
        return T.call_llvm_pure_intrin(f"{result}x4", f"llvm.aarch64.neon.{name}.v4i32.v16i8", sums, bytes_a, bytes_b)

    return compute


def _by_upcast(a: Any, b: Any, sums: Any) -> Any:
    """Return sums plus 16-bit products, two rows of B per instruction; neighbors are added twice."""

    def two_rows(first: int) -> Any:
        rows = T.reinterpret("int8x8", words(b, first, 2))
        twice = T.reinterpret("int8x8", T.broadcast(word(a), 2))
        products = T.call_llvm_pure_intrin("int16x8", "llvm.aarch64.neon.smull.v8i16", twice, rows)
        return T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.saddlp.v4i32.v8i16", products)

    return sums + T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.addp.v4i32", two_rows(0), two_rows(2))


ARM_DOT_4x4_i8_NEON_INTRIN = "dot_4x4_i8i8s32_neon"
ARM_DOT_4x4_i8_SDOT_INTRIN = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN = "dot_4x4_u8u8u32_udot"
ARM_DOT_4x4_u8_HDOT_INTRIN = "dot_4x4_u8u8i32_hdot"

_SIGNED, _UNSIGNED = ("int8", "int8", "int32"), ("uint8", "uint8", "uint32")
_MIXED = ("uint8", "uint8", "int32")
for _name, _dtypes, _compute in (
    (ARM_DOT_4x4_i8_NEON_INTRIN, _SIGNED, _by_upcast),
    (ARM_DOT_4x4_i8_SDOT_INTRIN, _SIGNED, _by_dot("sdot", "int8", "int32")),
    (ARM_DOT_4x4_u8_UDOT_INTRIN, _UNSIGNED, _by_dot("udot", "uint8", "uint32")),
    (ARM_DOT_4x4_u8_HDOT_INTRIN, _MIXED, _by_dot("udot", "uint8", "int32")),
):
    register_at_import(_name, dot_of_rows(4, _dtypes), on_rows(4, _dtypes, _compute))
