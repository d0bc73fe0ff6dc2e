"""Products of tiles by the waves of AMD's GPUs (mfma): fill, load, multiply, store. Data for code to come.

A wave of 64 threads holds a tile as a buffer of scope "warp": element (thread, register). The layout functions say
where an element of a tile is, those with ``thread_id_`` which element a register holds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.fragments import Layout, copy_of_tile, oriented, product_of_tiles, zeros
from tilewright.tensor_intrin.programs import on_one, on_three, on_two, strided, tile
from tilewright.tensor_intrin.table import add_named

__all__ = [
    "get_mfma_intrin",
    "get_mfma_load_intrin",
    "get_mfma_store_intrin",
    "get_mma_fill_intrin",
    "shared_4x16_to_local_64x1_layout_B",
    "shared_16x4_to_local_64x1_layout_A",
    "shared_16x16_to_local_64x4_layout_A",
    "shared_16x16_to_local_64x4_layout_B",
    "shared_16x16_to_local_64x4_layout_C",
    "thread_id_shared_access_64x1_to_4x16_layout_B",
    "thread_id_shared_access_64x1_to_16x4_layout_A",
    "thread_id_shared_access_64x4_to_16x16_layout_A",
    "thread_id_shared_access_64x4_to_16x16_layout_B",
    "thread_id_shared_access_64x4_to_16x16_layout_C",
]

_SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}


def shared_16x4_to_local_64x1_layout_A(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the left factor, four columns."""
    return j * 16 + i, 0


