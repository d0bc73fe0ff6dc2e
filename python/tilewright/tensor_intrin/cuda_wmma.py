"""Products of tiles by the warps of Nvidia's GPUs, through fragments (wmma): load, fill, multiply, store."""

from __future__ import annotations

from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.table import TensorIntrin, register_at_import

__all__ = ["get_wmma_fill_intrin", "get_wmma_intrin_group", "get_wmma_load_intrin", "get_wmma_store_intrin"]
__all__ += ["get_wmma_fragment_index", "get_wmma_sync_intrin"]

_SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32", "int4": "s4"}


def get_wmma_fragment_index(buffer: Any, stride: Any, m_dim: int, n_dim: int) -> Any:
    """Which of the fragments of a buffer a tile is, by where it begins."""
    row, column = buffer.elem_offset // stride // m_dim, buffer.elem_offset % stride // n_dim
    return row * (stride // n_dim) + column


def _fragment_shape(sizes: tuple[int, int, int], operand: str, col_major: bool) -> tuple[int, int]:
    m, n, k = sizes
    shape = {"a": (m, k), "b": (k, n), "accumulator": (m, n)}[operand]
    return (shape[1], shape[0]) if col_major else shape


def get_wmma_load_intrin(
    m_dim: int, n_dim: int, k_dim: int, dtype: str, shared_scope: str, is_b: bool, is_col_major: bool
) -> tuple[Any, Any]:
    """A tile from shared memory into a fragment."""
    scope = "wmma.matrix_b" if is_b else "wmma.matrix_a"
    rows, columns = _fragment_shape((m_dim, n_dim, k_dim), "b" if is_b else "a", is_col_major)
    layout = "col_major" if is_col_major else "row_major"

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (rows, columns), dtype, align=64, offset_factor=16, scope=shared_scope)
        C = T.match_buffer(c, (rows, columns), dtype, align=64, offset_factor=16, scope=scope)
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.block("load"):
                    vii, vjj = T.axis.remap("SS", [i, j])
                    C[vii, vjj] = A[vii, vjj]

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        s1, s0, d1, d0 = T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (rows, columns), dtype, align=64, offset_factor=16, scope=shared_scope, strides=[s1, s0])
        C = T.match_buffer(c, (rows, columns), dtype, align=64, offset_factor=16, scope=scope, strides=[d1, d0])
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            T.evaluate(
                T.tvm_load_matrix_sync(
                    C.data,
                    m_dim,
                    n_dim,
                    k_dim,
                    get_wmma_fragment_index(C, d1, rows, columns),
                    A.access_ptr("r"),
                    s1,
                    layout,
                )
            )

    return desc, impl


def get_wmma_fill_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> tuple[Any, Any]:
    """A fragment of zeros."""

    @T.prim_func
    def desc(c: T.handle) -> None:
        C = T.match_buffer(c, (m_dim, n_dim), dtype, align=64, offset_factor=16, scope="wmma.accumulator")
        with T.block("root"):
            T.reads()
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j in T.grid(m_dim, n_dim):
                with T.block("init"):
                    vii, vjj = T.axis.remap("SS", [i, j])
                    C[vii, vjj] = _zero(dtype)

    @T.prim_func
    def impl(c: T.handle) -> None:
        d1, d0 = T.int32(), T.int32()
        C = T.match_buffer(
            c, (m_dim, n_dim), dtype, align=64, offset_factor=16, scope="wmma.accumulator", strides=[d1, d0]
        )
        with T.block("root"):
            T.reads()
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_fill_fragment(
                    C.data,
                    m_dim,
                    n_dim,
                    k_dim,
                    get_wmma_fragment_index(C, d1, m_dim, n_dim),
                    T.float32(0),
                )
            )

    return desc, impl


def _zero(dtype: str) -> Any:
    return getattr(T, dtype)(0)


def get_wmma_store_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str, scope: str) -> tuple[Any, Any]:
    """A fragment into memory."""

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (m_dim, n_dim), dtype, align=64, offset_factor=16, scope="wmma.accumulator")
        C = T.match_buffer(c, (m_dim, n_dim), dtype, align=64, offset_factor=16, scope=scope)
        with T.block("root"):
            T.reads(A[0:m_dim, 0:n_dim])
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j in T.grid(m_dim, n_dim):
                with T.block("store"):
                    vii, vjj = T.axis.remap("SS", [i, j])
                    C[vii, vjj] = A[vii, vjj]

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        s1, s0, d1, d0 = T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(
            a, (m_dim, n_dim), dtype, align=64, offset_factor=16, scope="wmma.accumulator", strides=[d1, d0]
        )
        C = T.match_buffer(c, (m_dim, n_dim), dtype, align=64, offset_factor=16, scope=scope, strides=[s1, s0])
        with T.block("root"):
            T.reads(A[0:m_dim, 0:n_dim])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_store_matrix_sync(
                    A.data,
                    m_dim,
                    n_dim,
                    k_dim,
                    get_wmma_fragment_index(A, d1, m_dim, n_dim),
                    C.access_ptr("w"),
                    s1,
                    "row_major",
                )
            )

    return desc, impl


