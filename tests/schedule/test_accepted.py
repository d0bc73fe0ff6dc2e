"""Schedules that people write, and that must be accepted: what independence, facts of blocks, scopes and cover answer
in daily work. Each is also checked to compute the same, to print and parse, and to replay."""

from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import tir as T
from tilewright.testing import check, formulas, workloads

Step = Callable[[Any], None]


def program(name: str, *sizes: int) -> Any:
    return te.create_prim_func(getattr(formulas, name)(*sizes))


@T.prim_func
def stencil(A: T.Buffer((18, 18)), B: T.Buffer((16, 16))) -> None:
    S = T.alloc_buffer((18, 16))
    for i, j in T.grid(18, 16):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj] + A[vi, vj + 1] + A[vi, vj + 2]
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = S[vi, vj] + S[vi + 1, vj] + S[vi + 2, vj]


@T.prim_func
def symbolic(a: T.handle, b: T.handle) -> None:
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m))
    B = T.match_buffer(b, (n, m))
    S = T.alloc_buffer((n, m))
    for i, j in T.grid(n, m):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = S[vi, vj] + T.float32(1)


@T.prim_func
def two_writers(A: T.Buffer((16, 8)), B: T.Buffer((16, 8))) -> None:
    S = T.alloc_buffer((16, 8))
    for i, j in T.grid(8, 8):
        with T.block("low"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj]
    for i, j in T.grid(8, 8):
        with T.block("high"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi + 8, vj] = A[vi + 8, vj] * T.float32(3)
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = S[vi, vj]


def tiled(sch: Any) -> None:
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 5])  # does not divide
    j0, j1 = sch.split(j, [None, 4])
    k0, k1 = sch.split(k, [None, 3])
    sch.reorder(i0, j0, k0, i1, k1, j1)
    sch.parallel(sch.fuse(i0, j0))
    sch.vectorize(j1)
    sch.unroll(k1)


def blocked_with_caches(sch: Any) -> None:
    write = sch.cache_write("C", 0, "local")
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    k0, k1 = sch.split(k, [None, 2])
    sch.reorder(i0, j0, k0, k1, i1, j1)
    sch.reverse_compute_at(write, j0)
    for number in (0, 1):
        sch.compute_at(sch.cache_read("C", number, "local"), k0)
    sch.decompose_reduction("C", k0)
    sch.parallel(i0)


def epilogue_in_the_tile(sch: Any) -> None:
    i, j, _ = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, i1, j1)
    sch.reverse_compute_at("D", j0)


def two_partial_sums(sch: Any) -> None:
    _, _, k = sch.get_loops("C")
    _, inner = sch.split(k, [None, 2])
    partial = sch.rfactor(inner, 0)
    sch.reverse_compute_at("C", sch.get_loops(partial)[0])
    sch.parallel(sch.get_loops(partial)[0])


def rows_at_a_time(sch: Any) -> None:
    i, _ = sch.get_loops("B")
    i0, _ = sch.split(i, [None, 4])
    sch.compute_at("S", i0)
    sch.parallel(i0)


def recomputed(sch: Any) -> None:
    sch.compute_inline("S")
    i, j = sch.get_loops("B")
    sch.parallel(i)
    sch.vectorize(sch.split(j, [None, 8])[1])


def in_a_window(sch: Any) -> None:
    i, _ = sch.get_loops("B")
    sch.compute_at("S", i)
    sch.rolling_buffer("S", 0)


def open_sizes(sch: Any) -> None:
    i, j = sch.get_loops("B")
    i0, _ = sch.split(i, [None, 8])
    sch.compute_at("S", i0)
    sch.vectorize(sch.split(sch.get_loops("B")[-1], [None, 4])[1])
    sch.parallel(i0)


def both_writers_and_the_reader_in_parallel(sch: Any) -> None:
    write = sch.cache_write("B", 0, "local")
    sch.reverse_compute_at(write, sch.get_loops("B")[0])
    for name in ("low", "high", "B"):
        sch.parallel(sch.get_loops(name)[0])


def fused_and_bound(sch: Any) -> None:
    loop = sch.fuse(*sch.get_loops("B"))
    blocks, threads = sch.split(loop, [None, 16])
    sch.bind(blocks, "blockIdx.x")
    sch.bind(threads, "threadIdx.x")
    sch.compute_inline("S")


def layout_of_a_factor(sch: Any) -> None:
    copy = sch.cache_read("C", 1, "global")
    sch.transform_layout(copy, ("write", 0), lambda k, j: [j // 4, k, j % 4], pad_value=None)
    i, j, k = sch.get_loops("C")
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(j0, i, k, j1)
    sch.compute_at(copy, j0)


def softmax_by_rows(sch: Any) -> None:
    for name in ("T_softmax_exp", "T_softmax_expsum"):
        sch.parallel(sch.get_loops(name)[0])
    row = sch.get_loops("T_softmax_norm")[0]
    for name in ("T_softmax_expsum", "T_softmax_exp", "T_softmax_maxelem"):
        sch.compute_at(name, row)
    sch.parallel(sch.get_loops("T_softmax_norm")[0])


CORPUS: dict[str, tuple[Any, Step]] = {
    "tiles that do not divide": (workloads.matmul(12, 8, 6), tiled),
    "tiles with caches": (workloads.matmul(8, 8, 8), blocked_with_caches),
    "an epilogue in its tile": (workloads.matmul_relu(8, 8, 8), epilogue_in_the_tile),
    "partial sums": (workloads.matmul(8, 8, 8), two_partial_sums),
    "a packed factor": (workloads.matmul(8, 8, 8), layout_of_a_factor),
    "stages of a stencil by rows": (stencil, rows_at_a_time),
    "a stencil in one stage": (stencil, recomputed),
    "a stencil in a rolling window": (stencil, in_a_window),
    "a stencil on a GPU": (stencil, fused_and_bound),
    "open sizes": (symbolic, open_sizes),
    "two writers": (two_writers, both_writers_and_the_reader_in_parallel),
    "a softmax by rows": (program("softmax_mn", 8, 8), softmax_by_rows),
}


@pytest.mark.parametrize("name", CORPUS)
def test_accepted(name: str) -> None:
    before, transform = CORPUS[name]
    check(before, transform)


def test_each_is_accepted_with_all_checks_on() -> None:
    for before, transform in CORPUS.values():
        transform(tw.Schedule(before, debug_mask="all"))
