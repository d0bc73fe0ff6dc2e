"""Lesson 4: tune a softmax over rows, which is not a contraction.

tilewright tune examples/04_softmax.py --trials 32
"""

import numpy as np

import tilewright as tw
from tilewright.script import tir as T

M, N = 512, 1024


@T.prim_func
def softmax(X: T.Buffer((M, N), "float32"), Y: T.Buffer((M, N), "float32")):
    largest = T.alloc_buffer((M,), "float32")
    total = T.alloc_buffer((M,), "float32")
    power = T.alloc_buffer((M, N), "float32")
    for i, j in T.grid(M, N):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], X[vi, vj])
    for i, j in T.grid(M, N):
        with T.block("power"):
            vi, vj = T.axis.remap("SS", [i, j])
            power[vi, vj] = T.exp(X[vi, vj] - largest[vi])
    for i, j in T.grid(M, N):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + power[vi, vj]
    for i, j in T.grid(M, N):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = power[vi, vj] / total[vi]


def reference(x: np.ndarray) -> np.ndarray:
    power = np.exp(x - x.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


@tw.space(softmax, reference=reference)
def rows_together(sch: tw.Schedule) -> None:
    rows = int(sch.sample_categorical([2, 4, 8, 16, 32], [0.2] * 5))
    lanes = sch.sample_categorical([8, 16, 32, 64], [0.25] * 4)
    columns = sch.sample_categorical([1, 2, 4, 8, 16], [0.2] * 5)
    i, _ = sch.get_loops(sch.get_block("Y"))
    i_out, _ = sch.split(i, factors=[None, rows])
    sch.parallel(i_out)
    # Fuse all four steps over a block of rows, so that it stays in cache.
    for name in ("total", "power", "largest"):
        sch.compute_at(sch.get_block(name), i_out)
    for name in ("power", "Y"):
        _, j_in = sch.split(sch.get_loops(sch.get_block(name))[-1], factors=[None, lanes])
        sch.vectorize(j_in)
    # The sum of one row is a chain, so the lanes of a vector are rows.
    for name in ("total", "largest"):
        block = sch.get_block(name)
        *_, row, j = sch.get_loops(block)
        j_out, j_in = sch.split(j, factors=[None, columns])
        sch.reorder(j_out, j_in, row)
        sch.decompose_reduction(block, j_out)
        sch.vectorize(row)
        sch.unroll(j_in)