def get_wmma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> tuple[Any, Any]:
    """A fragment plus the product of two."""
    b_rows, b_columns = _fragment_shape((m_dim, n_dim, k_dim), "b", b_transposed)

    def factor(value: Any) -> Any:
        return value if in_dtype == out_dtype else T.Cast(out_dtype, value)

    def element(B: Any, k: Any, j: Any) -> Any:
        return B[j, k] if b_transposed else B[k, j]

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (m_dim, k_dim), in_dtype, align=64, offset_factor=16, scope="wmma.matrix_a")
        B = T.match_buffer(b, (b_rows, b_columns), in_dtype, align=64, offset_factor=16, scope="wmma.matrix_b")
        C = T.match_buffer(c, (m_dim, n_dim), out_dtype, align=64, offset_factor=16, scope="wmma.accumulator")
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j, k in T.grid(m_dim, n_dim, k_dim):
                with T.block(""):
                    vii, vjj, vkk = T.axis.remap("SSR", [i, j, k])
                    C[vii, vjj] = C[vii, vjj] + factor(A[vii, vkk]) * factor(element(B, vkk, vjj))

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        a1, a0, b1, b0, c1, c0 = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(
            a, (m_dim, k_dim), in_dtype, align=64, offset_factor=16, scope="wmma.matrix_a", strides=[a1, a0]
        )
        B = T.match_buffer(
            b, (b_rows, b_columns), in_dtype, align=64, offset_factor=16, scope="wmma.matrix_b", strides=[b1, b0]
        )
        C = T.match_buffer(
            c, (m_dim, n_dim), out_dtype, align=64, offset_factor=16, scope="wmma.accumulator", strides=[c1, c0]
        )
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_mma_sync(
                    C.data,
                    get_wmma_fragment_index(C, c1, m_dim, n_dim),
                    A.data,
                    get_wmma_fragment_index(A, a1, m_dim, k_dim),
                    B.data,
                    get_wmma_fragment_index(B, b1, b_rows, b_columns),
                    C.data,
                    get_wmma_fragment_index(C, c1, m_dim, n_dim),
                )
            )

    return desc, impl


def _name(variable: str, name: str) -> None:
    globals()[f"{variable}_INTRIN"] = name
    __all__.append(f"{variable}_INTRIN")


def _register() -> None:
    """Every kind of tile that GPUs know, under TVM's names."""
    for sizes, dtypes in (((16, 16, 16), ("float16", "int8")), ((8, 8, 32), ("int4",))):
        shape = "x".join(map(str, sizes))
        for dtype in dtypes:
            for operand in "ab":
                for trans in (False, True):
                    if dtype == "int4" and trans != (operand == "b"):
                        continue
                    for scope, ending in (("shared", "_shared"), ("shared.dyn", "_shared_dyn")):
                        tail = f"{_SHORT[dtype]}_{operand}{'_trans' if trans else ''}{ending}"
                        pair = get_wmma_load_intrin(*sizes, dtype, scope, operand == "b", trans)
                        register_at_import(f"wmma_load_{shape}_{tail}", *pair)
                        dyn = "_DYN" if ending.endswith("dyn") else ""
                        kind = f"{_SHORT[dtype].upper()}_{operand.upper()}{'_TRANS' if trans else ''}"
                        _name(f"WMMA_LOAD_{shape}_{kind}{dyn}", f"wmma_load_{shape}_{tail}")
    for sizes, outs in (((16, 16, 16), ("float32", "float16", "int32")), ((8, 8, 32), ("int32",))):
        shape = "x".join(map(str, sizes))
        for dtype in outs:
            register_at_import(f"wmma_fill_{shape}_{_SHORT[dtype]}", *get_wmma_fill_intrin(*sizes, dtype))
            _name(f"WMMA_FILL_{shape}_{_SHORT[dtype].upper()}", f"wmma_fill_{shape}_{_SHORT[dtype]}")
            for scope in ("shared", "shared.dyn", "global"):
                ending = scope.replace(".", "_")
                name = f"wmma_store_{shape}_{_SHORT[dtype]}_{ending}"
                register_at_import(name, *get_wmma_store_intrin(*sizes, dtype, scope))
                _name(f"WMMA_STORE_{shape}_{_SHORT[dtype].upper()}_{ending.upper()}", name)
    products = [(("float16", "float32"), "f16f16f32"), (("float16", "float16"), "f16f16f16")]
    products.append((("int8", "int32"), "s8s8s32"))
    for types, short in products:
        for trans in (False, True):
            name = f"wmma_sync_16x16x16_{short}{'_trans' if trans else ''}"
            register_at_import(name, *get_wmma_sync_intrin(16, 16, 16, *types, trans))
            _name(f"WMMA_SYNC_16x16x16_{short}{'_TRANS' if trans else ''}", name)
    register_at_import("wmma_sync_8x8x32_s4s4s32_trans", *get_wmma_sync_intrin(8, 8, 32, "int4", "int32", True))
    _name("WMMA_SYNC_8x8x32_s4s4s32_TRANS", "wmma_sync_8x8x32_s4s4s32_trans")


_register()


def get_wmma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool
) -> dict[str, str]:
    """The names of the intrinsics of one product: init, load_a, load_b, compute and store."""
    shape = "8x8x32" if in_dtype == "int4" else "16x16x16"
    short_in, short_out = _SHORT[in_dtype], _SHORT[out_dtype]
    trans = "_trans" if trans_b else ""
    load, store = load_scope.replace(".", "_"), store_scope.replace(".", "_")
    group = {
        "init": f"wmma_fill_{shape}_{short_out}",
        "load_a": f"wmma_load_{shape}_{short_in}_a_{load}",
        "load_b": f"wmma_load_{shape}_{short_in}_b{trans}_{load}",
        "compute": f"wmma_sync_{shape}_{short_in}{short_in}{short_out}{trans}",
        "store": f"wmma_store_{shape}_{short_out}_{store}",
    }
    for name in group.values():
        TensorIntrin.get(name)
    return group