def thread_id_shared_access_64x1_to_16x4_layout_A(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of an element: the inverse of shared_16x4_to_local_64x1_layout_A."""
    return thread_id % 16, thread_id // 16 + local_id


def shared_4x16_to_local_64x1_layout_B(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the right factor, four rows."""
    return i * 16 + j, 0


def thread_id_shared_access_64x1_to_4x16_layout_B(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of an element: the inverse of shared_4x16_to_local_64x1_layout_B."""
    return thread_id // 16, thread_id % 16 + local_id


def shared_16x16_to_local_64x4_layout_A(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the left factor."""
    return i + 16 * (j // 4), j % 4


def thread_id_shared_access_64x4_to_16x16_layout_A(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of an element: the inverse of shared_16x16_to_local_64x4_layout_A."""
    return thread_id % 16, thread_id // 16 * 4 + local_id


def shared_16x16_to_local_64x4_layout_B(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the right factor."""
    return j + i // 4 * 16, i % 4


def thread_id_shared_access_64x4_to_16x16_layout_B(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of an element: the inverse of shared_16x16_to_local_64x4_layout_B."""
    return thread_id // 16 * 4 + local_id, thread_id % 16


def shared_16x16_to_local_64x4_layout_C(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the sums."""
    return j + i // 4 * 16, i % 4


def thread_id_shared_access_64x4_to_16x16_layout_C(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of an element: the inverse of shared_16x16_to_local_64x4_layout_C."""
    return thread_id // 16 * 4 + local_id, thread_id % 16


def _operand(k_dim: int, is_b: bool) -> tuple[tuple[int, int], Layout, Layout]:
    """Return the shape of an operand in shared memory, its layout in the registers of a wave, and the inverse of
    that."""
    if k_dim == 4 and is_b:
        return (4, 16), shared_4x16_to_local_64x1_layout_B, thread_id_shared_access_64x1_to_4x16_layout_B
    if k_dim == 4:
        return (16, 4), shared_16x4_to_local_64x1_layout_A, thread_id_shared_access_64x1_to_16x4_layout_A
    if is_b:
        return (16, 16), shared_16x16_to_local_64x4_layout_B, thread_id_shared_access_64x4_to_16x16_layout_B
    return (16, 16), shared_16x16_to_local_64x4_layout_A, thread_id_shared_access_64x4_to_16x16_layout_A


def get_mma_fill_intrin(dtype: str, local_size: int) -> tuple[Any, Any]:
    """Return desc and impl that set the accumulator registers to zero."""

    @T.macro
    def fill(C: Any) -> None:
        for tx in T.thread_binding(64, "threadIdx.x"):
            for local_id in range(local_size):
                C[tx, local_id] = T.Cast(dtype, 0)

    registers = tile((64, local_size), dtype, "warp")
    return on_one("desc", zeros("C_warp", (64, local_size), T.Cast(dtype, 0)), registers), on_one(
        "impl", fill, registers
    )


def get_mfma_load_intrin(k_dim: int, dtype: str, scope: str = "shared", is_b: bool = False) -> tuple[Any, Any]:
    """Return desc and impl that load an operand from shared memory into the registers of a wave."""
    shape, layout, back = _operand(k_dim, is_b)
    local_size = shape[0] * shape[1] // 64

    @T.macro
    def load(memory: Any, reg: Any) -> None:
        for tx in T.thread_binding(64, "threadIdx.x"):
            for local_id in range(local_size):
                reg[tx, local_id] = memory[*back(tx, local_id)]

    def tiles(align: int) -> tuple[Any, Any]:
        return tile((64, local_size), dtype, "warp", align=align), tile(shape, dtype, scope, align=align)

    copy = copy_of_tile("memory_reg", shape, target_at=layout)
    registers, memory = tiles(64)
    return on_two("desc", copy, *tiles(0), backwards=True), on_two(
        "impl", load, registers, strided(memory), backwards=True
    )


def _mfma(k_dim: int, in_dtype: str, out_dtype: str, a: Any, b: Any, c: Any) -> Any:
    """Return sums plus the product by the MFMA instruction for these types; four bytes are passed as one 32-bit
    number."""
    kind = {"float32": "f32", "float16": "f16", "int8": "i8"}[in_dtype]
    out = "i32" if out_dtype == "int32" else "f32"
    factors = [T.reinterpret("int32", factor) if in_dtype == "int8" else factor for factor in (a, b)]
    no_broadcast = [T.int32(0), T.int32(0), T.int32(0)]
    name = f"llvm.amdgcn.mfma.{out}.16x16x{k_dim}{kind}"
    return T.call_llvm_pure_intrin(f"{out_dtype}x4", name, *factors, c, *no_broadcast)


def get_mfma_intrin(
    k_dim: int, in_dtype: str = "float32", out_dtype: str = "float32", b_transposed: bool = False
) -> tuple[Any, Any]:
    """Return desc and impl of C += A B, with all tiles in registers."""
    layout_a, layout_b = (_operand(k_dim, is_b)[1] for is_b in (False, True))
    local_size = k_dim * 16 // 64

    at = layout_a, oriented(layout_b, b_transposed), shared_16x16_to_local_64x4_layout_C
    product = product_of_tiles("C", (16, 16, k_dim), at, (in_dtype, in_dtype, out_dtype))

    def registers(buffer: Any, tx: Any, count: int) -> Any:
        return buffer[tx, 0] if count == 1 else buffer[tx, T.ramp(0, 1, count)]

    @T.macro
    def by_mfma(A: Any, B: Any, C: Any) -> None:
        for tx in T.thread_binding(64, "threadIdx.x"):
            C[tx, 0:4] = _mfma(
                k_dim,
                in_dtype,
                out_dtype,
                registers(A, tx, local_size),
                registers(B, tx, local_size),
                registers(C, tx, 4),
            )

    factor = tile((64, local_size), in_dtype, "warp")
    tiles = factor, factor, tile((64, 4), out_dtype, "warp")
    return on_three("desc", product, *tiles), on_three("impl", by_mfma, *tiles)


def get_mfma_store_intrin(
    local_size: int = 4, dtype: str = "float32", scope: str = "global", use_mma_store_intrinic: bool = True
) -> tuple[Any, Any]:
    """Return desc and impl that store the accumulator registers."""
    if not use_mma_store_intrinic:
        raise ValueError("results are stored register by register only (use_mma_store_intrinic=True)")
    back = thread_id_shared_access_64x4_to_16x16_layout_C

    @T.macro
    def store(C_warp: Any, C: Any) -> None:
        for tx in T.thread_binding(64, "threadIdx.x"):
            for local_id in range(local_size):
                C[*back(tx, local_id)] = C_warp[tx, local_id]

    registers, memory = tile((64, local_size), dtype, "warp"), tile((16, 16), dtype, scope)
    copy = copy_of_tile("C_warp", (16, 16), shared_16x16_to_local_64x4_layout_C)
    return on_two("desc", copy, registers, memory), on_two("impl", store, registers, strided(memory))


_add = partial(add_named, globals())


def _register() -> None:
    """Register all tile shapes and dtypes under TVM's names."""
    for dtype, short in (("float32", "f32"), ("int32", "i32")):
        _add(f"ROCM_MFMA_fill_16x16_{short}", f"ROCM_mfma_fill_16x16_{short}", get_mma_fill_intrin(dtype, 4))
    for k_dim, dtype in ((16, "int8"), (16, "float16"), (4, "float32")):
        for operand in "AB":
            short = _SHORT[dtype]
            kind = f"b_16x{k_dim}" if operand == "B" else f"16x{k_dim}_a"
            pair = get_mfma_load_intrin(k_dim, dtype, is_b=operand == "B")
            _add(f"ROCM_MFMA_LOAD_16x{k_dim}_{operand}_SHARED_{short}", f"rocm_mfma_load_{kind}_shared_{short}", pair)
    for k_dim, dtype, out in ((4, "float32", "float32"), (16, "float16", "float32"), (16, "int8", "int32")):
        short = f"{_SHORT[dtype] * 2}{_SHORT[out]}"
        _add(f"ROCM_MFMA_{short}", f"rocm_mfma_{short}", get_mfma_intrin(k_dim, dtype, out))
    for dtype in ("int32", "float32"):
        short = _SHORT[dtype]
        _add(f"ROCM_MFMA_STORE_16x16_{short}", f"rocm_mfma_store_16x16_{short}", get_mfma_store_intrin(4, dtype))


_register()
