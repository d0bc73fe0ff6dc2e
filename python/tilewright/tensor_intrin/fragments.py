"""Products of 16 x 16 tiles whose elements are divided among the registers of the lanes of a warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.script import tir as T

#: from row and column of a tile to lane and register
Layout = Callable[[Any, Any], tuple[Any, Any]]


def oriented(layout: Layout, transposed: bool) -> Layout:
    """Return the layout of a tile, or of its transpose."""
    return (lambda row, column: layout(column, row)) if transposed else layout


def product_of_tiles(k_dim: int, at: tuple[Layout, Layout, Layout], dtypes: tuple[str, str, str]) -> Any:
    """Return a macro of the buffers A (16, k_dim), B (k_dim, 16) and C (16, 16) that computes C += A B.

    Args:
        k_dim: the length of the reduction.
        at: where the elements of A, B and C are.
        dtypes: data types of A, B and C; factors are cast to that of C.
    """
    at_a, at_b, at_c = at

    def factor(value: Any, dtype: str) -> Any:
        return value if dtype == dtypes[2] else T.Cast(dtypes[2], value)

    @T.macro
    def product(A: Any, B: Any, C: Any) -> None:
        for i, j, k in T.grid(16, 16, k_dim):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(
                    C[at_c(vi, vj)[0], at_c(vi, vj)[1]],
                    A[at_a(vi, vk)[0], at_a(vi, vk)[1]],
                    B[at_b(vk, vj)[0], at_b(vk, vj)[1]],
                )
                T.writes(C[at_c(vi, vj)[0], at_c(vi, vj)[1]])
                C[at_c(vi, vj)[0], at_c(vi, vj)[1]] = C[at_c(vi, vj)[0], at_c(vi, vj)[1]] + factor(
                    A[at_a(vi, vk)[0], at_a(vi, vk)[1]], dtypes[0]
                ) * factor(B[at_b(vk, vj)[0], at_b(vk, vj)[1]], dtypes[1])

    return product
