"""Programs over one, two or three buffers whose body is a macro: descriptions and implementations of intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tilewright.script import tir as T

__all__ = ["Tile", "on_one", "on_three", "on_two", "strided", "tile"]

#: from a parameter to its buffer
Tile = Callable[..., Any]


def tile(shape: tuple[int, ...], dtype: str, scope: str = "global", **layout: Any) -> Tile:
    """Return a buffer of a program, given the arguments of T.match_buffer."""
    return partial(T.match_buffer, shape=shape, dtype=dtype, scope=scope, **{"offset_factor": 1, **layout})


def strided(matrix: Tile) -> Tile:
    """Return the same matrix with strides that its buffer knows."""
    return partial(matrix, strides=[T.Var("s1", "int32"), T.Var("s0", "int32")])


def on_one(name: str, fill: Any, filled: Tile) -> Any:
    """Return a program that fills a buffer."""

    @T.prim_func
    def program(c: T.handle) -> None:
        C = filled(c)
        with T.block("root"):
            T.reads()
            T.writes(C)
            fill(C)

    return program.with_attr("global_symbol", name)


def on_two(name: str, copy: Any, first: Tile, second: Tile, *, backwards: bool = False) -> Any:
    """Return a program that copies the first of two buffers to the second, or back."""

    @T.prim_func
    def program(a: T.handle, c: T.handle) -> None:
        A = first(a)
        C = second(c)
        with T.block("root"):
            T.reads(C if backwards else A)
            T.writes(A if backwards else C)
            copy(C if backwards else A, A if backwards else C)

    return program.with_attr("global_symbol", name)


def on_three(name: str, add: Any, left: Tile, right: Tile, sums: Tile) -> Any:
    """Return a program that adds products to sums."""

    @T.prim_func
    def program(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = left(a)
        B = right(b)
        C = sums(c)
        with T.block("root"):
            T.reads(C, A, B)
            T.writes(C)
            add(A, B, C)

    return program.with_attr("global_symbol", name)
