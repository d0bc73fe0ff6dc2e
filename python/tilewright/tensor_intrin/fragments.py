"""Bodies of descriptions for tiles whose elements are divided among the registers of the lanes of a warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.script import tir as T

#: from row and column of a tile to where an element is: lane and register, or row and column
Layout = Callable[[Any, Any], tuple[Any, Any]]


def rows_first(row: Any, column: Any) -> tuple[Any, Any]:
    """Return the row-major position of an element: (row, column) itself."""
    return row, column


def oriented(layout: Layout, transposed: bool) -> Layout:
    """Return the layout of a tile, or of its transpose."""
    return (lambda row, column: layout(column, row)) if transposed else layout


def zeros(block: str, shape: tuple[int, int], zero: Any, at: Layout = rows_first) -> Any:
    """Return a macro that fills a tile in a block of this name."""

    @T.macro
    def fill(C: Any) -> None:
        for i, j in T.grid(*shape):
            with T.block(block):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[*at(vi, vj)])
                C[*at(vi, vj)] = zero

    return fill


def copy_of_tile(
    block: str, shape: tuple[int, int], source_at: Layout = rows_first, target_at: Layout = rows_first
) -> Any:
    """Return a macro that copies a tile, from one layout to another, in a block of this name."""

    @T.macro
    def copy(source: Any, target: Any) -> None:
        for i, j in T.grid(*shape):
            with T.block(block):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(source[*source_at(vi, vj)])
                T.writes(target[*target_at(vi, vj)])
                target[*target_at(vi, vj)] = source[*source_at(vi, vj)]

    return copy


def ldmatrix(
    trans: bool, dtype: str, register_of: Callable[[Any, Any], Any], offset_of: Callable[[Any, Any], Any]
) -> Any:
    """Return a macro that loads four matrices of 8x8 elements of 16 bits from shared memory into registers.

    Args:
        trans: whether each matrix is transposed.
        dtype: data type of the elements in registers.
        register_of: returns the first register, given the target buffer and the lane.
        offset_of: returns the offset of the row that the lane loads, given the lane and the stride of the source.
    """

    @T.macro
    def load(source: Any, target: Any) -> None:
        for tx in T.thread_binding(32, "threadIdx.x"):
            T.evaluate(
                T.ptx_ldmatrix(
                    trans,
                    4,
                    ".b16",
                    target.data,
                    register_of(target, tx),
                    source.access_ptr("r"),
                    offset_of(tx, source.strides[0]),
                    dtype=dtype,
                )
            )

    return load


def product_of_tiles(
    block: str, extents: tuple[int, int, int], at: tuple[Layout, Layout, Layout], dtypes: tuple[str, str, str]
) -> Any:
    """Return a macro of the buffers A (rows, steps), B (steps, columns) and C (rows, columns) that computes C += A B.

    Args:
        block: the name of its block.
        extents: numbers of rows, columns and steps.
        at: where the elements of A, B and C are.
        dtypes: data types of A, B and C; factors are cast to that of C.
    """
    at_a, at_b, at_c = at

    def factor(value: Any, dtype: str) -> Any:
        return value if dtype == dtypes[2] else T.Cast(dtypes[2], value)

    @T.macro
    def product(A: Any, B: Any, C: Any) -> None:
        for i, j, k in T.grid(*extents):
            with T.block(block):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[*at_c(vi, vj)], A[*at_a(vi, vk)], B[*at_b(vk, vj)])
                T.writes(C[*at_c(vi, vj)])
                C[*at_c(vi, vj)] = C[*at_c(vi, vj)] + factor(A[*at_a(vi, vk)], dtypes[0]) * factor(
                    B[*at_b(vk, vj)], dtypes[1]
                )

    return product
