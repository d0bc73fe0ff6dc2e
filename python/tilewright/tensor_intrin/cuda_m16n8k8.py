"""Products of 16x8 by 8x8 elements by the warps of Nvidia's GPUs (mma.m16n8k8).

A buffer of scope "m16n8k8.matrixA", "...B" or "...C" has the shape of a matrix, whose elements are in the registers of
the 32 threads of a warp. Instructions name a register by its number, which get_index_A() and the others say of the
element with which a fragment begins.
"""

from __future__ import annotations

from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.table import TensorIntrin, register_at_import

__all__ = ["get_index_A", "get_index_B", "get_index_C", "get_m16n8k8_intrin_group", "index_map_m16n8k8_matrixC"]

_M, _N, _K = 16, 8, 8
#: One instruction loads four matrices of 8x8 elements.
_LOADED = 32
_SHORT = {"float16": "f16", "float32": "f32"}
_PTX = {"float16": "fp16", "float32": "fp32"}


def get_index_A(elem_offset: Any, stride: Any) -> Any:
    """The first register of a fragment of A: tiles of 32x8 elements have eight each, row by row."""
    row, column = elem_offset // stride, elem_offset % stride
    return (row // _LOADED * (stride // _K) + column // _K) * 8 + row % _LOADED // _M * 4


def get_index_B(elem_offset: Any, stride: Any) -> Any:
    """The first register of a fragment of B: tiles of 8x32 elements have eight each, row by row."""
    row, column = elem_offset // stride, elem_offset % stride
    return (row // _K * (stride // _LOADED) + column // _LOADED) * 8 + column % _LOADED // _N * 2


def get_index_C(elem_offset: Any, stride: Any) -> Any:
    """The first register of half a fragment of C: tiles of 16x8 elements have four each, row by row."""
    row, column = elem_offset // stride, elem_offset % stride
    return (row // _M * (stride // _N) + column // _N) * 4 + row % _M // 8 * 2


def index_map_m16n8k8_matrixC(ind: Any) -> list[Any]:
    """Return the register of a thread for an element of C: tiles of rows, of columns, half of the tile, element."""
    row, column = ind
    return [row // _M, column // _N, row % _M // 8, column % 2]


def _mma_init(dtype: str) -> tuple[Any, Any]:
    """A fragment of zeros."""
    zero = getattr(T, dtype)(0)

    @T.prim_func
    def desc(c: T.handle) -> None:
        C = T.match_buffer(c, (_M, _N), dtype, offset_factor=1, scope="m16n8k8.matrixC")
        with T.block("root"):
            T.reads()
            T.writes(C[0:_M, 0:_N])
            for i, j in T.grid(_M, _N):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads()
                    T.writes(C[vi, vj])
                    C[vi, vj] = zero

    @T.prim_func
    def impl(c: T.handle) -> None:
        C = T.match_buffer(c, (_M, _N), dtype, offset_factor=1, scope="m16n8k8.matrixC")
        with T.block("root"):
            T.reads()
            T.writes(C[0:_M, 0:_N])
            for tx in T.thread_binding(32, "threadIdx.x"):
                for half in range(2):
                    for pair in T.vectorized(2):
                        C[half * 8 + tx // 4, tx % 4 * 2 + pair] = zero

    return desc, impl


def _copy(name: str, rows: int, columns: int, dtype: str, source: str, target: str) -> Any:
    """Return the description of a load or store: it copies a matrix from one scope to another, in a block of this
    name."""

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (rows, columns), dtype, offset_factor=1, scope=source)
        C = T.match_buffer(c, (rows, columns), dtype, offset_factor=1, scope=target)
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.block(name):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = A[vi, vj]

    return desc


def _mma_load(operand: str) -> tuple[Any, Any]:
    """Four matrices of 8x8 elements of an operand from shared memory; of B, each transposed."""
    is_b = operand == "B"
    rows, columns = (_K, _LOADED) if is_b else (_LOADED, _K)
    scope, register = f"m16n8k8.matrix{operand}", get_index_B if is_b else get_index_A

    def row_of_thread(tx: Any, stride: Any) -> Any:
        return tx % 8 * stride + tx // 8 * 8 if is_b else tx * stride

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        s1, s0, d1, d0 = T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (rows, columns), "float16", offset_factor=1, scope="shared.dyn", strides=[s1, s0])
        C = T.match_buffer(c, (rows, columns), "float16", offset_factor=1, scope=scope, strides=[d1, d0])
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            for tx in T.thread_binding(32, "threadIdx.x"):
                T.evaluate(
                    T.ptx_ldmatrix(
                        is_b,
                        4,
                        ".b16",
                        C.data,
                        register(C.elem_offset, d1),
                        A.access_ptr("r"),
                        row_of_thread(tx, s1),
                        dtype="float16",
                    )
                )

    return _copy("load", rows, columns, "float16", "shared.dyn", scope), impl


def _mma_sync(out_dtype: str) -> tuple[Any, Any]:
    """A fragment plus the product of two."""

    def factor(value: Any) -> Any:
        return value if out_dtype == "float16" else T.Cast(out_dtype, value)

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (_M, _K), "float16", offset_factor=1, scope="m16n8k8.matrixA")
        B = T.match_buffer(b, (_K, _N), "float16", offset_factor=1, scope="m16n8k8.matrixB")
        C = T.match_buffer(c, (_M, _N), out_dtype, offset_factor=1, scope="m16n8k8.matrixC")
        with T.block("root"):
            T.reads(C[0:_M, 0:_N], A[0:_M, 0:_K], B[0:_K, 0:_N])
            T.writes(C[0:_M, 0:_N])
            for i, j, k in T.grid(_M, _N, _K):
                with T.block("sync"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = C[vi, vj] + factor(A[vi, vk]) * factor(B[vk, vj])

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        a1, a0, b1, b0, c1, c0 = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (_M, _K), "float16", offset_factor=1, scope="m16n8k8.matrixA", strides=[a1, a0])
        B = T.match_buffer(b, (_K, _N), "float16", offset_factor=1, scope="m16n8k8.matrixB", strides=[b1, b0])
        C = T.match_buffer(c, (_M, _N), out_dtype, offset_factor=1, scope="m16n8k8.matrixC", strides=[c1, c0])
        with T.block("root"):
            T.reads(C[0:_M, 0:_N], A[0:_M, 0:_K], B[0:_K, 0:_N])
            T.writes(C[0:_M, 0:_N])
            T.evaluate(
                T.ptx_mma(
                    "m16n8k8",
                    "row",
                    "col",
                    "fp16",
                    "fp16",
                    _PTX[out_dtype],
                    A.data,
                    get_index_A(A.elem_offset, a1),
                    B.data,
                    get_index_B(B.elem_offset, b1),
                    C.data,
                    get_index_C(C.elem_offset, c1),
                    False,
                    dtype=out_dtype,
                )
            )

    return desc, impl


def _mma_store(dtype: str) -> tuple[Any, Any]:
    """A fragment into memory, by each thread what it has."""

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (_M, _N), dtype, offset_factor=1, scope="m16n8k8.matrixC")
        C = T.match_buffer(c, (_M, _N), dtype, offset_factor=1, scope="global")
        with T.block("root"):
            T.reads(A[0:_M, 0:_N])
            T.writes(C[0:_M, 0:_N])
            for tx in T.thread_binding(32, "threadIdx.x"):
                for half in range(2):
                    for pair in T.vectorized(2):
                        C[half * 8 + tx // 4, tx % 4 * 2 + pair] = A[half * 8 + tx // 4, tx % 4 * 2 + pair]

    return _copy("store", _M, _N, dtype, "m16n8k8.matrixC", "global"), impl


def _register() -> None:
    """All of them, under TVM's names."""
    for operand in "AB":
        register_at_import(f"mma_load_m16n8k8_f16_{operand}_shared_dyn", *_mma_load(operand))
    for dtype, short in _SHORT.items():
        register_at_import(f"mma_init_m16n8k8_{short}", *_mma_init(dtype))
        register_at_import(f"mma_sync_m16n8k8_f16f16{short}", *_mma_sync(dtype))
        register_at_import(f"mma_store_m16n8k8_{short}_global", *_mma_store(dtype))


_register()


def get_m16n8k8_intrin_group(out_dtype: str) -> dict[str, str]:
    """The names of the intrinsics of one product of float16: init, load_a, load_b, compute and store.

    An ArgumentError names the one that there is none of.
    """
    short = _SHORT.get(out_dtype, out_dtype)
    group = {
        "init": f"mma_init_m16n8k8_{short}",
        "load_a": "mma_load_m16n8k8_f16_A_shared_dyn",
        "load_b": "mma_load_m16n8k8_f16_B_shared_dyn",
        "compute": f"mma_sync_m16n8k8_f16f16{short}",
        "store": f"mma_store_m16n8k8_{short}_global",
    }
    for name in group.values():
        TensorIntrin.get(name)
    return group
