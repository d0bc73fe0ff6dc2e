"""Programs that tests and benchmarks share, at any size."""

from __future__ import annotations

from tilewright import ir
from tilewright.script import tir as T


def matmul(n: int, m: int, k: int, dtype: str = "float32") -> ir.PrimFunc:
    """Return C[n, m] = A[n, k] @ B[k, m], as one reduction block C."""

    @T.prim_func
    def matmul(A: T.Buffer((n, k), dtype), B: T.Buffer((k, m), dtype), C: T.Buffer((n, m), dtype)):
        for i, j, l in T.grid(n, m, k):
            with T.block("C"):
                vi, vj, vl = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = T.Cast(dtype, 0)
                C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]

    return matmul


def matmul_relu(n: int, m: int, k: int) -> ir.PrimFunc:
    """Return D = max(A @ B, 0): blocks C and D."""

    @T.prim_func
    def matmul_relu(A: T.Buffer((n, k)), B: T.Buffer((k, m)), D: T.Buffer((n, m))):
        C = T.alloc_buffer((n, m))
        for i, j, l in T.grid(n, m, k):
            with T.block("C"):
                vi, vj, vl = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
        for i, j in T.grid(n, m):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.max(C[vi, vj], T.float32(0))

    return matmul_relu


def elementwise_chain(n: int, m: int) -> ir.PrimFunc:
    """Return B = A + 1; C = B * 2; D = C - A."""

    @T.prim_func
    def chain(A: T.Buffer((n, m)), D: T.Buffer((n, m))):
        B = T.alloc_buffer((n, m))
        C = T.alloc_buffer((n, m))
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(n, m):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)
        for i, j in T.grid(n, m):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] - A[vi, vj]

    return chain


def transpose(n: int, m: int, dtype: str = "int32") -> ir.PrimFunc:
    """Return B[m, n] = A[n, m]: a transpose."""

    @T.prim_func
    def transpose(A: T.Buffer((n, m), dtype), B: T.Buffer((m, n), dtype)):
        for i, j in T.grid(m, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]

    return transpose


def softmax_like(n: int, m: int) -> ir.PrimFunc:
    """Return the dataflow of a softmax over rows, in exact arithmetic: row maximum, difference, row sum, product."""

    @T.prim_func
    def softmax(A: T.Buffer((n, m)), B: T.Buffer((n, m))):
        top = T.alloc_buffer((n,))
        diff = T.alloc_buffer((n, m))
        total = T.alloc_buffer((n,))
        for i, j in T.grid(n, m):
            with T.block("top"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    top[vi] = T.float32(-100)
                top[vi] = T.max(top[vi], A[vi, vj])
        for i, j in T.grid(n, m):
            with T.block("diff"):
                vi, vj = T.axis.remap("SS", [i, j])
                diff[vi, vj] = A[vi, vj] - top[vi]
        for i, j in T.grid(n, m):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + diff[vi, vj]
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = diff[vi, vj] * total[vi]

    return softmax


def conv1d(n: int, taps: int, channels: int) -> ir.PrimFunc:
    """Return a padded input and a convolution over it: blocks pad and conv."""

    @T.prim_func
    def conv(A: T.Buffer((n,)), W: T.Buffer((channels, taps)), C: T.Buffer((channels, n))):
        P = T.alloc_buffer((n + taps - 1,))
        for i in range(n + taps - 1):
            with T.block("pad"):
                vi = T.axis.spatial(n + taps - 1, i)
                P[vi] = T.if_then_else(vi >= taps // 2 and vi < n + taps // 2, A[vi - taps // 2], T.float32(0))
        for c, i, k in T.grid(channels, n, taps):
            with T.block("conv"):
                vc, vi, vk = T.axis.remap("SSR", [c, i, k])
                with T.init():
                    C[vc, vi] = T.float32(0)
                C[vc, vi] = C[vc, vi] + P[vi + vk] * W[vc, vk]

    return conv


def pool(n: int) -> ir.PrimFunc:
    """Return B = A + 1 and C[i], the maximum of each pair of B: blocks B and C."""

    @T.prim_func
    def pool(A: T.Buffer((2 * n,)), C: T.Buffer((n,))):
        B = T.alloc_buffer((2 * n,))
        for i in range(2 * n):
            with T.block("B"):
                vi = T.axis.spatial(2 * n, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = T.max(B[vi * 2], B[vi * 2 + 1])

    return pool
