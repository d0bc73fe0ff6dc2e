"""Tensor intrinsics of Hexagon HVX: 32-lane dot products (vrmpy, vdmpy) and DMA copies into VTCM.

They are for scheduling only: Tilewright generates no Hexagon code.
"""

from __future__ import annotations

from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.programs import on_two, tile
from tilewright.tensor_intrin.table import register_at_import
from tilewright.tensor_intrin.words import dot_of_rows, on_rows, word, words

__all__ = [
    "DMA_READ_128_i8",
    "DMA_READ_128_u8",
    "VDMPY_i16i16i32_INTRIN",
    "VRMPY_u8i8i32_INTRIN",
    "VRMPY_u8i8i32_VTCM_INTRIN",
    "VRMPY_u8u8i32_INTRIN",
    "VRMPY_u8u8i32_VTCM_INTRIN",
]


def _by_vrmpy(signed: bool) -> Any:
    name = f"llvm.hexagon.V6.{'vrmpybusv' if signed else 'vrmpyubv'}.acc.128B"

    def compute(a: Any, b: Any, sums: Any) -> Any:
        return T.call_llvm_pure_intrin("int32x32", name, sums, T.broadcast(word(a), 32), words(b, 0, 32))

    return compute


def _by_vdmpy(a: Any, b: Any, sums: Any) -> Any:
    pairs = T.broadcast(word(a, elements=2), 32)
    rows = words(b, 0, 32, elements=2)
    return T.call_llvm_pure_intrin("int32x32", "llvm.hexagon.V6.vdmpyhvsat.acc.128B", sums, pairs, rows)


VRMPY_u8u8i32_INTRIN = "dot_32x4_u8u8i32_vrmpy"
VRMPY_u8i8i32_INTRIN = "dot_32x4_u8i8i32_vrmpy"
VRMPY_u8u8i32_VTCM_INTRIN = "dot_32x4_u8u8i32_vtcm_vrmpy"
VRMPY_u8i8i32_VTCM_INTRIN = "dot_32x4_u8i8i32_vtcm_vrmpy"
VDMPY_i16i16i32_INTRIN = "dot_product_32x2_i16i16i32_vdmpy"

for _name, _signed, _scope in (
    (VRMPY_u8u8i32_INTRIN, False, "global"),
    (VRMPY_u8i8i32_INTRIN, True, "global"),
    (VRMPY_u8u8i32_VTCM_INTRIN, False, "global.vtcm"),
    (VRMPY_u8i8i32_VTCM_INTRIN, True, "global.vtcm"),
):
    _dtypes = ("uint8", "int8" if _signed else "uint8", "int32")
    register_at_import(
        _name,
        dot_of_rows(32, _dtypes, scope_b=_scope),
        on_rows(32, _dtypes, _by_vrmpy(_signed), scope_b=_scope),
    )
_WORDS = ("int16", "int16", "int32")
register_at_import(
    VDMPY_i16i16i32_INTRIN, dot_of_rows(32, _WORDS, columns=2), on_rows(32, _WORDS, _by_vdmpy, columns=2)
)


def get_dma_read_intrin(dtype: str, bytes_read: int = 128) -> tuple[Any, Any]:
    """Return desc and impl that copy bytes from memory into VTCM by the DMA engine."""

    @T.macro
    def copy(A: Any, C: Any) -> None:
        for i in range(bytes_read):
            with T.block("load"):
                vii = T.axis.remap("S", [i])
                C[vii] = A[vii]

    @T.macro
    def by_engine(A: Any, C: Any) -> None:
        T.evaluate(T.call_extern("int32", "hexagon_user_dma_1d_sync", C.access_ptr("w"), A.access_ptr("r"), bytes_read))

    tiles = tile((bytes_read,), dtype), tile((bytes_read,), dtype, "global.vtcm")
    return on_two("desc", copy, *tiles), on_two("impl", by_engine, *tiles)


DMA_READ_128_u8, DMA_READ_128_i8 = "dma_read_128_u8", "dma_read_128_i8"
register_at_import(DMA_READ_128_u8, *get_dma_read_intrin("uint8"))
register_at_import(DMA_READ_128_i8, *get_dma_read_intrin("int8"))
