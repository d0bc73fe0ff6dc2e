"""Products of tiles by the warps of Nvidia's GPUs, through fragments (wmma): load, fill, multiply, store."""

from __future__ import annotations

from functools import partial
from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.fragments import copy_of_tile, oriented, product_of_tiles, rows_first, zeros
from tilewright.tensor_intrin.programs import on_one, on_three, on_two, strided, tile
from tilewright.tensor_intrin.table import add_named, all_known

__all__ = ["get_wmma_fill_intrin", "get_wmma_intrin_group", "get_wmma_load_intrin", "get_wmma_store_intrin"]
__all__ += ["get_wmma_fragment_index", "get_wmma_sync_intrin"]

_SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32", "int4": "s4"}


def get_wmma_fragment_index(buffer: Any, stride: Any, m_dim: int, n_dim: int) -> Any:
    """Return the index of a tile among the fragments of a buffer, from the offset of its first element."""
    row, column = buffer.elem_offset // stride // m_dim, buffer.elem_offset % stride // n_dim
    return row * (stride // n_dim) + column


def _fragment_shape(sizes: tuple[int, int, int], operand: str, col_major: bool) -> tuple[int, int]:
    m, n, k = sizes
    shape = {"a": (m, k), "b": (k, n), "accumulator": (m, n)}[operand]
    return (shape[1], shape[0]) if col_major else shape


def _programs(description: Any, implementation: Any, *tiles: tuple[tuple[int, int], str, str]) -> tuple[Any, Any]:
    """Return desc and impl over fragments and tiles of memory: shape, data type and scope of each."""
    made = [tile(*each, align=64, offset_factor=16) for each in tiles]
    program: Any = {1: on_one, 2: on_two, 3: on_three}[len(tiles)]
    return program("desc", description, *made), program("impl", implementation, *map(strided, made))


def _fragment_of(buffer: Any) -> Any:
    return get_wmma_fragment_index(buffer, buffer.strides[0], *map(int, buffer.shape))


def get_wmma_load_intrin(
    m_dim: int, n_dim: int, k_dim: int, dtype: str, shared_scope: str, is_b: bool, is_col_major: bool
) -> tuple[Any, Any]:
    """Return desc and impl that load a tile from shared memory into a fragment."""
    scope = "wmma.matrix_b" if is_b else "wmma.matrix_a"
    shape = _fragment_shape((m_dim, n_dim, k_dim), "b" if is_b else "a", is_col_major)
    layout = "col_major" if is_col_major else "row_major"

    @T.macro
    def load(A: Any, C: Any) -> None:
        T.evaluate(
            T.tvm_load_matrix_sync(
                C.data, m_dim, n_dim, k_dim, _fragment_of(C), A.access_ptr("r"), A.strides[0], layout
            )
        )

    return _programs(copy_of_tile("load", shape), load, (shape, dtype, shared_scope), (shape, dtype, scope))


def get_wmma_fill_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> tuple[Any, Any]:
    """Return desc and impl that set a fragment to zero."""
    shape = (m_dim, n_dim)

    @T.macro
    def fill(C: Any) -> None:
        T.evaluate(T.tvm_fill_fragment(C.data, m_dim, n_dim, k_dim, _fragment_of(C), T.float32(0)))

    return _programs(zeros("init", shape, getattr(T, dtype)(0)), fill, (shape, dtype, "wmma.accumulator"))


def get_wmma_store_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str, scope: str) -> tuple[Any, Any]:
    """Return desc and impl that store a fragment to memory."""
    shape = (m_dim, n_dim)

    @T.macro
    def store(A: Any, C: Any) -> None:
        T.evaluate(
            T.tvm_store_matrix_sync(
                A.data, m_dim, n_dim, k_dim, _fragment_of(A), C.access_ptr("w"), C.strides[0], "row_major"
            )
        )

    return _programs(copy_of_tile("store", shape), store, (shape, dtype, "wmma.accumulator"), (shape, dtype, scope))


