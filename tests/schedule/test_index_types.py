"""Loops, axes, extents and literal indices of different integer types in one program."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
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


@pytest.mark.parametrize("types", list(itertools.product(TYPES, repeat=4)), ids="-".join)
def test_programs_of_several_index_types(types: tuple[str, str, str, str]) -> None:
    original = program(*types)
    for schedule in ("as written", "by rules"):
        tw.compile(original, schedule=schedule)
    tw.compile(original, check_bounds=True)
    for step in STEPS.values():
        check(original, step)


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("wide", [0, 1, 2, 3])
def test_lanes_in_a_row_of_either_type(wide: int, view: bool) -> None:
    """Vector indices of int32 and buffers of int64, and the other way around."""
    size = "T.int64" if wide & 1 else ""
    axis = "T.int64" if wide & 2 else ""
    read = "W[0, T.Ramp(v, 1, 4)]" if view else "B[v + 1, T.Ramp(v, 1, 4)]"
    declared = f"W = T.match_buffer(B[v + 1:v + 2, 0:5], ({size}(1), {size}(5)))" if view else "pass"
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 5)), C: T.Buffer((8,))):
    B = T.alloc_buffer(({size}(8), {size}(5)))
    for i in range({axis}(2)):
        with T.block("B"):
            v = T.axis.spatial({axis}(2), i)
            B[v + 1, T.Ramp(v, 1, 4)] = A[v, T.Ramp(v, 1, 4)]
    for i in range({axis}(2)):
        with T.block("C"):
            v = T.axis.spatial({axis}(2), i)
            {declared}
            C[T.Ramp(v * 4, 1, 4)] = {read}
""")
    a = np.arange(40, dtype="float32").reshape(8, 5)
    for kernel in (tw.compile(func), tw.compile(func, "interpreter")):
        c = np.zeros(8, "float32")
        kernel(a, c)
        np.testing.assert_array_equal(c, [*a[0, 0:4], *a[1, 1:5]])


def test_indices_of_data_in_maps_keep_their_type() -> None:
    gather = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 2), "uint32"), I: T.Buffer((2,), "int32"), C: T.Buffer((16,), "uint32")):
    for i in range(1):
        with T.block("outer"):
            v = T.axis.spatial(1, i)
            for j in range(T.int64(1)):
                with T.block("C"):
                    w = T.axis.spatial(T.int64(1), j)
                    C[v + w] = A[I[w] % 2, w]
""")
    sch = tw.Schedule(gather)
    sch.cache_read("C", 0, "local")
    with pytest.raises(tw.ScheduleError):
        sch.reverse_compute_inline("C")


def test_loops_of_the_same_threads_may_differ_in_type() -> None:
    from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(T.int64(8), thread="threadIdx.x"):
        for j in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(8, j)
                B[v] = A[v]
""")
