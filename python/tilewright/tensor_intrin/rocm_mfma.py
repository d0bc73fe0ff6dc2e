"""Products of tiles by the waves of AMD's GPUs (mfma): fill, load, multiply, store. Data for code to come.

A wave of 64 threads holds a tile as a buffer of scope "warp": element (thread, register). The layout functions say
where an element of a tile is, those with ``thread_id_`` which element a register holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.fragments import oriented, product_of_tiles
from tilewright.tensor_intrin.table import register_at_import

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

_Layout = Callable[[Any, Any], tuple[Any, Any]]
_SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}


def shared_16x4_to_local_64x1_layout_A(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the left factor, four columns."""
    return j * 16 + i, 0


def thread_id_shared_access_64x1_to_16x4_layout_A(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Back from shared_16x4_to_local_64x1_layout_A."""
    return thread_id % 16, thread_id // 16 + local_id


def shared_4x16_to_local_64x1_layout_B(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the right factor, four rows."""
    return i * 16 + j, 0


def thread_id_shared_access_64x1_to_4x16_layout_B(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Back from shared_4x16_to_local_64x1_layout_B."""
    return thread_id // 16, thread_id % 16 + local_id


def shared_16x16_to_local_64x4_layout_A(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the left factor."""
    return i + 16 * (j // 4), j % 4


def thread_id_shared_access_64x4_to_16x16_layout_A(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Back from shared_16x16_to_local_64x4_layout_A."""
    return thread_id % 16, thread_id // 16 * 4 + local_id


def shared_16x16_to_local_64x4_layout_B(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the right factor."""
    return j + i // 4 * 16, i % 4


def thread_id_shared_access_64x4_to_16x16_layout_B(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Back from shared_16x16_to_local_64x4_layout_B."""
    return thread_id // 16 * 4 + local_id, thread_id % 16


def shared_16x16_to_local_64x4_layout_C(i: Any, j: Any) -> tuple[Any, Any]:
    """Return the thread and the register of an element of the sums."""
    return j + i // 4 * 16, i % 4


def thread_id_shared_access_64x4_to_16x16_layout_C(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Back from shared_16x16_to_local_64x4_layout_C."""
    return thread_id // 16 * 4 + local_id, thread_id % 16


def _operand(k_dim: int, is_b: bool) -> tuple[tuple[int, int], _Layout, _Layout]:
    """The shape of a factor in shared memory, its place in a wave, and the way back."""
    if k_dim == 4 and is_b:
        return (4, 16), shared_4x16_to_local_64x1_layout_B, thread_id_shared_access_64x1_to_4x16_layout_B
    if k_dim == 4:
        return (16, 4), shared_16x4_to_local_64x1_layout_A, thread_id_shared_access_64x1_to_16x4_layout_A
    if is_b:
        return (16, 16), shared_16x16_to_local_64x4_layout_B, thread_id_shared_access_64x4_to_16x16_layout_B
    return (16, 16), shared_16x16_to_local_64x4_layout_A, thread_id_shared_access_64x4_to_16x16_layout_A


def get_mma_fill_intrin(dtype: str, local_size: int) -> tuple[Any, Any]:
    """Registers of zeros."""

    @T.prim_func
    def desc(a: T.handle) -> None:
        C = T.match_buffer(a, (64, local_size), dtype, offset_factor=1, scope="warp")
        with T.block("root"):
            T.reads()
            T.writes(C[0:64, 0:local_size])
            for i, j in T.grid(64, local_size):
                with T.block("C_warp"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.Cast(dtype, 0)

    @T.prim_func
    def impl(a: T.handle) -> None:
        C = T.match_buffer(a, (64, local_size), dtype, offset_factor=1, scope="warp")
        with T.block("root"):
            T.reads()
            T.writes(C[0:64, 0:local_size])
            for tx in T.thread_binding(64, "threadIdx.x"):
                for local_id in range(local_size):
                    C[tx, local_id] = T.Cast(dtype, 0)

    return desc, impl


def get_mfma_load_intrin(k_dim: int, dtype: str, scope: str = "shared", is_b: bool = False) -> tuple[Any, Any]:
    """A factor from shared memory into the registers of a wave."""
    (rows, columns), layout, back = _operand(k_dim, is_b)
    local_size = rows * columns // 64

    @T.prim_func
    def desc(reg_handle: T.handle, memory_handle: T.handle) -> None:
        memory = T.match_buffer(memory_handle, (rows, columns), dtype, offset_factor=1, scope=scope)
        reg = T.match_buffer(reg_handle, (64, local_size), dtype, offset_factor=1, scope="warp")
        with T.block("root"):
            T.reads(memory[0:rows, 0:columns])
            T.writes(reg[0:64, 0:local_size])
            for ax0, ax1 in T.grid(rows, columns):
                with T.block("memory_reg"):
                    v0, v1 = T.axis.remap("SS", [ax0, ax1])
                    T.reads(memory[v0, v1])
                    T.writes(reg[layout(v0, v1)[0], layout(v0, v1)[1]])
                    reg[layout(v0, v1)[0], layout(v0, v1)[1]] = memory[v0, v1]

    @T.prim_func
    def impl(reg_handle: T.handle, memory_handle: T.handle) -> None:
        s1, s0 = T.int32(), T.int32()
        memory = T.match_buffer(
            memory_handle, (rows, columns), dtype, align=64, offset_factor=1, scope=scope, strides=[s1, s0]
        )
        reg = T.match_buffer(reg_handle, (64, local_size), dtype, align=64, offset_factor=1, scope="warp")
        with T.block("root"):
            T.reads(memory[0:rows, 0:columns])
            T.writes(reg[0:64, 0:local_size])
            for tx in T.thread_binding(64, "threadIdx.x"):
                for local_id in range(local_size):
                    reg[tx, local_id] = memory[back(tx, local_id)[0], back(tx, local_id)[1]]

    return desc, impl


def _mfma(k_dim: int, in_dtype: str, out_dtype: str, a: Any, b: Any, c: Any) -> Any:
    """The sums plus the product, by the one instruction for these types; bytes go as one number of 32 bits."""
    kind = {"float32": "f32", "float16": "f16", "int8": "i8"}[in_dtype]
    out = "i32" if out_dtype == "int32" else "f32"
    factors = [T.reinterpret("int32", factor) if in_dtype == "int8" else factor for factor in (a, b)]
    no_broadcast = [T.int32(0), T.int32(0), T.int32(0)]
    name = f"llvm.amdgcn.mfma.{out}.16x16x{k_dim}{kind}"
    return T.call_llvm_pure_intrin(f"{out_dtype}x4", name, *factors, c, *no_broadcast)


def get_mfma_intrin(
    k_dim: int, in_dtype: str = "float32", out_dtype: str = "float32", b_transposed: bool = False
) -> tuple[Any, Any]:
    """Tiles in registers: C plus the product of A and B."""
    (_, _), layout_a, _ = _operand(k_dim, False)
    (_, _), layout_b, _ = _operand(k_dim, True)
    local_size = k_dim * 16 // 64

    at = layout_a, oriented(layout_b, b_transposed), shared_16x16_to_local_64x4_layout_C
    product = product_of_tiles(k_dim, at, (in_dtype, in_dtype, out_dtype))

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

    def program(name: str, body: Any) -> Any:
        @T.prim_func
        def multiply(a: T.handle, b: T.handle, c: T.handle) -> None:
            A = T.match_buffer(a, (64, local_size), in_dtype, offset_factor=1, scope="warp")
            B = T.match_buffer(b, (64, local_size), in_dtype, offset_factor=1, scope="warp")
            C = T.match_buffer(c, (64, 4), out_dtype, offset_factor=1, scope="warp")
            with T.block("root"):
                T.reads(C[0:64, 0:4], A[0:64, 0:local_size], B[0:64, 0:local_size])
                T.writes(C[0:64, 0:4])
                body(A, B, C)

        return multiply.with_attr("global_symbol", name)

    return program("desc", product), program("impl", by_mfma)


def get_mfma_store_intrin(
    local_size: int = 4, dtype: str = "float32", scope: str = "global", use_mma_store_intrinic: bool = True
) -> tuple[Any, Any]:
    """Registers into memory."""
    if not use_mma_store_intrinic:
        raise ValueError("results are stored register by register only (use_mma_store_intrinic=True)")
    layout, back = shared_16x16_to_local_64x4_layout_C, thread_id_shared_access_64x4_to_16x16_layout_C

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        C_warp = T.match_buffer(a, (64, local_size), dtype, offset_factor=1, scope="warp")
        C = T.match_buffer(c, (16, 16), dtype, offset_factor=1, scope=scope)
        with T.block("root"):
            T.reads(C_warp[0:64, 0:local_size])
            T.writes(C[0:16, 0:16])
            for i0, i1 in T.grid(16, 16):
                with T.block("C_warp"):
                    v0, v1 = T.axis.remap("SS", [i0, i1])
                    T.reads(C_warp[layout(v0, v1)[0], layout(v0, v1)[1]])
                    T.writes(C[v0, v1])
                    C[v0, v1] = C_warp[layout(v0, v1)[0], layout(v0, v1)[1]]

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        s1, s0 = T.int32(), T.int32()
        C_warp = T.match_buffer(a, (64, local_size), dtype, offset_factor=1, scope="warp")
        C = T.match_buffer(c, (16, 16), dtype, offset_factor=1, scope=scope, strides=[s1, s0])
        with T.block("root"):
            T.reads(C_warp[0:64, 0:local_size])
            T.writes(C[0:16, 0:16])
            for tx in T.thread_binding(64, "threadIdx.x"):
                for local_id in range(local_size):
                    C[back(tx, local_id)[0], back(tx, local_id)[1]] = C_warp[tx, local_id]

    return desc, impl


def _add(variable: str, name: str, pair: tuple[Any, Any]) -> None:
    register_at_import(name, *pair)
    globals()[f"{variable}_INTRIN"] = name
    __all__.append(f"{variable}_INTRIN")


def _register() -> None:
    """Every kind of tile, under TVM's names."""
    for dtype, short in (("float32", "f32"), ("int32", "i32")):
        _add(f"ROCM_MFMA_fill_16x16_{short}", f"ROCM_mfma_fill_16x16_{short}", get_mma_fill_intrin(dtype, 4))
    for dtype in ("int8", "float16"):
        short = _SHORT[dtype]
        _add(
            f"ROCM_MFMA_LOAD_16x16_A_SHARED_{short}",
            f"rocm_mfma_load_16x16_a_shared_{short}",
            get_mfma_load_intrin(16, dtype),
        )
        _add(
            f"ROCM_MFMA_LOAD_16x16_B_SHARED_{short}",
            f"rocm_mfma_load_b_16x16_shared_{short}",
            get_mfma_load_intrin(16, dtype, is_b=True),
        )
    for operand in "AB":
        _add(
            f"ROCM_MFMA_LOAD_16x4_{operand}_SHARED_f32",
            "rocm_mfma_load_b_16x4_shared_f32" if operand == "B" else "rocm_mfma_load_16x4_a_shared_f32",
            get_mfma_load_intrin(4, "float32", is_b=operand == "B"),
        )
    for k_dim, dtype, out in ((4, "float32", "float32"), (16, "float16", "float32"), (16, "int8", "int32")):
        short = f"{_SHORT[dtype] * 2}{_SHORT[out]}"
        _add(f"ROCM_MFMA_{short}", f"rocm_mfma_{short}", get_mfma_intrin(k_dim, dtype, out))
    for dtype in ("int32", "float32"):
        short = _SHORT[dtype]
        _add(f"ROCM_MFMA_STORE_16x16_{short}", f"rocm_mfma_store_16x16_{short}", get_mfma_store_intrin(4, dtype))


_register()