def get_wmma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> tuple[Any, Any]:
    """Return desc and impl that add the product of two fragments to a fragment."""
    sizes = (m_dim, n_dim, k_dim)
    at = rows_first, oriented(rows_first, b_transposed), rows_first

    @T.macro
    def by_mma(A: Any, B: Any, C: Any) -> None:
        T.evaluate(T.tvm_mma_sync(*(part for buffer in (C, A, B, C) for part in (buffer.data, _fragment_of(buffer)))))

    return _programs(
        product_of_tiles("", sizes, at, (in_dtype, in_dtype, out_dtype)),
        by_mma,
        ((m_dim, k_dim), in_dtype, "wmma.matrix_a"),
        (_fragment_shape(sizes, "b", b_transposed), in_dtype, "wmma.matrix_b"),
        ((m_dim, n_dim), out_dtype, "wmma.accumulator"),
    )


_add = partial(add_named, globals())


def _register() -> None:
    """Register all tile shapes and dtypes that GPUs support, under TVM's names."""
    for sizes, dtypes in (((16, 16, 16), ("float16", "int8")), ((8, 8, 32), ("int4",))):
        shape = "x".join(map(str, sizes))
        for dtype in dtypes:
            for operand in "ab":
                for trans in (False, True):
                    if dtype == "int4" and trans != (operand == "b"):
                        continue
                    for scope, dyn in (("shared", ""), ("shared.dyn", "_dyn")):
                        pair = get_wmma_load_intrin(*sizes, dtype, scope, operand == "b", trans)
                        kind = f"{_SHORT[dtype]}_{operand}{'_trans' if trans else ''}"
                        name = f"wmma_load_{shape}_{kind}_shared{dyn}"
                        _add(f"WMMA_LOAD_{shape}_{(kind + dyn).upper()}", name, pair)
    for sizes, outs in (((16, 16, 16), ("float32", "float16", "int32")), ((8, 8, 32), ("int32",))):
        shape = "x".join(map(str, sizes))
        for dtype in outs:
            fill = get_wmma_fill_intrin(*sizes, dtype)
            _add(f"WMMA_FILL_{shape}_{_SHORT[dtype].upper()}", f"wmma_fill_{shape}_{_SHORT[dtype]}", fill)
            for scope in ("shared", "shared.dyn", "global"):
                ending = f"{_SHORT[dtype]}_{scope.replace('.', '_')}"
                store = get_wmma_store_intrin(*sizes, dtype, scope)
                _add(f"WMMA_STORE_{shape}_{ending.upper()}", f"wmma_store_{shape}_{ending}", store)
    for sizes, types, short, transposed in (
        ((16, 16, 16), ("float16", "float32"), "f16f16f32", (False, True)),
        ((16, 16, 16), ("float16", "float16"), "f16f16f16", (False, True)),
        ((16, 16, 16), ("int8", "int32"), "s8s8s32", (False, True)),
        ((8, 8, 32), ("int4", "int32"), "s4s4s32", (True,)),
    ):
        for trans in transposed:
            kind, tail = f"{'x'.join(map(str, sizes))}_{short}", "_trans" if trans else ""
            pair = get_wmma_sync_intrin(*sizes, *types, trans)
            _add(f"WMMA_SYNC_{kind}{tail.upper()}", f"wmma_sync_{kind}{tail}", pair)


_register()


def get_wmma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool
) -> dict[str, str]:
    """Return the names of the tensor intrinsics of a wmma product, by role: init, load_a, load_b, compute, store."""
    shape = "8x8x32" if in_dtype == "int4" else "16x16x16"
    short_in, short_out = _SHORT[in_dtype], _SHORT[out_dtype]
    trans = "_trans" if trans_b else ""
    load, store = load_scope.replace(".", "_"), store_scope.replace(".", "_")
    return all_known(
        {
            "init": f"wmma_fill_{shape}_{short_out}",
            "load_a": f"wmma_load_{shape}_{short_in}_a_{load}",
            "load_b": f"wmma_load_{shape}_{short_in}_b{trans}_{load}",
            "compute": f"wmma_sync_{shape}_{short_in}{short_in}{short_out}{trans}",
            "store": f"wmma_store_{shape}_{short_out}_{store}",
        }
    )
