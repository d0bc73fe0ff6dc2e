"""Programs over sparse matrices in CSR and SELL: what operators compile, and what users schedule and export."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import ir
from tilewright.script import tir as T

#: matrices of at least this many bytes are prefetched: part of them comes from memory
STREAMED_BYTES = 8_000_000
#: prefetch distance, in columns of a slice: about the loads in flight
COLUMNS_AHEAD = 32
#: bytes of a cache line
LINE = 64


def size_vars(count: int) -> list[Any]:
    """Return variables for lengths of arrays; a program names them."""
    return [T.int32(is_size_var=True) for _ in range(count)]


def spmm(columns: int, dtype: str = "float32", index_dtype: str = "int32") -> ir.PrimFunc:
    """Return ``spmm(indptr, indices, values, b, c)``: C (m, columns) = A (m, n) in CSR times B (n, columns)."""

    @T.prim_func
    def spmm(indptr: T.handle, indices: T.handle, values: T.handle, b: T.handle, c: T.handle) -> None:
        m, n, nnz = size_vars(3)
        P = T.match_buffer(indptr, (m + 1,), index_dtype)
        J = T.match_buffer(indices, (nnz,), index_dtype)
        A = T.match_buffer(values, (nnz,), dtype)
        B = T.match_buffer(b, (n, columns), dtype)
        C = T.match_buffer(c, (m, columns), dtype)
        T.assume_buffer_domain(P, [0, nnz + 1], order="nondecreasing")
        T.assume_buffer_domain(J, [0, n])
        for i in range(m):
            with T.block("row"):
                vi = T.axis.spatial(m, i)
                for j in range(columns):
                    with T.block("zero"):
                        vj = T.axis.spatial(columns, j)
                        C[vi, vj] = T.Cast(dtype, 0)
                for p, j in T.grid(P[vi + 1] - P[vi], columns):
                    with T.block("sum"):
                        vp = T.axis.reduce(P[vi + 1] - P[vi], p)
                        vj = T.axis.spatial(columns, j)
                        C[vi, vj] += A[P[vi] + vp] * B[J[P[vi] + vp], vj]

    return spmm


def spmv(dtype: str = "float32", index_dtype: str = "int32") -> ir.PrimFunc:
    """Return ``spmv(indptr, indices, values, x, y)``: y (m) = A (m, n) in CSR times x (n)."""

    @T.prim_func
    def spmv(indptr: T.handle, indices: T.handle, values: T.handle, x: T.handle, y: T.handle) -> None:
        m, n, nnz = size_vars(3)
        P = T.match_buffer(indptr, (m + 1,), index_dtype)
        J = T.match_buffer(indices, (nnz,), index_dtype)
        A = T.match_buffer(values, (nnz,), dtype)
        X = T.match_buffer(x, (n,), dtype)
        Y = T.match_buffer(y, (m,), dtype)
        T.assume_buffer_domain(P, [0, nnz + 1], order="nondecreasing")
        T.assume_buffer_domain(J, [0, n])
        for i in range(m):
            with T.block("row"):
                vi = T.axis.spatial(m, i)
                with T.block("zero"):
                    Y[vi] = T.Cast(dtype, 0)
                for p in range(P[vi + 1] - P[vi]):
                    with T.block("sum"):
                        vp = T.axis.reduce(P[vi + 1] - P[vi], p)
                        Y[vi] += A[P[vi] + vp] * X[J[P[vi] + vp]]

    return spmv


def spmv_sell(
    rows: int = 16, dtype: str = "float32", index_dtype: str = "int32", streamed_bytes: int = STREAMED_BYTES
) -> ir.PrimFunc:
    """Return ``spmv_sell(starts, indices, values, lengths, full, order, x, y)``: y (m) = A (m, n) in SELL times x (n).

    A slice is `rows` rows of similar length, which are lanes; ``order`` lists them. Its nonzeros are columns from
    ``starts[s]`` to before ``starts[s + 1]`` of ``indices`` and ``values``, of which each lane has so many as
    ``lengths`` says: the others are padding, which takes no part. The first ``full[s]`` columns have none.

    Indices and values of at least `streamed_bytes` are prefetched. The hardware prefetches streams, too, but these two
    are mixed with loads from all over x.
    """

    sizes = [np.dtype(each).itemsize for each in (index_dtype, dtype)]
    per_line = [LINE // size for size in sizes]
    lines = [-(-rows // each) for each in per_line]
    streamed_columns = streamed_bytes // (rows * sum(sizes))

    @T.prim_func
    def spmv_sell(
        starts: T.handle,
        indices: T.handle,
        values: T.handle,
        lengths: T.handle,
        full: T.handle,
        order: T.handle,
        x: T.handle,
        y: T.handle,
    ) -> None:
        slices, total, m, n = size_vars(4)
        P = T.match_buffer(starts, (slices + 1,), index_dtype)
        J = T.match_buffer(indices, (total, rows), index_dtype)
        A = T.match_buffer(values, (total, rows), dtype)
        L = T.match_buffer(lengths, (slices, rows), index_dtype)
        F = T.match_buffer(full, (slices,), index_dtype)
        R = T.match_buffer(order, (m,), index_dtype)
        X = T.match_buffer(x, (n,), dtype)
        Y = T.match_buffer(y, (m,), dtype)
        T.assume_buffer_domain(P, [0, total + 1], order="nondecreasing")
        T.assume_buffer_domain(J, [0, n])
        T.assume_buffer_domain(R, [0, m])
        # No analysis proves that the rows in `order` are distinct.
        for s in T.parallel(slices, annotations={"balanced_by": [P.data, slices + 1]}):
            with T.block("slice"):
                vs = T.axis.spatial(slices, s)
                sums = T.alloc_buffer((rows,), dtype, scope="local")
                for lane in range(rows):
                    with T.block("zero"):
                        vl = T.axis.spatial(rows, lane)
                        sums[vl] = T.Cast(dtype, 0)
                for p in range(F[vs]):
                    with T.block("ahead"):
                        vp = T.axis.spatial(F[vs], p)
                        T.where(total >= streamed_columns and P[vs] + p + COLUMNS_AHEAD < total)
                        for line in range(lines[0]):
                            T.prefetch(J[P[vs] + vp + COLUMNS_AHEAD, line * per_line[0] : line * per_line[0] + 1])
                        for line in range(lines[1]):
                            T.prefetch(A[P[vs] + vp + COLUMNS_AHEAD, line * per_line[1] : line * per_line[1] + 1])
                    for lane in range(rows):
                        with T.block("sum"):
                            vp = T.axis.reduce(F[vs], p)
                            vl = T.axis.spatial(rows, lane)
                            sums[vl] += A[P[vs] + vp, vl] * X[J[P[vs] + vp, vl]]
                for p, lane in T.grid(P[vs + 1] - P[vs] - F[vs], rows):
                    with T.block("masked_sum"):
                        vp = T.axis.reduce(P[vs + 1] - P[vs] - F[vs], p)
                        vl = T.axis.spatial(rows, lane)
                        sums[vl] = T.Select(
                            F[vs] + vp < L[vs, vl],
                            sums[vl] + A[P[vs] + F[vs] + vp, vl] * X[J[P[vs] + F[vs] + vp, vl]],
                            sums[vl],
                        )
                for lane in range(rows):
                    with T.block("store"):
                        vl = T.axis.spatial(rows, lane)
                        T.where(s * rows + lane < m)
                        Y[R[vs * rows + vl]] = sums[vl]

    return spmv_sell


def sddmm(columns: int, dtype: str = "float32", index_dtype: str = "int32") -> ir.PrimFunc:
    """Return ``sddmm(indptr, indices, x, y, out)``: for each nonzero (i, j) of a structure in CSR, the product of row i
    of X (m, columns) and row j of Y (n, columns)."""

    @T.prim_func
    def sddmm(indptr: T.handle, indices: T.handle, x: T.handle, y: T.handle, out: T.handle) -> None:
        m, n, nnz = size_vars(3)
        P = T.match_buffer(indptr, (m + 1,), index_dtype)
        J = T.match_buffer(indices, (nnz,), index_dtype)
        X = T.match_buffer(x, (m, columns), dtype)
        Y = T.match_buffer(y, (n, columns), dtype)
        S = T.match_buffer(out, (nnz,), dtype)
        T.assume_buffer_domain(P, [0, nnz + 1], order="nondecreasing")
        T.assume_buffer_domain(J, [0, n])
        for i in range(m):
            with T.block("row"):
                vi = T.axis.spatial(m, i)
                # Repeated, because blocks are analyzed on their own.
                T.assume_buffer_domain(P, [0, nnz + 1], order="nondecreasing")
                for p, k in T.grid(P[vi + 1] - P[vi], columns):
                    with T.block("dot"):
                        vp = T.axis.spatial(P[vi + 1] - P[vi], p)
                        vk = T.axis.reduce(columns, k)
                        with T.init():
                            S[P[vi] + vp] = T.Cast(dtype, 0)
                        S[P[vi] + vp] += X[vi, vk] * Y[J[P[vi] + vp], vk]

    return sddmm


def gather(dtype: str = "float32", index_dtype: str = "int32") -> ir.PrimFunc:
    """Return ``gather(values, source, stored)``: element source[i] of values, 0 where that is negative."""

    lanes = 16

    @T.prim_func
    def gather(values: T.handle, source: T.handle, stored: T.handle) -> None:
        count, size = size_vars(2)
        V = T.match_buffer(values, (count,), dtype)
        Q = T.match_buffer(source, (size,), index_dtype)
        S = T.match_buffer(stored, (size,), dtype)
        T.assume_buffer_domain(Q, [-1, count])
        for c in T.parallel(T.ceildiv(size, lanes)):
            with T.block("gather"):
                vc = T.axis.spatial(T.ceildiv(size, lanes), c)
                # 0 if all elements of a vector are neighbors, which one vector load takes at once.
                special = T.alloc_buffer((1,), index_dtype, scope="local")
                special[0] = T.Cast(index_dtype, 1)
                if (
                    vc * lanes + lanes <= size
                    and Q[vc * lanes + lanes - 1] - Q[vc * lanes] == lanes - 1
                    and Q[vc * lanes] >= 0
                ):
                    special[0] = T.Cast(index_dtype, 0)
                    for e in range(lanes):
                        special[0] = special[0] | (Q[vc * lanes + e] - Q[vc * lanes] - e)
                if special[0] == 0:
                    for e in T.vectorized(lanes):
                        S[vc * lanes + e] = V[Q[vc * lanes] + e]
                elif count > 0:
                    # Loads without a condition take less time than those that skip padding.
                    for e in T.vectorized(lanes):
                        if vc * lanes + e < size:
                            S[vc * lanes + e] = T.Select(
                                Q[vc * lanes + e] >= 0, V[T.max(Q[vc * lanes + e], 0)], T.Cast(dtype, 0)
                            )
                else:
                    for e in T.vectorized(lanes):
                        if vc * lanes + e < size:
                            S[vc * lanes + e] = T.Cast(dtype, 0)

    return gather


def scatter(dtype: str = "float32", index_dtype: str = "int32") -> ir.PrimFunc:
    """Return ``scatter(values, positions, stored)``: ``stored[positions[i]] = values[i]``, at different positions."""

    task_elements = 4096

    @T.prim_func
    def scatter(values: T.handle, positions: T.handle, stored: T.handle) -> None:
        count, size = size_vars(2)
        V = T.match_buffer(values, (count,), dtype)
        Q = T.match_buffer(positions, (count,), index_dtype)
        S = T.match_buffer(stored, (size,), dtype)
        T.assume_buffer_domain(Q, [0, size])
        for c in T.parallel(T.ceildiv(count, task_elements)):
            for i in range(T.min(count - c * task_elements, task_elements)):
                S[Q[c * task_elements + i]] = V[c * task_elements + i]

    return scatter


def repeat(dtype: str = "int32") -> ir.PrimFunc:
    """Return ``repeat(values, offsets, repeated)``: values[i] from offsets[i] to before offsets[i + 1]."""

    lanes, task_elements = 8, 512

    @T.prim_func
    def repeat(values: T.handle, offsets: T.handle, repeated: T.handle) -> None:
        count, size = size_vars(2)
        V = T.match_buffer(values, (count,), dtype)
        P = T.match_buffer(offsets, (count + 1,), dtype)
        S = T.match_buffer(repeated, (size,), dtype)
        for c in T.parallel(T.ceildiv(count, task_elements)):
            end = P[T.min((c + 1) * task_elements, count)]
            for r in range(T.min(count - c * task_elements, task_elements)):
                begin = P[c * task_elements + r]
                number = P[c * task_elements + r + 1] - begin
                # Store whole vectors, past the end of this value but within the task's range: later values overwrite
                # the excess. Most values need one vector, and starting a loop costs more than one.
                if number + lanes <= end - begin:
                    for e in T.vectorized(lanes):
                        S[begin + e] = V[c * task_elements + r]
                    if number > lanes:
                        for v in range(T.ceildiv(number, lanes) - 1):
                            for e in T.vectorized(lanes):
                                S[begin + (v + 1) * lanes + e] = V[c * task_elements + r]
                else:
                    for v in range(T.ceildiv(number, lanes)):
                        for e in T.vectorized(lanes):
                            if v * lanes + e < number:
                                S[begin + v * lanes + e] = V[c * task_elements + r]

    return repeat
