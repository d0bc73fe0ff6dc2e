"""Products of tiles by the warps of Nvidia's GPUs, register by register (ldmatrix, mma).

A warp holds a tile as buffers of scope "warp": element (thread, register). The layout functions map between that and
the element of the tile. As in TVM, the description of a transposing load, and of every load of B, uses the layout of A.
It does not define which register holds which element: such a load is correct only together with the ``mma`` of the
same :func:`get_mma_intrin_group`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.fragments import Layout, copy_of_tile, ldmatrix, oriented, product_of_tiles, zeros
from tilewright.tensor_intrin.programs import on_one, on_three, on_two, strided, tile
from tilewright.tensor_intrin.table import add_named, all_known

__all__ = [
    "get_ldmatrix_intrin",
    "get_mma_fill_intrin",
    "get_mma_intrin",
    "get_mma_intrin_group",
    "get_mma_store_intrin",
    "ldmatrix_32x8_to_shared_16x16_layout",
    "ldmatrix_32x16_to_shared_32x16_layout_b",
    "ldmatrix_trans_32x8_to_shared_16x16_layout",
    "mma_store_32x8_to_shared_16x16_layout",
    "shared_16x16_to_ldmatrix_32x8_layout",
    "shared_16x32_to_ldmatrix_32x16_layout",
    "shared_32x16_to_ldmatrix_32x16_layout",
]

_THREADS = 32
_ALIGNED = {"align": 64, "offset_factor": 16}
_FLOAT8 = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
#: abbreviation of a dtype in TVM's intrinsic names
_SHORT = {"float16": "f16", "float32": "f32", "int8": "i8", "int32": "i32", "bfloat16": "bf16"} | {
    v: k for k, v in _FLOAT8.items()
}
#: spelling of a dtype in T.ptx_mma
_PTX = {"float16": "fp16", "float32": "fp32", "int8": "int8", "int32": "int32", "bfloat16": "bf16"} | {
    v: k for k, v in _FLOAT8.items()
}


def shared_16x16_to_ldmatrix_32x8_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """Return (thread, register) of element (i, j) of a 16x16 tile of 16-bit elements, as ldmatrix distributes it."""
    return 4 * (i % 8) + j % 8 // 2, 4 * (j // 8) + i // 8 * 2 + j % 2


def shared_16x32_to_ldmatrix_32x16_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """Return (thread, register) of element (i, j) of a 16x32 tile of 8-bit elements, as ldmatrix distributes it."""
    return 4 * (i % 8) + j % 16 // 4, 8 * (j // 16) + i // 8 * 4 + j % 4


def shared_32x16_to_ldmatrix_32x16_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """Return (thread, register) of element (i, j) of a 32x16 tile of 8-bit elements: the B operand of mma.m16n8k32."""
    return i % 16 // 4 + 4 * (j % 8), 8 * (j // 8) + i // 16 * 4 + i % 4


def ldmatrix_32x8_to_shared_16x16_layout(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of the element in a register of a thread: the inverse of
    shared_16x16_to_ldmatrix_32x8_layout."""
    return 8 * (local_id % 4 // 2) + thread_id // 4, 8 * (local_id // 4) + thread_id % 4 * 2 + local_id % 2


def ldmatrix_trans_32x8_to_shared_16x16_layout(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of element (thread, register) of a tile that ldmatrix has transposed."""
    return 8 * (local_id // 4) + thread_id % 4 * 2 + local_id % 2, 8 * (local_id % 4 // 2) + thread_id // 4


def ldmatrix_32x16_to_shared_32x16_layout_b(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of the element in a register of a thread: the inverse of
    shared_32x16_to_ldmatrix_32x16_layout."""
    return 16 * (local_id % 8 // 4) + thread_id % 4 * 4 + local_id % 4, 8 * (local_id // 8) + thread_id // 4


def mma_store_32x8_to_shared_16x16_layout(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """Return (row, column) of the result element in register `local_id` of thread `thread_id`."""
    return ldmatrix_32x8_to_shared_16x16_layout(thread_id, local_id)


def _layout_of(k_dim: int, operand: str, transposed: bool) -> tuple[tuple[int, int], Layout]:
    """Return the shape of an operand in shared memory, and its layout in the registers of a warp."""
    if k_dim == 16:
        return (16, 16), shared_16x16_to_ldmatrix_32x8_layout
    if operand == "B" and not transposed:
        return (k_dim, 16), shared_32x16_to_ldmatrix_32x16_layout
    return (16, k_dim), shared_16x32_to_ldmatrix_32x16_layout


def _offset_of(k_dim: int, operand: str, transposed: bool) -> Callable[[Any, Any], Any]:
    """Return the function (thread, row stride) -> offset in shared memory that the thread passes to ldmatrix."""
    half = 8 if k_dim == 16 else 16
    if k_dim == 32 and operand == "B" and not transposed:
        return lambda tx, stride: stride  # loaded element by element: there is no transposing load of bytes
    if transposed:
        return lambda tx, stride: stride * 8 * (tx // 16) + stride * (tx % 8) + half * (tx % 16 // 8)
    return lambda tx, stride: stride * (tx % 16) + half * (tx // 16)


def get_ldmatrix_intrin(
    k_dim: int, dtype: str, matrix_name: str, transposed: bool, shared_scope: str = "shared"
) -> tuple[Any, Any]:
    """Return desc and impl that load an operand tile from shared memory into the registers of a warp."""
    shape, layout = _layout_of(k_dim, matrix_name, transposed)
    offset_of = _offset_of(k_dim, matrix_name, transposed)
    registers = shape[0] * shape[1] // _THREADS
    # ldmatrix.trans moves only 16-bit elements: for bytes, each thread loads its elements of B one by one.
    trans = transposed == (matrix_name == "A")
    if k_dim == 32:
        trans = matrix_name == "B" and not transposed

    load = ldmatrix(trans, dtype, lambda warp, tx: warp.elem_offset + registers * tx, offset_of)
    shared = tile(shape, dtype, shared_scope, **_ALIGNED)
    warp = tile((_THREADS, registers), dtype, "warp", **_ALIGNED)
    copy = copy_of_tile("shared_warp", shape, target_at=layout)
    return on_two("desc", copy, shared, warp), on_two("impl", load, strided(shared), warp)


def get_mma_intrin(
    k_dim: int, a_dtype: str, b_dtype: str, out_dtype: str, a_transposed: bool, b_transposed: bool
) -> tuple[Any, Any]:
    """Return desc and impl of C += A B, with all tiles in registers."""
    shape_a, layout_a = _layout_of(k_dim, "A", a_transposed)
    shape_b, layout_b = _layout_of(k_dim, "B", b_transposed)
    local_a, local_b, local_c = shape_a[0] * shape_a[1] // 32, shape_b[0] * shape_b[1] // 32, 8
    shape = f"m16n8k{k_dim}"

    at = oriented(layout_a, a_transposed), oriented(layout_b, b_transposed), shared_16x16_to_ldmatrix_32x8_layout
    product = product_of_tiles("C", (16, 16, k_dim), at, (a_dtype, b_dtype, out_dtype))

    def half(C: Any, A: Any, B: Any, tx: Any, which: int) -> Any:
        return T.ptx_mma(
            shape,
            "row",
            "col",
            _PTX[a_dtype],
            _PTX[b_dtype],
            _PTX[out_dtype],
            A.data,
            A.elem_offset + local_a * tx,
            B.data,
            B.elem_offset + local_b * tx + which * (local_b // 2),
            C.data,
            C.elem_offset + local_c * tx + which * (local_c // 2),
            False,
            dtype=out_dtype,
        )

    @T.macro
    def in_halves(A: Any, B: Any, C: Any) -> None:
        for tx in T.thread_binding(32, "threadIdx.x"):
            T.evaluate(half(C, A, B, tx, 0))
            T.evaluate(half(C, A, B, tx, 1))

    tiles = [
        tile((_THREADS, registers), dtype, "warp", **_ALIGNED)
        for registers, dtype in ((local_a, a_dtype), (local_b, b_dtype), (local_c, out_dtype))
    ]
    return on_three("desc", product, *tiles), on_three("impl", in_halves, *tiles)


def get_mma_fill_intrin(dtype: str, local_size: int) -> tuple[Any, Any]:
    """Return desc and impl that set the accumulator registers to zero."""

    @T.macro
    def fill(C: Any) -> None:
        for tx in T.thread_binding(32, "threadIdx.x"):
            T.evaluate(T.mma_fill(local_size, C.data, C.elem_offset + local_size * tx, dtype=dtype))

    described, written = (tile((_THREADS, local_size), dtype, "warp", offset_factor=factor) for factor in (0, 1))
    in_order = zeros("C_warp", (16, 2 * local_size), T.Cast(dtype, 0), shared_16x16_to_ldmatrix_32x8_layout)
    return on_one("desc", in_order, described), on_one("impl", fill, written)


def get_mma_store_intrin(
    dtype: str, local_size: int, scope: str = "global", use_mma_store_intrinic: bool = True
) -> tuple[Any, Any]:
    """Return desc and impl that store the accumulator registers: by mma_store, or each thread element by element."""
    back = mma_store_32x8_to_shared_16x16_layout

    @T.macro
    def store(A: Any, C: Any) -> None:
        for tx in T.thread_binding(32, "threadIdx.x"):
            if use_mma_store_intrinic:
                T.evaluate(
                    T.mma_store(
                        16,
                        16,
                        C.access_ptr("w"),
                        A.data,
                        A.elem_offset + local_size * tx,
                        C.strides[0],
                        dtype=dtype,
                    )
                )
            else:
                for local_id in range(local_size):
                    C[*back(tx, local_id)] = A[tx, local_id]

    def tiles(offset_factor: int) -> list[Any]:
        return [
            tile((_THREADS, local_size), dtype, "warp", offset_factor=offset_factor),
            tile((16, 16), dtype, scope, offset_factor=offset_factor),
        ]

    copy = copy_of_tile("C_warp", (16, 16), shared_16x16_to_ldmatrix_32x8_layout)
    warp, memory = tiles(1)
    name = "impl" if use_mma_store_intrinic else "by_threads"
    return on_two("desc", copy, *tiles(0)), on_two(name, store, warp, strided(memory))


_add = partial(add_named, globals())


def _register() -> None:
    """Register all tile shapes and dtypes under TVM's names."""
    for operand in "AB":
        for trans in (False, True):
            for scope, dyn in (("shared", ""), ("shared.dyn", "_dyn")):
                tail = f"{'_trans' if trans else ''}{dyn}"
                for dtype in ("float16", "bfloat16"):
                    pair = get_ldmatrix_intrin(16, dtype, operand, trans, scope)
                    name = f"mma_ldmatrix_{_SHORT[dtype]}_{operand.lower()}{tail}"
                    _add(f"LDMATRIX_{_SHORT[dtype]}_{operand}{tail.upper()}", name, pair)
    for dtype in ("int8", *_FLOAT8.values()):
        short = _SHORT[dtype]
        for operand, trans in (("A", False), ("B", False), ("B", True)):
            tail = "_trans" if trans else ""
            pair = get_ldmatrix_intrin(32, dtype, operand, trans)
            _add(f"LDMATRIX_{short}_{operand}{tail.upper()}", f"mma_ldmatrix_{short}_{operand.lower()}{tail}", pair)
    for dtype, out in (("float16", "float32"), ("float16", "float16"), ("bfloat16", "float32")):
        for trans_a in (False, True):
            for trans_b in (False, True):
                short = f"{_SHORT[dtype] * 2}{_SHORT[out]}"
                tail = f"{'_trans_a' if trans_a else ''}{'_trans_b' if trans_b else ''}"
                pair = get_mma_intrin(16, dtype, dtype, out, trans_a, trans_b)
                _add(f"MMA_{short}{tail.upper()}", f"mma_{short}{tail}", pair)
    for dtype, out in (("int8", "int32"), *((dtype, "float32") for dtype in _FLOAT8.values())):
        for trans_b in (False, True):
            short, tail = f"{_SHORT[dtype] * 2}{_SHORT[out]}", "_trans_b" if trans_b else ""
            pair = get_mma_intrin(32, dtype, dtype, out, False, trans_b)
            _add(f"MMA_{short}{tail.upper()}", f"mma_{short}{tail}", pair)
    for dtype in ("float32", "float16", "int32"):
        short = _SHORT[dtype]
        _add(f"MMA_fill_16x16_{short}", f"mma_fill_16x16_{short}", get_mma_fill_intrin(dtype, 8))
        _add(f"MMA_store_16x16_{short}_global", f"mma_store_16x16_{short}_global_", get_mma_store_intrin(dtype, 8))
    for dtype, simple in (("float32", ""), ("float32", "simple_"), ("float16", "simple_")):
        short = f"{_SHORT[dtype]}_shared_dyn"
        pair = get_mma_store_intrin(dtype, 8, "shared.dyn", not simple)
        ending = "_INTRIN_SIMPLE" if simple else "_INTRIN"
        _add(f"MMA_store_16x16_{short}", f"mma_store_16x16_{short}_{simple}", pair, ending)


_register()


def get_mma_intrin_group(
    load_scope: str,
    store_scope: str,
    a_dtype: str,
    b_dtype: str,
    out_dtype: str,
    trans_a: bool,
    trans_b: bool,
    not_use_mma_store_intrinic: bool = True,
    store_to_smem_dtype: str = "",
) -> dict[str, str]:
    """Return the names of the tensor intrinsics of an mma product, by role: init, load_a, load_b, compute, store.

    Raises:
        tilewright.ArgumentError: one of them is not registered.
    """
    stored = _SHORT[store_to_smem_dtype or out_dtype]
    dyn = "_dyn" if load_scope == "shared.dyn" else ""
    mark_a, mark_b = "_trans" if trans_a else "", "_trans" if trans_b else ""
    product = f"{_SHORT[a_dtype]}{_SHORT[b_dtype]}{_SHORT[out_dtype]}"
    return all_known(
        {
            "init": f"mma_fill_16x16_{_SHORT[out_dtype]}",
            "load_a": f"mma_ldmatrix_{_SHORT[a_dtype]}_a{mark_a}{dyn}",
            "load_b": f"mma_ldmatrix_{_SHORT[b_dtype]}_b{mark_b}{dyn}",
            "compute": f"mma_{product}{'_trans_a' if trans_a else ''}{'_trans_b' if trans_b else ''}",
            "store": f"mma_store_16x16_{stored}_{store_scope.replace('.', '_')}_"
            f"{'simple_' if not_use_mma_store_intrinic else ''}",
        }
    )
