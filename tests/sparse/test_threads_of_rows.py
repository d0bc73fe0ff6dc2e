"""A warp of threads for each row: its nonzeros are divided among the threads, whose parts are put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from tests.sparse_programs import SDDMM, function

import tilewright as tw
from fuzz.format_rules import SPMV as spmv

M, N, K = 37, 90, 5


def matrix_of(what: str) -> Any:
    """Small integers, so that sums are exact in any order; rows of more elements than there are threads, and empty
    ones."""
    random = np.random.default_rng(len(what))
    mask = random.random((M, N)) < (0 if what == "empty" else 0.1)
    if what == "dense rows":
        mask[:] = False
        mask[[0, M // 2, M - 1]] = True
    mask[:, 0] = False
    return scipy.sparse.csr_matrix(np.where(mask, random.integers(1, 5, (M, N)), 0).astype("float64"))


def check_spmv(sch: tw.Schedule, target: str) -> None:
    kernel = tw.compile(sch, target=target)
    for what in ("random", "empty", "dense rows"):
        a = matrix_of(what)
        x, y = np.random.default_rng(0).integers(-4, 5, N).astype("float64"), np.full(M, np.nan)
        want = a @ x
        x[0] = np.nan
        kernel(a.data, x, y, a.indptr, a.indices, M, N, a.nnz)
        np.testing.assert_array_equal(y, want)


def lowered() -> tuple[tw.Schedule, Any, Any]:
    sch = tw.Schedule(spmv)
    sch.lower_sparse_iter()
    sch.bind(sch.get_loops("spmv0")[0], "blockIdx.x")
    step, lane = sch.split(sch.get_loops("spmv1")[-1], [None, 8])
    return sch, step, lane


@pytest.mark.parametrize("target", ["opencl", "interpreter"])
@pytest.mark.parametrize("order", ["steps of threads", "threads of steps"])
def test_the_threads_of_a_row_add_up_its_elements(target: str, order: str) -> None:
    sch, step, lane = lowered()
    if order == "steps of threads":
        sch.reorder(lane, step)
    sch.bind(lane, "threadIdx.x")
    check_spmv(sch, target)


@pytest.mark.parametrize("target", ["opencl", "interpreter"])
def test_partial_sums_of_threads(target: str) -> None:
    """The same by rfactor: each thread has a sum of its own, in an array."""
    sch, _, lane = lowered()
    partial = sch.rfactor(lane, 0)
    for block in (f"{sch.get(partial).name_hint}_init", partial, "spmv1"):
        (thread,) = [loop for loop in sch.get_loops(block) if sch.get(loop).extent == 8][-1:]
        sch.bind(thread, "threadIdx.x")
    check_spmv(sch, target)


@pytest.mark.parametrize("target", ["opencl", "interpreter"])
def test_the_threads_of_a_row_compute_its_elements(target: str) -> None:
    sch = tw.Schedule(function(SDDMM.replace("T.sp.fuse(I, J), K", "I, J, K")))
    sch.lower_sparse_iter()
    sch.bind(sch.get_loops("sddmm0")[0], "blockIdx.x")
    for block in sch.get_child_blocks("sddmm0"):
        (element,) = [
            loop
            for loop in sch.get_loops(block)
            if "indptr" in str(sch.get(loop).extent) or "p_data" in str(sch.get(loop).extent)
        ]
        _, lane = sch.split(element, [None, 8])
        sch.bind(lane, "threadIdx.x")
    check_sddmm(sch, target)


def check_sddmm(sch: tw.Schedule, target: str) -> None:
    kernel = tw.compile(sch, target=target)
    for what in ("random", "empty", "dense rows"):
        a = matrix_of(what)
        random = np.random.default_rng(1)
        x, y = (random.integers(-4, 5, (rows, K)).astype("float64") for rows in (M, N))
        rows, columns = a.nonzero()
        want = (x[rows] * y[columns]).sum(1)
        y[0] = np.nan
        out = np.full(a.nnz, np.nan)
        kernel(out, x, y, a.indptr, a.indices, M, N, K, a.nnz)
        np.testing.assert_array_equal(out, want)


SOFTMAX = """
def f(a: T.handle, b: T.handle, top: T.handle, total: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32,
      nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float64")
    B = T.sp.match_buffer(b, (I, J), "float64")
    M = T.sp.match_buffer(top, (I,), "float64")
    S = T.sp.match_buffer(total, (I,), "float64")
    with T.sp.iteration([I], "S", "softmax") as [i]:
        with T.sp.iteration([J], "R", "max") as [j]:
            with T.init():
                M[i] = T.float64(-100)
            M[i] = T.max(M[i], A[i, j])
        S[i] = T.float64(0)
        with T.sp.iteration([J], "R", "sum") as [j]:
            S[i] = S[i] + T.exp(A[i, j] - M[i])
        with T.sp.iteration([J], "S", "quotient") as [j]:
            B[i, j] = T.exp(A[i, j] - M[i]) / S[i]
"""


@pytest.mark.parametrize("target", ["opencl", "interpreter"])
@pytest.mark.parametrize(("rows", "threads"), [(1, 8), (2, 5), (7, 33)])
def test_a_block_of_threads_reduces_several_rows(target: str, rows: int, threads: int) -> None:
    """The threads of a block all reduce the same row, or all skip it, so a barrier in that branch is uniform."""
    sch = tw.Schedule(function(SOFTMAX))
    sch.lower_sparse_iter()
    block, _ = sch.split(sch.get_loops("softmax0")[0], [None, rows])
    sch.bind(block, "blockIdx.x")
    for name in ("max0", "sum0"):
        _, thread = sch.split(sch.get_loops(name)[-1], [None, threads])
        sch.bind(thread, "threadIdx.x")
    sch.split(sch.get_loops("quotient0")[-1], [None, threads])
    kernel = tw.compile(sch, target=target)
    for what in ("random", "empty", "dense rows"):
        a = matrix_of(what)
        want = [np.exp(row.data - row.data.max()) for row in a if row.nnz]
        b, top, total = np.zeros(a.nnz), np.zeros(M), np.zeros(M)
        kernel(a.data, b, top, total, a.indptr, a.indices, M, N, a.nnz)
        np.testing.assert_allclose(b, np.concatenate([[], *(row / row.sum() for row in want)]), rtol=1e-12)
