"""Programs as people without knowledge of schedules write them, at any size: pipelines, scans, tables, attention."""

from __future__ import annotations

from tilewright import ir
from tilewright.script import tir as T


def blur_zero_edges(n: int, m: int) -> ir.PrimFunc:
    """Return a 3x3 box blur in two passes, with zero padding and weights of 1/4 per pass."""

    @T.prim_func
    def blur(A: T.Buffer((n, m)), C: T.Buffer((n, m))):
        B = T.alloc_buffer((n, m))
        for i, j in T.grid(n, m):
            with T.block("down"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = (
                    T.if_then_else(vi >= 1, A[vi - 1, vj], T.float32(0))
                    + A[vi, vj]
                    + T.if_then_else(vi < n - 1, A[vi + 1, vj], T.float32(0))
                ) * T.float32(0.25)
        for i, j in T.grid(n, m):
            with T.block("across"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = (
                    T.if_then_else(vj >= 1, B[vi, vj - 1], T.float32(0))
                    + B[vi, vj]
                    + T.if_then_else(vj < m - 1, B[vi, vj + 1], T.float32(0))
                ) * T.float32(0.25)

    return blur


def blur_clamped_edges(n: int, m: int) -> ir.PrimFunc:
    """Return a 3x3 binomial blur in two passes, with clamped edges."""

    @T.prim_func
    def blur(A: T.Buffer((n, m)), C: T.Buffer((n, m))):
        B = T.alloc_buffer((n, m))
        for i, j in T.grid(n, m):
            with T.block("across"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, T.max(vj - 1, 0)] + A[vi, vj] * T.float32(2) + A[vi, T.min(vj + 1, m - 1)]
        for i, j in T.grid(n, m):
            with T.block("down"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = (
                    B[T.max(vi - 1, 0), vj] + B[vi, vj] * T.float32(2) + B[T.min(vi + 1, n - 1), vj]
                ) * T.float32(0.0625)

    return blur


def stencil_twice(n: int, m: int) -> ir.PrimFunc:
    """Return two steps of a five-point stencil with zero padding."""

    @T.prim_func
    def steps(A: T.Buffer((n, m)), C: T.Buffer((n, m))):
        B = T.alloc_buffer((n, m))
        for i, j in T.grid(n, m):
            with T.block("one"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(0.2) * (
                    A[vi, vj]
                    + T.if_then_else(vi >= 1, A[vi - 1, vj], T.float32(0))
                    + T.if_then_else(vi < n - 1, A[vi + 1, vj], T.float32(0))
                    + T.if_then_else(vj >= 1, A[vi, vj - 1], T.float32(0))
                    + T.if_then_else(vj < m - 1, A[vi, vj + 1], T.float32(0))
                )
        for i, j in T.grid(n, m):
            with T.block("two"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.float32(0.2) * (
                    B[vi, vj]
                    + T.if_then_else(vi >= 1, B[vi - 1, vj], T.float32(0))
                    + T.if_then_else(vi < n - 1, B[vi + 1, vj], T.float32(0))
                    + T.if_then_else(vj >= 1, B[vi, vj - 1], T.float32(0))
                    + T.if_then_else(vj < m - 1, B[vi, vj + 1], T.float32(0))
                )

    return steps


def unsharp_mask(n: int, m: int) -> ir.PrimFunc:
    """Return an unsharp mask: twice the gray image, minus its blur in two passes, scales all channels."""

    @T.prim_func
    def unsharp(A: T.Buffer((3, n, m)), D: T.Buffer((3, n, m))):
        gray = T.alloc_buffer((n, m))
        bx = T.alloc_buffer((n, m))
        by = T.alloc_buffer((n, m))
        sharp = T.alloc_buffer((n, m))
        for i, j in T.grid(n, m):
            with T.block("gray"):
                vi, vj = T.axis.remap("SS", [i, j])
                gray[vi, vj] = (
                    T.float32(0.299) * A[0, vi, vj] + T.float32(0.587) * A[1, vi, vj] + T.float32(0.114) * A[2, vi, vj]
                )
        for i, j in T.grid(n, m):
            with T.block("bx"):
                vi, vj = T.axis.remap("SS", [i, j])
                bx[vi, vj] = (gray[vi, T.max(vj - 1, 0)] + gray[vi, vj] + gray[vi, T.min(vj + 1, m - 1)]) / T.float32(3)
        for i, j in T.grid(n, m):
            with T.block("by"):
                vi, vj = T.axis.remap("SS", [i, j])
                by[vi, vj] = (bx[T.max(vi - 1, 0), vj] + bx[vi, vj] + bx[T.min(vi + 1, n - 1), vj]) / T.float32(3)
        for i, j in T.grid(n, m):
            with T.block("sharp"):
                vi, vj = T.axis.remap("SS", [i, j])
                sharp[vi, vj] = T.float32(2) * gray[vi, vj] - by[vi, vj]
        for c, i, j in T.grid(3, n, m):
            with T.block("D"):
                vc, vi, vj = T.axis.remap("SSS", [c, i, j])
                D[vc, vi, vj] = A[vc, vi, vj] * sharp[vi, vj] / (T.fabs(gray[vi, vj]) + T.float32(1))

    return unsharp


def jacobi(n: int, m: int) -> ir.PrimFunc:
    """Return one Jacobi step of the interior; the boundary is copied."""

    @T.prim_func
    def jacobi(A: T.Buffer((n, m)), F: T.Buffer((n, m)), B: T.Buffer((n, m))):
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(
                    T.And(T.And(vi >= 1, vi < n - 1), T.And(vj >= 1, vj < m - 1)),
                    T.float32(0.25) * (A[vi - 1, vj] + A[vi + 1, vj] + A[vi, vj - 1] + A[vi, vj + 1] - F[vi, vj]),
                    A[vi, vj],
                )

    return jacobi


def running_sums(n: int, m: int) -> ir.PrimFunc:
    """Return running sums of each row, one row after the other."""

    @T.prim_func
    def running(A: T.Buffer((n, m)), B: T.Buffer((n, m))):
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.opaque(m, j)
                B[vi, vj] = T.if_then_else(vj == 0, T.float32(0), B[vi, vj - 1]) + A[vi, vj]

    return running


def running_sums_down(n: int, m: int) -> ir.PrimFunc:
    """Return running sums of each column."""

    @T.prim_func
    def running(A: T.Buffer((n, m)), B: T.Buffer((n, m))):
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi = T.axis.opaque(n, i)
                vj = T.axis.spatial(m, j)
                B[vi, vj] = T.if_then_else(vi == 0, T.float32(0), B[vi - 1, vj]) + A[vi, vj]

    return running


def histogram(n: int, bins: int) -> ir.PrimFunc:
    """Return a histogram of integers."""

    @T.prim_func
    def histogram(A: T.Buffer((n,), "int32"), H: T.Buffer((bins,), "int32")):
        for b in range(bins):
            with T.block("begin"):
                vb = T.axis.spatial(bins, b)
                H[vb] = 0
        for i in range(n):
            with T.block("count"):
                vi = T.axis.opaque(n, i)
                H[A[vi]] = H[A[vi]] + 1

    return histogram


def argmax(n: int, m: int) -> ir.PrimFunc:
    """Return the position and the value of the maximum of each row."""

    @T.prim_func
    def argmax(A: T.Buffer((n, m)), where: T.Buffer((n,), "int32"), top: T.Buffer((n,))):
        for i, j in T.grid(n, m):
            with T.block("argmax"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    where[vi] = -1
                    top[vi] = T.min_value("float32")
                w: T.int32 = T.Select(top[vi] >= A[vi, vj], where[vi], vj)
                t: T.float32 = T.Select(top[vi] >= A[vi, vj], top[vi], A[vi, vj])
                where[vi] = w
                top[vi] = t

    return argmax


def masked_softmax(n: int, m: int) -> ir.PrimFunc:
    """Return a causal softmax: row i covers the columns up to i."""

    @T.prim_func
    def softmax(A: T.Buffer((n, m)), S: T.Buffer((n, m))):
        masked = T.alloc_buffer((n, m))
        top = T.alloc_buffer((n,))
        power = T.alloc_buffer((n, m))
        total = T.alloc_buffer((n,))
        for i, j in T.grid(n, m):
            with T.block("masked"):
                vi, vj = T.axis.remap("SS", [i, j])
                masked[vi, vj] = T.if_then_else(vj <= vi, A[vi, vj] * T.float32(0.125), T.float32(-1e9))
        for i, j in T.grid(n, m):
            with T.block("top"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    top[vi] = T.min_value("float32")
                top[vi] = T.max(top[vi], masked[vi, vj])
        for i, j in T.grid(n, m):
            with T.block("power"):
                vi, vj = T.axis.remap("SS", [i, j])
                power[vi, vj] = T.exp(masked[vi, vj] - top[vi])
        for i, j in T.grid(n, m):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + power[vi, vj]
        for i, j in T.grid(n, m):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = power[vi, vj] / total[vi]

    return softmax


def rms_norm(n: int, m: int) -> ir.PrimFunc:
    """Return RMS normalization: rows over the root of their mean square, times a gain."""

    @T.prim_func
    def rms_norm(X: T.Buffer((n, m)), G: T.Buffer((m,)), Y: T.Buffer((n, m))):
        square = T.alloc_buffer((n,))
        for i, j in T.grid(n, m):
            with T.block("square"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    square[vi] = T.float32(0)
                square[vi] = square[vi] + X[vi, vj] * X[vi, vj]
        for i, j in T.grid(n, m):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.rsqrt(square[vi] / T.float32(m) + T.float32(1e-6)) * G[vj]

    return rms_norm


def rotary(s: int, h: int, d: int) -> ir.PrimFunc:
    """Return rotary position embedding, which rotates the two halves of each head."""
    half = d // 2

    @T.prim_func
    def rotary(X: T.Buffer((s, h, d)), cosine: T.Buffer((s, half)), sine: T.Buffer((s, half)), Y: T.Buffer((s, h, d))):
        for i, j, k in T.grid(s, h, d):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                Y[vi, vj, vk] = T.if_then_else(
                    vk < half,
                    X[vi, vj, vk] * cosine[vi, vk % half] - X[vi, vj, (vk + half) % d] * sine[vi, vk % half],
                    X[vi, vj, vk] * cosine[vi, vk % half] + X[vi, vj, (vk + half) % d] * sine[vi, vk % half],
                )

    return rotary


def depth_to_space(n: int, m: int, c: int, block: int = 2) -> ir.PrimFunc:
    """Return depth-to-space: channels become squares of pixels."""

    @T.prim_func
    def spread(X: T.Buffer((n, m, c * block * block)), Y: T.Buffer((n * block, m * block, c))):
        for i, j, k in T.grid(n * block, m * block, c):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                Y[vi, vj, vk] = X[vi // block, vj // block, (vi % block * block + vj % block) * c + vk]

    return spread


def mean_pool(n: int, m: int, c: int) -> ir.PrimFunc:
    """Return two-by-two mean pooling."""

    @T.prim_func
    def pool(X: T.Buffer((2 * n, 2 * m, c)), Y: T.Buffer((n, m, c))):
        total = T.alloc_buffer((n, m, c))
        for i, j, k, a, b in T.grid(n, m, c, 2, 2):
            with T.block("total"):
                vi, vj, vk, va, vb = T.axis.remap("SSSRR", [i, j, k, a, b])
                with T.init():
                    total[vi, vj, vk] = T.float32(0)
                total[vi, vj, vk] = total[vi, vj, vk] + X[2 * vi + va, 2 * vj + vb, vk]
        for i, j, k in T.grid(n, m, c):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                Y[vi, vj, vk] = total[vi, vj, vk] * T.float32(0.25)

    return pool


def max_pool_channels_first(c: int, n: int, m: int) -> ir.PrimFunc:
    """Return three-by-three max pooling with stride two, padded by the minimum value."""

    @T.prim_func
    def pool(X: T.Buffer((c, 2 * n, 2 * m)), Y: T.Buffer((c, n, m))):
        padded = T.alloc_buffer((c, 2 * n + 2, 2 * m + 2))
        for k, i, j in T.grid(c, 2 * n + 2, 2 * m + 2):
            with T.block("padded"):
                vk, vi, vj = T.axis.remap("SSS", [k, i, j])
                padded[vk, vi, vj] = T.if_then_else(
                    T.And(T.And(vi >= 1, vi < 2 * n + 1), T.And(vj >= 1, vj < 2 * m + 1)),
                    X[vk, vi - 1, vj - 1],
                    T.min_value("float32"),
                )
        for k, i, j, a, b in T.grid(c, n, m, 3, 3):
            with T.block("Y"):
                vk, vi, vj, va, vb = T.axis.remap("SSSRR", [k, i, j, a, b])
                with T.init():
                    Y[vk, vi, vj] = T.min_value("float32")
                Y[vk, vi, vj] = T.max(Y[vk, vi, vj], padded[vk, vi * 2 + va, vj * 2 + vb])

    return pool


def pool_all(c: int, n: int, m: int) -> ir.PrimFunc:
    """Return global mean pooling: the mean of each channel."""

    @T.prim_func
    def pool(X: T.Buffer((c, n, m)), Y: T.Buffer((c,))):
        total = T.alloc_buffer((c,))
        for k, i, j in T.grid(c, n, m):
            with T.block("total"):
                vk, vi, vj = T.axis.remap("SRR", [k, i, j])
                with T.init():
                    total[vk] = T.float32(0)
                total[vk] = total[vk] + X[vk, vi, vj]
        for k in range(c):
            with T.block("Y"):
                vk = T.axis.spatial(c, k)
                Y[vk] = total[vk] / T.float32(n * m)

    return pool


def embedding(rows: int, n: int, d: int) -> ir.PrimFunc:
    """Return an embedding: rows of a table plus position embeddings."""

    @T.prim_func
    def embed(table: T.Buffer((rows, d)), place: T.Buffer((n, d)), index: T.Buffer((n,), "int32"), Y: T.Buffer((n, d))):
        for i, j in T.grid(n, d):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = table[index[vi], vj] + place[vi, vj]

    return embed


def scatter_add(rows: int, n: int, d: int) -> ir.PrimFunc:
    """Return a scatter-add: rows are added to the rows of a table that an index selects."""

    @T.prim_func
    def scatter(X: T.Buffer((n, d)), index: T.Buffer((n,), "int32"), Y: T.Buffer((rows, d))):
        for i, j in T.grid(rows, d):
            with T.block("begin"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.float32(0)
        for i, j in T.grid(n, d):
            with T.block("add"):
                vi = T.axis.opaque(n, i)
                vj = T.axis.spatial(d, j)
                Y[index[vi], vj] = Y[index[vi], vj] + X[vi, vj]

    return scatter


def attention(b: int, n: int, d: int) -> ir.PrimFunc:
    """Return batched attention: softmax of Q K^T, times V."""

    @T.prim_func
    def attention(
        Q: T.Buffer((b, n, d)),
        K: T.Buffer((b, n, d)),
        V: T.Buffer((b, n, d)),
        O: T.Buffer((b, n, d)),  # noqa: E741
    ):
        score = T.alloc_buffer((b, n, n))
        top = T.alloc_buffer((b, n))
        power = T.alloc_buffer((b, n, n))
        total = T.alloc_buffer((b, n))
        weight = T.alloc_buffer((b, n, n))
        for s, i, j, k in T.grid(b, n, n, d):
            with T.block("score"):
                vs, vi, vj, vk = T.axis.remap("SSSR", [s, i, j, k])
                with T.init():
                    score[vs, vi, vj] = T.float32(0)
                score[vs, vi, vj] = score[vs, vi, vj] + Q[vs, vi, vk] * K[vs, vj, vk]
        for s, i, j in T.grid(b, n, n):
            with T.block("top"):
                vs, vi, vj = T.axis.remap("SSR", [s, i, j])
                with T.init():
                    top[vs, vi] = T.min_value("float32")
                top[vs, vi] = T.max(top[vs, vi], score[vs, vi, vj])
        for s, i, j in T.grid(b, n, n):
            with T.block("power"):
                vs, vi, vj = T.axis.remap("SSS", [s, i, j])
                power[vs, vi, vj] = T.exp((score[vs, vi, vj] - top[vs, vi]) * T.float32(0.125))
        for s, i, j in T.grid(b, n, n):
            with T.block("total"):
                vs, vi, vj = T.axis.remap("SSR", [s, i, j])
                with T.init():
                    total[vs, vi] = T.float32(0)
                total[vs, vi] = total[vs, vi] + power[vs, vi, vj]
        for s, i, j in T.grid(b, n, n):
            with T.block("weight"):
                vs, vi, vj = T.axis.remap("SSS", [s, i, j])
                weight[vs, vi, vj] = power[vs, vi, vj] / total[vs, vi]
        for s, i, j, k in T.grid(b, n, d, n):
            with T.block("O"):
                vs, vi, vj, vk = T.axis.remap("SSSR", [s, i, j, k])
                with T.init():
                    O[vs, vi, vj] = T.float32(0)
                O[vs, vi, vj] = O[vs, vi, vj] + weight[vs, vi, vk] * V[vs, vk, vj]

    return attention


def filter_signal(n: int, taps: int) -> ir.PrimFunc:
    """Return a one-dimensional convolution of one channel."""

    @T.prim_func
    def filter(X: T.Buffer((n + taps - 1,)), W: T.Buffer((taps,)), Y: T.Buffer((n,))):
        for i, t in T.grid(n, taps):
            with T.block("Y"):
                vi, vt = T.axis.remap("SR", [i, t])
                with T.init():
                    Y[vi] = T.float32(0)
                Y[vi] = Y[vi] + X[vi + vt] * W[vt]

    return filter


def polynomial(n: int) -> ir.PrimFunc:
    """Return a polynomial of degree five."""

    @T.prim_func
    def polynomial(X: T.Buffer((n,)), Y: T.Buffer((n,))):
        for i in range(n):
            with T.block("Y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = (
                    (((T.float32(0.1) * X[vi] + T.float32(0.2)) * X[vi] + T.float32(0.3)) * X[vi] + T.float32(0.4))
                    * X[vi]
                    + T.float32(0.5)
                ) * X[vi] + T.float32(0.6)

    return polynomial


def polynomial_of_coefficients(n: int, degree: int) -> ir.PrimFunc:
    """Return a polynomial evaluated by Horner's method, with the coefficients in a buffer."""

    @T.prim_func
    def polynomial(X: T.Buffer((n,)), W: T.Buffer((degree,)), Y: T.Buffer((n,))):
        for i, k in T.grid(n, degree):
            with T.block("Y"):
                vi = T.axis.spatial(n, i)
                vk = T.axis.opaque(degree, k)
                Y[vi] = T.if_then_else(vk == 0, T.float32(0), Y[vi]) * X[vi] + W[vk]

    return polynomial


def add_transposed(n: int) -> ir.PrimFunc:
    """Return the sum of a matrix and its transpose."""

    @T.prim_func
    def add(A: T.Buffer((n, n)), B: T.Buffer((n, n))):
        for i, j in T.grid(n, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + A[vj, vi]

    return add


def scale_bytes(n: int, c: int) -> ir.PrimFunc:
    """Return bytes converted to floats, normalized by channel."""

    @T.prim_func
    def scale(X: T.Buffer((n, c), "uint8"), mean: T.Buffer((c,)), rate: T.Buffer((c,)), Y: T.Buffer((n, c))):
        for i, j in T.grid(n, c):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = (T.Cast("float32", X[vi, vj]) - mean[vj]) * rate[vj]

    return scale


def quantize(n: int, m: int) -> ir.PrimFunc:
    """Return quantization to int8, each row scaled by its largest absolute value."""

    @T.prim_func
    def quantize(X: T.Buffer((n, m)), Q: T.Buffer((n, m), "int8"), scale: T.Buffer((n,))):
        for i, j in T.grid(n, m):
            with T.block("scale"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    scale[vi] = T.float32(0)
                scale[vi] = T.max(scale[vi], T.fabs(X[vi, vj]))
        for i, j in T.grid(n, m):
            with T.block("Q"):
                vi, vj = T.axis.remap("SS", [i, j])
                Q[vi, vj] = T.Cast(
                    "int8",
                    T.max(
                        T.min(T.round(X[vi, vj] * T.float32(127) / T.max(scale[vi], T.float32(1e-9))), T.float32(127)),
                        T.float32(-127),
                    ),
                )

    return quantize


def distances(n: int, m: int, d: int) -> ir.PrimFunc:
    """Return the squared distances between two sets of points."""

    @T.prim_func
    def distances(X: T.Buffer((n, d)), Y: T.Buffer((m, d)), D: T.Buffer((n, m))):
        for i, j, k in T.grid(n, m, d):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] = D[vi, vj] + (X[vi, vk] - Y[vj, vk]) * (X[vi, vk] - Y[vj, vk])

    return distances


def variance(n: int, m: int) -> ir.PrimFunc:
    """Return the variance of columns: first the mean, then the mean squared deviation."""

    @T.prim_func
    def variance(X: T.Buffer((n, m)), V: T.Buffer((m,))):
        mean = T.alloc_buffer((m,))
        spread = T.alloc_buffer((m,))
        for j, i in T.grid(m, n):
            with T.block("mean"):
                vj, vi = T.axis.remap("SR", [j, i])
                with T.init():
                    mean[vj] = T.float32(0)
                mean[vj] = mean[vj] + X[vi, vj] / T.float32(n)
        for j, i in T.grid(m, n):
            with T.block("spread"):
                vj, vi = T.axis.remap("SR", [j, i])
                with T.init():
                    spread[vj] = T.float32(0)
                spread[vj] = spread[vj] + (X[vi, vj] - mean[vj]) * (X[vi, vj] - mean[vj])
        for j in range(m):
            with T.block("V"):
                vj = T.axis.spatial(m, j)
                V[vj] = spread[vj] / T.float32(n)

    return variance


def cross_entropy(n: int, m: int) -> ir.PrimFunc:
    """Return the cross entropy of rows, with the correct column from an index."""

    @T.prim_func
    def cross_entropy(X: T.Buffer((n, m)), index: T.Buffer((n,), "int32"), L: T.Buffer((n,))):
        top = T.alloc_buffer((n,))
        total = T.alloc_buffer((n,))
        for i, j in T.grid(n, m):
            with T.block("top"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    top[vi] = T.min_value("float32")
                top[vi] = T.max(top[vi], X[vi, vj])
        for i, j in T.grid(n, m):
            with T.block("total"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + T.exp(X[vi, vj] - top[vi])
        for i in range(n):
            with T.block("L"):
                vi = T.axis.spatial(n, i)
                L[vi] = T.log(total[vi]) + top[vi] - X[vi, index[vi]]

    return cross_entropy


def gated(n: int, m: int, k: int) -> ir.PrimFunc:
    """Return a gated product: two products of one input, one of them through a sigmoid."""

    @T.prim_func
    def gated(X: T.Buffer((n, k)), U: T.Buffer((k, m)), W: T.Buffer((k, m)), Y: T.Buffer((n, m))):
        up = T.alloc_buffer((n, m))
        gate = T.alloc_buffer((n, m))
        for i, j, p in T.grid(n, m, k):
            with T.block("up"):
                vi, vj, vl = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    up[vi, vj] = T.float32(0)
                up[vi, vj] = up[vi, vj] + X[vi, vl] * U[vl, vj]
        for i, j, p in T.grid(n, m, k):
            with T.block("gate"):
                vi, vj, vl = T.axis.remap("SSR", [i, j, p])
                with T.init():
                    gate[vi, vj] = T.float32(0)
                gate[vi, vj] = gate[vi, vj] + X[vi, vl] * W[vl, vj]
        for i, j in T.grid(n, m):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = up[vi, vj] * gate[vi, vj] * T.sigmoid(gate[vi, vj])

    return gated


def triangle_sums(n: int) -> ir.PrimFunc:
    """Return running sums, each computed from all its terms."""

    @T.prim_func
    def sums(A: T.Buffer((n,)), B: T.Buffer((n,))):
        for i, j in T.grid(n, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                T.where(j <= i)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vj]

    return sums


def resize(n: int, m: int, c: int) -> ir.PrimFunc:
    """Return an image upsampled by two in both dimensions, averaging neighbors."""

    @T.prim_func
    def resize(X: T.Buffer((n, m, c)), Y: T.Buffer((2 * n, 2 * m, c))):
        for i, j, k in T.grid(2 * n, 2 * m, c):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                Y[vi, vj, vk] = T.float32(0.25) * (
                    X[vi // 2, vj // 2, vk]
                    + X[T.min(vi // 2 + vi % 2, n - 1), vj // 2, vk]
                    + X[vi // 2, T.min(vj // 2 + vj % 2, m - 1), vk]
                    + X[T.min(vi // 2 + vi % 2, n - 1), T.min(vj // 2 + vj % 2, m - 1), vk]
                )

    return resize


def sobel(n: int, m: int) -> ir.PrimFunc:
    """Return the Sobel gradient of an image, computed on a padded copy."""

    @T.prim_func
    def sobel(A: T.Buffer((n, m)), S: T.Buffer((n, m))):
        P = T.alloc_buffer((n + 2, m + 2))
        gx = T.alloc_buffer((n, m))
        gy = T.alloc_buffer((n, m))
        for i, j in T.grid(n + 2, m + 2):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = T.if_then_else(
                    T.And(T.And(vi >= 1, vi <= n), T.And(vj >= 1, vj <= m)), A[vi - 1, vj - 1], T.float32(0)
                )
        for i, j in T.grid(n, m):
            with T.block("gx"):
                vi, vj = T.axis.remap("SS", [i, j])
                gx[vi, vj] = (
                    (P[vi, vj + 2] - P[vi, vj])
                    + T.float32(2) * (P[vi + 1, vj + 2] - P[vi + 1, vj])
                    + (P[vi + 2, vj + 2] - P[vi + 2, vj])
                )
        for i, j in T.grid(n, m):
            with T.block("gy"):
                vi, vj = T.axis.remap("SS", [i, j])
                gy[vi, vj] = (
                    (P[vi + 2, vj] - P[vi, vj])
                    + T.float32(2) * (P[vi + 2, vj + 1] - P[vi, vj + 1])
                    + (P[vi + 2, vj + 2] - P[vi, vj + 2])
                )
        for i, j in T.grid(n, m):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = T.sqrt(gx[vi, vj] * gx[vi, vj] + gy[vi, vj] * gy[vi, vj])

    return sobel


def heads_and_bias(b: int, s: int, h: int, d: int) -> ir.PrimFunc:
    """Return a bias addition followed by a transpose that moves heads before positions."""

    @T.prim_func
    def heads(X: T.Buffer((b, s, h * d)), bias: T.Buffer((h * d,)), Y: T.Buffer((b, h, s, d))):
        biased = T.alloc_buffer((b, s, h * d))
        for n, i, j in T.grid(b, s, h * d):
            with T.block("biased"):
                vn, vi, vj = T.axis.remap("SSS", [n, i, j])
                biased[vn, vi, vj] = X[vn, vi, vj] + bias[vj]
        for n, j, i, k in T.grid(b, h, s, d):
            with T.block("Y"):
                vn, vj, vi, vk = T.axis.remap("SSSS", [n, j, i, k])
                Y[vn, vj, vi, vk] = biased[vn, vi, vj * d + vk]

    return heads
