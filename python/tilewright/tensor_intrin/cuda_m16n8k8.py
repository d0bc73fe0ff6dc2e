"""Products of 16x8 by 8x8 elements by the warps of Nvidia's GPUs (mma.m16n8k8).

A buffer of scope "m16n8k8.matrixA", "...B" or "...C" has the shape of a matrix, whose elements are in the registers of
the 32 threads of a warp. Instructions name a register by its number, which get_index_A() and the others say of the
element with which a fragment begins.
"""

from __future__ import annotations

from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.fragments import copy_of_tile, ldmatrix, product_of_tiles, rows_first, zeros
from tilewright.tensor_intrin.programs import on_one, on_three, on_two, strided, tile
from tilewright.tensor_intrin.table import all_known, register_at_import

__all__ = ["get_index_A", "get_index_B", "get_index_C", "get_m16n8k8_intrin_group", "index_map_m16n8k8_matrixC"]

_M, _N, _K = 16, 8, 8
#: One instruction loads four matrices of 8x8 elements.
_LOADED = 32
_SHORT = {"float16": "f16", "float32": "f32"}
_PTX = {"float16": "fp16", "float32": "fp32"}


def get_index_A(elem_offset: Any, stride: Any) -> Any:
    """Return the first register of a fragment of A: tiles of 32x8 elements have eight each, row by row."""
    row, column = elem_offset // stride, elem_offset % stride
    return (row // _LOADED * (stride // _K) + column // _K) * 8 + row % _LOADED // _M * 4


def get_index_B(elem_offset: Any, stride: Any) -> Any:
    """Return the first register of a fragment of B: tiles of 8x32 elements have eight each, row by row."""
    row, column = elem_offset // stride, elem_offset % stride
    return (row // _K * (stride // _LOADED) + column // _LOADED) * 8 + column % _LOADED // _N * 2


def get_index_C(elem_offset: Any, stride: Any) -> Any:
    """Return the first register of half a fragment of C: tiles of 16x8 elements have four each, row by row."""
    row, column = elem_offset // stride, elem_offset % stride
    return (row // _M * (stride // _N) + column // _N) * 4 + row % _M // 8 * 2


def index_map_m16n8k8_matrixC(ind: Any) -> list[Any]:
    """Return the register of a thread for an element of C: tiles of rows, of columns, half of the tile, element."""
    row, column = ind
    return [row // _M, column // _N, row % _M // 8, column % 2]


def _fragment(operand: str, dtype: str) -> Any:
    shape = {"A": (_M, _K), "B": (_K, _N), "C": (_M, _N)}[operand]
    return tile(shape, dtype, f"m16n8k8.matrix{operand}")


def _mma_init(dtype: str) -> tuple[Any, Any]:
    """Return desc and impl that set a fragment to zero."""
    zero = getattr(T, dtype)(0)

    @T.macro
    def fill(C: Any) -> None:
        for tx in T.thread_binding(32, "threadIdx.x"):
            for half in range(2):
                for pair in T.vectorized(2):
                    C[half * 8 + tx // 4, tx % 4 * 2 + pair] = zero

    fragment = _fragment("C", dtype)
    return on_one("desc", zeros("init", (_M, _N), zero), fragment), on_one("impl", fill, fragment)


def _mma_load(operand: str) -> tuple[Any, Any]:
    """Return desc and impl that load four 8x8 matrices of an operand from shared memory; for B, each is transposed."""
    is_b = operand == "B"
    shape = (_K, _LOADED) if is_b else (_LOADED, _K)
    register = get_index_B if is_b else get_index_A

    def row_of_thread(tx: Any, stride: Any) -> Any:
        return tx % 8 * stride + tx // 8 * 8 if is_b else tx * stride

    load = ldmatrix(is_b, "float16", lambda C, tx: register(C.elem_offset, C.strides[0]), row_of_thread)
    tiles = tile(shape, "float16", "shared.dyn"), tile(shape, "float16", f"m16n8k8.matrix{operand}")
    return on_two("desc", copy_of_tile("load", shape), *tiles), on_two("impl", load, *map(strided, tiles))


def _mma_sync(out_dtype: str) -> tuple[Any, Any]:
    """Return desc and impl that add the product of two fragments to a fragment."""

    @T.macro
    def by_mma(A: Any, B: Any, C: Any) -> None:
        T.evaluate(
            T.ptx_mma(
                "m16n8k8",
                "row",
                "col",
                "fp16",
                "fp16",
                _PTX[out_dtype],
                A.data,
                get_index_A(A.elem_offset, A.strides[0]),
                B.data,
                get_index_B(B.elem_offset, B.strides[0]),
                C.data,
                get_index_C(C.elem_offset, C.strides[0]),
                False,
                dtype=out_dtype,
            )
        )

    product = product_of_tiles("sync", (_M, _N, _K), (rows_first,) * 3, ("float16", "float16", out_dtype))
    tiles = _fragment("A", "float16"), _fragment("B", "float16"), _fragment("C", out_dtype)
    return on_three("desc", product, *tiles), on_three("impl", by_mma, *map(strided, tiles))


def _mma_store(dtype: str) -> tuple[Any, Any]:
    """Return desc and impl that store a fragment to memory; each thread stores its own elements."""
    shape = (_M, _N)

    @T.macro
    def store(A: Any, C: Any) -> None:
        for tx in T.thread_binding(32, "threadIdx.x"):
            for half in range(2):
                for pair in T.vectorized(2):
                    C[half * 8 + tx // 4, tx % 4 * 2 + pair] = A[half * 8 + tx // 4, tx % 4 * 2 + pair]

    tiles = _fragment("C", dtype), tile(shape, dtype)
    return on_two("desc", copy_of_tile("store", shape), *tiles), on_two("impl", store, *tiles)


def _register() -> None:
    """Register all of them, under TVM's names."""
    for operand in "AB":
        register_at_import(f"mma_load_m16n8k8_f16_{operand}_shared_dyn", *_mma_load(operand))
    for dtype, short in _SHORT.items():
        register_at_import(f"mma_init_m16n8k8_{short}", *_mma_init(dtype))
        register_at_import(f"mma_sync_m16n8k8_f16f16{short}", *_mma_sync(dtype))
        register_at_import(f"mma_store_m16n8k8_{short}_global", *_mma_store(dtype))


_register()


def get_m16n8k8_intrin_group(out_dtype: str) -> dict[str, str]:
    """Return the names of the tensor intrinsics of a float16 product, by role: init, load_a, load_b, compute, store.

    Raises:
        tilewright.ArgumentError: one of them is not registered.
    """
    short = _SHORT.get(out_dtype, out_dtype)
    return all_known(
        {
            "init": f"mma_init_m16n8k8_{short}",
            "load_a": "mma_load_m16n8k8_f16_A_shared_dyn",
            "load_b": "mma_load_m16n8k8_f16_B_shared_dyn",
            "compute": f"mma_sync_m16n8k8_f16f16{short}",
            "store": f"mma_store_m16n8k8_{short}_global",
        }
    )
