"""Pack four bytes into a 32-bit number, the operand form of dot-product instructions."""

from __future__ import annotations

from typing import Any

from tilewright.script import tir as T
from tilewright.tensor_intrin.programs import on_three, tile

__all__ = ["dot_of_rows", "on_rows", "word", "words"]


def word(buffer: Any, *row: int, elements: int = 4) -> Any:
    """Return adjacent elements, 32 bits in all, as one number."""
    return T.reinterpret("int32", buffer[(*row, T.ramp(0, 1, elements))])


def words(buffer: Any, first: int, count: int, elements: int = 4) -> Any:
    """Return rows of 32 bits, one number each. If they are adjacent in memory, LLVM merges the loads."""
    return T.Shuffle([word(buffer, i, elements=elements) for i in range(first, first + count)], list(range(count)))


def dot_of_rows(
    rows: int, dtypes: tuple[str, str, str], columns: int = 4, scope_b: str = "global", wide: bool = True
) -> Any:
    """Return the description of most dot products: one sum for each row of B, of its product with A.

    Args:
        rows: number of rows of B.
        dtypes: data types of A, B and C.
        columns: number of columns of B, and of elements of A.
        scope_b: the memory scope of B.
        wide: the factors are made as wide as the sums, as scripts write it.
    """

    def upcast(value: Any) -> Any:
        return T.Cast(dtypes[2], value) if wide else value

    @T.macro
    def products(A: Any, B: Any, C: Any) -> None:
        for i, k in T.grid(rows, columns):
            with T.block("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + upcast(A[vk]) * upcast(B[vi, vk])

    return _program("desc", products, rows, dtypes, columns, scope_b)


def on_rows(rows: int, dtypes: tuple[str, str, str], compute: Any, columns: int = 4, scope_b: str = "global") -> Any:
    """Return the implementation that stores `compute(A, B, sums)`."""

    @T.macro
    def store(A: Any, B: Any, C: Any) -> None:
        C[0:rows] = compute(A, B, C[0:rows])

    return _program("impl", store, rows, dtypes, columns, scope_b)


def _program(name: str, body: Any, rows: int, dtypes: tuple[str, str, str], columns: int, scope_b: str) -> Any:
    shapes = (columns,), (rows, columns), (rows,)
    scopes = "global", scope_b, "global"
    return on_three(name, body, *map(tile, shapes, dtypes, scopes))
