"""Loops, axes, extents and literal indices of different integer types in one program."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source
from tilewright.testing import check

TYPES = ("int32", "int64")
STEPS: dict[str, Callable[[tw.Schedule], object]] = {
    "split": lambda s: s.split(s.get_loops("B")[0], [None, 5]),
    "fuse": lambda s: s.fuse(*s.get_loops("B")),
    "cache_read": lambda s: s.cache_read("C", 0, "global"),
    "cache_read of a part": lambda s: s.cache_read("B", 0, "global"),
    "cache_write": lambda s: s.cache_write("B", 0, "global"),
    "cache_write of a sum": lambda s: s.cache_write("D", 0, "global"),
    "compute_at": lambda s: s.compute_at("B", s.get_loops("C")[0]),
    "reverse_compute_at": lambda s: s.reverse_compute_at("C", s.get_loops("B")[0]),
    "compute_inline": lambda s: s.compute_inline("B"),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("C"),
    "read_at": lambda s: s.read_at(s.get_loops("C")[0], "C", 0, "global"),
    "write_at": lambda s: s.write_at(s.get_loops("B")[0], "B", 0, "global"),
    "reindex": lambda s: s.reindex("C", ("read", 0)),
    "transform_layout": lambda s: s.transform_layout("B", ("write", 0), lambda i, j: (j // 2, i, j % 2)),
    "blockize": lambda s: s.blockize(s.get_loops("B")[1]),
    "rfactor": lambda s: s.rfactor(s.split(s.get_loops("D")[1], [None, 2])[1], 0),
    "decompose_reduction": lambda s: s.decompose_reduction("D", s.get_loops("D")[1]),
    "pad_einsum": lambda s: s.pad_einsum("B", [8, 4]),
    "vectorize": lambda s: s.vectorize(s.get_loops("C")[1]),
    "loop_partition": lambda s: s.loop_partition(s.get_loops("B")[0], [3, None]),
}
MAY_BE_REFUSED = {"compute_at", "reverse_compute_at", "reverse_compute_inline"}


def program(extents: str, outer: str, inner: str, literal: str) -> ir.Module:
    """Twice A, plus 1, and its sums of rows, and a sum that is stored on a condition."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((T.{extents}(13), T.{extents}(6)), "float32"),
         C: T.Buffer((T.{extents}(13), T.{extents}(6)), "float32"),
         D: T.Buffer((T.{extents}(13),), "float32"), E: T.Buffer((T.{extents}(1),), "float32")):
    B = T.alloc_buffer((T.{extents}(13), T.{extents}(6)))
    for i, j in T.grid(T.{outer}(13), T.{inner}(6)):
        with T.block("B"):
            v = T.axis.spatial(T.{outer}(13), i)
            w = T.axis.spatial(T.{inner}(6), j)
            B[v, w] = A[v, w] * T.float32(2)
    for i, j in T.grid(T.{inner}(13), T.{outer}(6)):
        with T.block("C"):
            v = T.axis.spatial(T.{inner}(13), i)
            w = T.axis.spatial(T.{outer}(6), j)
            C[v, w] = B[v, w] + T.float32(1)
    for i, k in T.grid(T.{outer}(13), T.{inner}(6)):
        with T.block("D"):
            v = T.axis.spatial(T.{outer}(13), i)
            r = T.axis.reduce(T.{inner}(6), k)
            with T.init():
                D[v] = T.float32(0)
            D[v] = D[v] + A[v, r]
    for k in range(T.{outer}(13)):
        with T.block("E"):
            r = T.axis.reduce(T.{outer}(13), k)
            with T.init():
                E[T.{literal}(0)] = T.float32(0)
            if r % T.{outer}(2) == T.{outer}(0):
                E[T.{literal}(0)] = E[T.{literal}(0)] + A[r, T.{literal}(1)]
""")


@pytest.mark.parametrize("types", itertools.product(TYPES, repeat=4), ids="-".join)
def test_programs_of_several_index_types(types: tuple[str, str, str, str]) -> None:
    original = program(*types)
    for schedule in ("as written", "by rules"):
        tw.compile(original, schedule=schedule)
    tw.compile(original, check_bounds=True)
    for name, step in STEPS.items():
        try:
            check(original, step)
        except tw.ScheduleError:
            # Loops of one type around axes of another one: that the same instances run is not always proved.
            assert name in MAY_BE_REFUSED and types[1] != types[2], name
