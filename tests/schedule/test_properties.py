"""Random steps on several programs: whatever a schedule accepts computes the same as the original, interpreted and
compiled. scripts/fuzz does the same with random programs.

TILEWRIGHT_PROPERTY_CASES sets the number of cases per program (the default keeps the run short).
"""

import os
from collections import Counter

import pytest

from fuzz.judge import Case, Finding, Judge
from fuzz.steps import STEPS
from tilewright.script import tir as T
from tilewright.testing import workloads

CASES = int(os.environ.get("TILEWRIGHT_PROPERTY_CASES", "24"))


@T.prim_func
def two_dimensional_halo(A: T.Buffer((6, 6)), C: T.Buffer((4, 4))):
    B = T.alloc_buffer((6, 6))
    for i, j in T.grid(6, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j, p, q in T.grid(4, 4, 3, 3):
        with T.block("C"):
            vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi + vp, vj + vq]


@T.prim_func
def reshaped(A: T.Buffer((24,)), C: T.Buffer((4, 6))):
    B = T.alloc_buffer((6, 4))
    for i in range(24):
        with T.block("B"):
            vi = T.axis.spatial(24, i)
            B[vi // 4, vi % 4] = A[vi] + T.float32(1)
    for i, j in T.grid(4, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi]


@T.prim_func
def suspicious(A: T.Buffer((8,)), X: T.Buffer((8,)), C: T.Buffer((8,))):
    """Cells that are reused, overwritten and updated in place: most steps must be refused."""
    B = T.alloc_buffer((8,))
    cell = T.alloc_buffer((1,))
    for i in range(8):
        with T.block("cell"):
            vi = T.axis.spatial(8, i)
            cell[0] = A[vi]
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = cell[0] + T.float32(1)
    for i in range(8):
        with T.block("X"):
            vi = T.axis.spatial(8, i)
            X[vi] = X[vi] + B[7 - vi]
    for i in range(7):
        with T.block("running"):
            vi = T.axis.spatial(7, i)
            X[vi + 1] = X[vi] + A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = X[vi] * B[vi]


@T.prim_func
def symbolic_matmul(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    k = T.int32()
    A = T.match_buffer(a, (n, k))
    B = T.match_buffer(b, (k, m))
    C = T.match_buffer(c, (n, m))
    for i, j, p in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vp = T.axis.remap("SSR", [i, j, p])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vp] * B[vp, vj]


@T.prim_func
def symbolic_chain(a: T.handle, d: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 6))
    D = T.match_buffer(d, (n, 6))
    B = T.alloc_buffer((n, 6))
    C = T.alloc_buffer((n, 6))
    for i, j in T.grid(n, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(n, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
    for i, j in T.grid(n, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] - A[vi, vj]


@T.prim_func
def symbolic_softmax(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m))
    B = T.match_buffer(b, (n, m))
    top = T.alloc_buffer((n,))
    total = T.alloc_buffer((n,))
    for i, j in T.grid(n, m):
        with T.block("top"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                top[vi] = T.float32(-100)
            top[vi] = T.max(top[vi], A[vi, vj])
    for i, j in T.grid(n, m):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + (A[vi, vj] - top[vi])
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = (A[vi, vj] - top[vi]) * total[vi]


@T.prim_func
def symbolic_halo(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    C = T.match_buffer(c, (n,))
    Q = T.alloc_buffer((n + 2,))
    for i in range(n + 2):
        with T.block("Q"):
            vi = T.axis.spatial(n + 2, i)
            Q[vi] = T.if_then_else(vi >= 1 and vi < n + 1, A[vi - 1], T.float32(0))
    for i, k in T.grid(n, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + Q[vi + vk]


PROGRAMS = {
    "matmul": workloads.matmul(6, 8, 10),
    "matmul_relu": workloads.matmul_relu(4, 6, 5),
    "softmax": workloads.softmax_like(4, 6),
    "conv": workloads.conv1d(8, 3, 2),
    "transpose": workloads.transpose(6, 8),
    "chain": workloads.elementwise_chain(4, 6),
    "pool": workloads.pool(6),
    "halo": two_dimensional_halo,
    "reshaped": reshaped,
    "suspicious": suspicious,
    "symbolic_matmul": symbolic_matmul,
    "symbolic_chain": symbolic_chain,
    "symbolic_softmax": symbolic_softmax,
    "symbolic_halo": symbolic_halo,
}
#: Values of symbolic sizes: neither multiples of the factors drawn, nor larger than them.
SIZES = [{"n": 7, "m": 5, "k": 9}, {"n": 1, "m": 1, "k": 1}, {"n": 16, "m": 17, "k": 3}]


def sizes_of(name):
    return SIZES if name.startswith("symbolic") else [{}]


@pytest.mark.parametrize("name", PROGRAMS)
def test_accepted_schedules_compute_the_same(name):
    counts = Counter()
    judge = Judge(Case(PROGRAMS[name].script(), sizes=sizes_of(name)), counts)
    judge.original()
    for case in range(CASES):
        try:
            judge.sequence(case)
        except Finding as finding:
            steps = "\n".join(map(str, judge.case.steps))
            raise AssertionError(f"{name}, case {case}: {finding}\n{steps}") from finding
    accepted = sum(counts[f"{step} accepted"] for step in STEPS)
    assert accepted >= CASES, "hardly any step was accepted: the test shows nothing"
