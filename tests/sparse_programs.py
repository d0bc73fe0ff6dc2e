"""Sparse programs with an oracle in NumPy: each kind of axis alone and below others.

A case has the text of a function ``f`` and a maker of arguments. The maker takes a generator and the name of a
structure, and returns the arguments and what the output, one of them, holds in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tilewright import script

Array = np.ndarray[Any, Any]
Made = tuple[list[Any], int, Array]


class Case(NamedTuple):
    """A program; `make` gives arguments, the position of the output, and its expected value."""

    text: str
    make: Callable[[np.random.Generator, str], Made]


#: what matrices look like: their shape and which elements exist
STRUCTURES = ("random", "empty", "empty rows", "dense row", "no columns", "no rows", "full")


def mask(rng: np.random.Generator, structure: str, m: int = 7, n: int = 6) -> Array:
    """Which elements of a matrix exist."""
    if structure == "no columns":
        return np.zeros((m, 0), bool)
    if structure == "no rows":
        return np.zeros((0, n), bool)
    chosen = rng.random((m, n)) < {"empty": 0.0, "full": 1.0}.get(structure, 0.3)
    if structure == "empty rows":
        chosen[::2] = False
        chosen[-1] = False
    if structure == "dense row":
        chosen[m // 2] = True
    return chosen


def csr(chosen: Array, rng: np.random.Generator, dtype: str = "float64") -> Any:
    """Return a matrix in CSR whose nonzeros are small integers, so floating-point sums are exact in any order."""
    rows, columns = chosen.nonzero()
    values = rng.integers(1, 5, len(rows)).astype(dtype)
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(1))]).astype("int32")
    return scipy.sparse.csr_matrix((values, columns.astype("int32"), indptr), chosen.shape)


def integers(rng: np.random.Generator, *shape: int) -> Array:
    """Small integers as float64."""
    return rng.integers(-4, 5, shape).astype("float64")


def function(text: str, **names: Any) -> Any:
    """The function with this text."""
    return script.from_source("@T.prim_func\n" + text, names or None)


SPMV = """
def f(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    J_all = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (J_all,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "rows") as [i, k]:
        with T.init():
            Y[i] = T.float32(0)
        Y[i] += A[i, k] * X[k]
"""


SPMM = """
def f(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    J_all = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(16)
    A = T.sp.match_buffer(a, (I, J), "float64")
    B = T.sp.match_buffer(b, (J_all, K), "float64")
    C = T.sp.match_buffer(c, (I, K), "float64")
    with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, k]:
        with T.init():
            C[i, k] = T.float64(0)
        C[i, k] += A[i, j] * B[j, k]
"""


def make_spmm(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng)
    b = integers(rng, a.shape[1], 16)
    b[~a.toarray().any(0)] = np.nan  # rows that no nonzero selects
    c = np.full((a.shape[0], 16), np.nan)
    return [a.data, b, c, a.indptr, a.indices, *a.shape, a.nnz], 2, a @ np.nan_to_num(b)


#: columns hold the reduction's rows: two formats of one product, by columns
CSC = """
def f(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    J = T.sp.dense_fixed(n)
    I = T.sp.compressed_varied(J, (m, nnz), (p, q))
    I_all = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(a, (J, I), "float64")
    X = T.sp.match_buffer(x, (J,), "float64")
    Y = T.sp.match_buffer(y, (I_all,), "float64")
    with T.sp.iteration([I_all], "S", "zero") as [i]:
        Y[i] = T.float64(0)
    with T.sp.iteration([J, I], "RS", "csc") as [j, i]:
        Y[i] = Y[i] + A[j, i] * X[j]
"""


def make_csc(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure).T, rng)
    x, y = integers(rng, a.shape[0]), np.full(a.shape[1], np.nan)
    return [a.data, x, y, a.indptr, a.indices, a.shape[1], a.shape[0], a.nnz], 2, a.T @ x


RAGGED = """
def f(x: T.handle, y: T.handle, indptr: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.dense_fixed(m)
    J = T.dense_variable(I, (n, nnz), indptr)
    X = T.match_sparse_buffer(x, (I, J))
    Y = T.match_sparse_buffer(y, (I,))
    with T.sp_iter([I], "S", "rows") as [i]:
        with T.sp_iter([J], "R", "sum") as [j]:
            with T.init():
                Y[i] = T.float32(0)
            Y[i] = Y[i] + X[i, j] * T.Cast("float32", j + 1)
"""


def make_ragged(rng: np.random.Generator, structure: str) -> Made:
    lengths = mask(rng, structure).sum(1)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
    x = rng.integers(-4, 5, indptr[-1]).astype("float32")
    want = np.array([np.sum(row * np.arange(1, len(row) + 1)) for row in np.split(x, indptr[1:-1])], "float32")
    m = len(lengths)
    return [x, np.full(m, np.nan, "float32"), indptr, m, int(lengths.max(initial=0)), len(x)], 1, want[:m]


ELL = """
def f(a: T.handle, x: T.handle, y: T.handle, q: T.handle, m: T.int32, n: T.int32):
    I = T.dense_fixed(m)
    J = T.sparse_fixed(I, (n, 3), q, sorted=False)
    J_all = T.dense_fixed(n)
    A = T.match_sparse_buffer(a, (I, J), "float64")
    X = T.match_sparse_buffer(x, (J_all,), "float64")
    Y = T.match_sparse_buffer(y, (I,), "float64")
    with T.iter([I, J], "SR", "ell") as [i, j]:
        with T.init():
            Y[i] = T.float64(0)
        Y[i] = Y[i] + A[i, j] * X[j]
"""


def make_ell(rng: np.random.Generator, structure: str) -> Made:
    m = 0 if structure == "no rows" else 7
    indices = np.array([rng.choice(6, 3, replace=False) for _ in range(m)], "int32").reshape(m, 3)
    a, x = integers(rng, m, 3), integers(rng, 6)
    want = (a * x[indices]).sum(1)
    return [a, x, np.full(m, np.nan), indices.reshape(-1), m, 6], 2, want


#: rows that are padded to multiples of two, but for the number of real elements in the last pair
PADDED = """
def f(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, z: T.int32):
    I = T.dense_fixed(m)
    JO = T.dense_variable(I, (n, z), p)
    JI = T.sparse_fixed(JO, (n, 2), q)
    J_all = T.dense_fixed(n)
    A = T.match_sparse_buffer(a, (I, JO, JI), "float64")
    X = T.match_sparse_buffer(x, (J_all,), "float64")
    Y = T.match_sparse_buffer(y, (I,), "float64")
    with T.iter([I, JO, JI], "SRR", "padded") as [i, jo, j]:
        with T.init():
            Y[i] = T.float64(0)
        Y[i] = Y[i] + A[i, jo, j] * X[j]
"""


def make_padded(rng: np.random.Generator, structure: str) -> Made:
    counts = mask(rng, structure).sum(1) // 2
    p = np.concatenate([[0], np.cumsum(counts)]).astype("int32")
    indices = np.array([sorted(rng.choice(6, 2, replace=False)) for _ in range(p[-1])], "int32").reshape(-1, 2)
    a, x = integers(rng, p[-1], 2), integers(rng, 6)
    sums = np.concatenate([[0], np.cumsum((a * x[indices]).sum(1))])
    m = len(counts)
    return [a, x, np.full(m, np.nan), p, indices.reshape(-1), m, 6, int(p[-1])], 2, sums[p[1:]] - sums[p[:-1]]


#: rows that are empty are not stored
DCSR = """
def f(a: T.handle, x: T.handle, y: T.handle, r: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32,
      rows: T.int32, nnz: T.int32):
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_fixed(O, (m, rows), r)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    I_all = T.sp.dense_fixed(m)
    J_all = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (O, I, J), "float64")
    X = T.sp.match_buffer(x, (J_all,), "float64")
    Y = T.sp.match_buffer(y, (I_all,), "float64")
    with T.sp.iteration([I_all], "S", "zero") as [i]:
        Y[i] = T.float64(0)
    with T.sp.iteration([O, I, J], "SSR", "dcsr") as [o, i, j]:
        Y[i] = Y[i] + A[o, i, j] * X[j]
"""


def make_dcsr(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng)
    (rows,) = np.diff(a.indptr).nonzero()
    p = np.concatenate([[0], a.indptr[rows + 1]]).astype("int32")
    x, y = integers(rng, a.shape[1]), np.full(a.shape[0], np.nan)
    return [a.data, x, y, rows.astype("int32"), p, a.indices, *a.shape, len(rows), a.nnz], 2, a @ x


#: one position for each element, with its row and, below that, its column
COO = """
def f(a: T.handle, x: T.handle, y: T.handle, r: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_fixed(O, (m, nnz), r, sorted=False)
    J = T.sp.compressed_fixed(I, (n, 1), q)
    I_all = T.sp.dense_fixed(m)
    J_all = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (O, I, J), "float64")
    X = T.sp.match_buffer(x, (J_all,), "float64")
    Y = T.sp.match_buffer(y, (I_all,), "float64")
    with T.sp.iteration([I_all], "S", "zero") as [i]:
        Y[i] = T.float64(0)
    with T.sp.iteration([O, I, J], "SRR", "coo") as [o, i, j]:
        Y[i] = Y[i] + A[o, i, j] * X[j]
"""


def make_coo(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng).tocoo()
    order = rng.permutation(a.nnz)
    row, col, data = a.row[order], a.col[order], a.data[order]
    x, y = integers(rng, a.shape[1]), np.full(a.shape[0], np.nan)
    args = [data.reshape(1, -1, 1), x, y, row.astype("int32"), col.astype("int32"), *a.shape, a.nnz]
    return args, 2, a @ x


BSR = """
def f(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnzb: T.int32):
    IO = T.sp.dense_fixed(m)
    JO = T.sp.compressed_varied(IO, (n, nnzb), (p, q))
    JO_all = T.sp.dense_fixed(n)
    II = T.sp.dense_fixed(5)
    JI = T.sp.dense_fixed(4)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float64")
    X = T.sp.match_buffer(x, (JO_all, JI), "float64")
    Y = T.sp.match_buffer(y, (IO, II), "float64")
    with T.sp.iteration([IO, II, JO, JI], "SSRR", "bsr") as [io, ii, jo, ji]:
        with T.init():
            Y[io, ii] = T.float64(0)
        Y[io, ii] = Y[io, ii] + A[io, jo, ii, ji] * X[jo, ji]
"""


def make_bsr(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng)
    blocks, x = integers(rng, a.nnz, 5, 4), integers(rng, a.shape[1], 4)
    want = np.zeros((a.shape[0], 5))
    rows = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    np.add.at(want, rows, np.einsum("bij,bj->bi", blocks, x[a.indices]))
    return [blocks, x, np.full_like(want, np.nan), a.indptr, a.indices, *a.shape, a.nnz], 2, want


CSF = """
def f(t: T.handle, b: T.handle, c: T.handle, d: T.handle, p1: T.handle, q1: T.handle, p2: T.handle, q2: T.handle,
      n0: T.int32, n1: T.int32, n2: T.int32, z1: T.int32, z2: T.int32, r: T.int32):
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_varied(I, (n1, z1), (p1, q1))
    K = T.sp.compressed_varied(J, (n2, z2), (p2, q2))
    J_all = T.sp.dense_fixed(n1)
    K_all = T.sp.dense_fixed(n2)
    R = T.sp.dense_fixed(r)
    A = T.sp.match_buffer(t, (I, J, K), "float64")
    B = T.sp.match_buffer(b, (J_all, R), "float64")
    C = T.sp.match_buffer(c, (K_all, R), "float64")
    D = T.sp.match_buffer(d, (I, R), "float64")
    with T.sp.iteration([I, J, K, R], "SRRS", "mttkrp") as [i, j, k, s]:
        with T.init():
            D[i, s] = T.float64(0)
        D[i, s] = D[i, s] + A[i, j, k] * B[j, s] * C[k, s]
"""


def csf(tensor: Array) -> tuple[Array, ...]:
    """Values and structure of a tensor of three dimensions, of which the first is dense."""
    p1, q1, p2, q2, values = [0], [], [0], [], []
    for plane in tensor:
        for j, row in enumerate(plane):
            if not row.any():
                continue
            q1.append(j)
            (coordinates,) = row.nonzero()
            q2.extend(coordinates)
            values.extend(row[coordinates])
            p2.append(len(q2))
        p1.append(len(q1))
    return np.array(values, "float64"), *(np.array(list_, "int32") for list_ in (p1, q1, p2, q2))


def make_mttkrp(rng: np.random.Generator, structure: str) -> Made:
    chosen = np.stack([mask(rng, structure, 4, 5) for _ in range(3)])
    tensor = np.where(chosen, rng.integers(1, 5, chosen.shape), 0).astype("float64")
    b, c = integers(rng, tensor.shape[1], 3), integers(rng, tensor.shape[2], 3)
    values, p1, q1, p2, q2 = csf(tensor)
    want = np.einsum("ijk,jr,kr->ir", tensor, b, c)
    args = [values, b, c, np.full((3, 3), np.nan), p1, q1, p2, q2, *tensor.shape, len(q1), len(q2), 3]
    return args, 3, want


SDDMM = """
def f(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, k: T.int32,
      nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    J_all = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (I, J), "float64")
    X = T.sp.match_buffer(x, (I, K), "float64")
    Y = T.sp.match_buffer(y, (J_all, K), "float64")
    with T.sp.iteration([T.sp.fuse(I, J), K], "SSR", "sddmm") as [i, j, s]:
        T.sp.iteration_attr({"note": 1})
        with T.init():
            A[i, j] = T.float64(0)
        A[i, j] = A[i, j] + X[i, s] * Y[j, s]
"""


def make_sddmm(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng)
    x, y = integers(rng, a.shape[0], 3), integers(rng, a.shape[1], 3)
    rows, columns = a.nonzero()
    want = (x[rows] * y[columns]).sum(1)
    return [np.full(a.nnz, np.nan), x, y, a.indptr, a.indices, *a.shape, 3, a.nnz], 0, want


#: an operand that is read at all coordinates, of a default value
DENSE_READS = """
def f(a: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    J_all = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float64", default_value=2.5)
    Y = T.sp.match_buffer(y, (I, J_all), "float64")
    with T.sp.iteration([I, J_all], "SS", "dense") as [i, j]:
        Y[i, j] = A[i, j]
"""


def make_dense_reads(rng: np.random.Generator, structure: str) -> Made:
    chosen = mask(rng, structure)
    a = csr(chosen, rng)
    want = np.where(chosen, a.toarray(), 2.5)
    return [a.data, np.full_like(want, np.nan), a.indptr, a.indices, *a.shape, a.nnz], 1, want


#: the structure of the result is that of one operand; the other one has another structure
MASKED = """
def f(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle, r: T.handle, s: T.handle, m: T.int32,
      n: T.int32, za: T.int32, zb: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, za), (p, q))
    L = T.sp.compressed_varied(I, (n, zb), (r, s), sorted=SORTED)
    A = T.sp.match_buffer(a, (I, J), "float64")
    B = T.sp.match_buffer(b, (I, L), "float64")
    C = T.sp.match_buffer(c, (I, J), "float64")
    with T.sp.iteration([I, J], "SS", "masked") as [i, j]:
        C[i, j] = A[i, j] * B[i, j] + B[i, j]
"""


def make_masked(rng: np.random.Generator, structure: str, ascending: bool = True) -> Made:
    a, b = csr(mask(rng, structure), rng), csr(mask(rng, structure), rng)
    rows, columns = a.nonzero()
    other = b.toarray()[rows, columns]
    want = a.data * other + other
    if not ascending:
        for begin, end in zip(b.indptr, b.indptr[1:], strict=False):
            order = begin + rng.permutation(end - begin)
            b.indices[begin:end], b.data[begin:end] = b.indices[order], b.data[order]
    args = [a.data, b.data, np.full(a.nnz, np.nan), a.indptr, a.indices, b.indptr, b.indices, *a.shape, a.nnz, b.nnz]
    return args, 2, want


ATTACHED = """
def f(a: T.handle, y: T.handle, pa: T.handle, qa: T.handle, ps: T.handle, qs: T.handle, m: T.int32, n: T.int32,
      s: T.int32, za: T.int32, zs: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, za), (pa, qa))
    J_all = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float64")
    S = T.sp.dense_fixed(s)
    E = T.sp.compressed_varied(S, (m, zs), (ps, qs))
    Y = T.sp.match_buffer(y, (S, J_all), "float64")
    with T.sp.iteration([S, J_all], "SS", "zero") as [r, j]:
        Y[r, j] = T.float64(0)
    with T.sp.iteration([S, E, T.sp.attach(J, E)], "SRR", "rows") as [r, e, j]:
        Y[r, j] = Y[r, j] + A[e, j]
"""


def make_attached(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng)
    chosen = csr(mask(rng, "random", 3, a.shape[0]), rng)
    want = (chosen.toarray() != 0).astype("float64") @ a.toarray()
    args = [a.data, np.full_like(want, np.nan), a.indptr, a.indices, chosen.indptr, chosen.indices]
    return [*args, *a.shape, 3, a.nnz, chosen.nnz], 1, want


#: several iterations below one row, statements beside them, and a reduction whose init is a row's
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


def make_softmax(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng)
    rows = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    powers = np.exp(a.data)
    want = powers / np.bincount(rows, powers, a.shape[0])[rows] if a.nnz else powers
    made = [np.full(a.nnz, np.nan), np.full(a.shape[0], np.nan), np.full(a.shape[0], np.nan)]
    return [a.data, *made, a.indptr, a.indices, *a.shape, a.nnz], 1, want


#: neighbors of elements, some of which do not exist, behind a condition
SHIFTED = """
def f(a: T.handle, b: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float64")
    B = T.sp.match_buffer(b, (I, J), "float64")
    with T.sp.iteration([I, J], "SS", "shifted") as [i, j]:
        B[i, j] = T.float64(0)
        for d in range(2):
            if i + 1 < m and j + d < n:
                B[i, j] = B[i, j] + A[i + 1, j + d]
"""


def make_shifted(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng)
    m, n = a.shape
    around = np.zeros((m + 1, n + 1))
    around[:m, :n] = a.toarray()
    rows, columns = a.nonzero()
    want = around[rows + 1, columns] + around[rows + 1, columns + 1]
    return [a.data, np.full(a.nnz, np.nan), a.indptr, a.indices, m, n, a.nnz], 1, want


#: a format of two parts: one iteration initializes, the others add
PARTS = """
def f(a: T.handle, b: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, r: T.handle, s: T.handle,
      m: T.int32, n: T.int32, za: T.int32, rows: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, za), (p, q))
    J_all = T.sp.dense_fixed(n)
    O = T.sp.dense_fixed(1)
    R = T.sp.compressed_fixed(O, (m, rows), r)
    W = T.sp.compressed_fixed(R, (n, 2), s)
    A = T.sp.match_buffer(a, (I, J), "float64")
    B = T.sp.match_buffer(b, (O, R, W), "float64")
    X = T.sp.match_buffer(x, (J_all, I16), "float64")
    Y = T.sp.match_buffer(y, (I, I16), "float64")
    with T.sp.iteration([I, I16], "SS", "initial") as [i, k]:
        Y[i, k] = T.float64(0)
    with T.sp.iteration([I, J, I16], "SRS", "csr") as [i, j, k]:
        Y[i, k] = Y[i, k] + A[i, j] * X[j, k]
    with T.sp.iteration([T.sp.fuse(O, R), W, I16], "SSRS", "ell") as [o, i, j, k]:
        Y[i, k] = Y[i, k] + B[o, i, j] * X[j, k]
""".replace("    A = T.sp", "    I16 = T.sp.dense_fixed(16)\n    A = T.sp", 1)


def make_parts(rng: np.random.Generator, structure: str) -> Made:
    a = csr(mask(rng, structure), rng)
    m, n = a.shape
    rows = np.arange(m, dtype="int32")[:: 1 + m // 4] if n > 1 else np.zeros(0, "int32")
    indices = np.array([sorted(rng.choice(n, 2, replace=False)) for _ in rows], "int32").reshape(len(rows), 2)
    b, x = integers(rng, 1, len(rows), 2), integers(rng, n, 16)
    want = a @ x
    np.add.at(want, rows, (b[0][:, :, None] * x[indices]).sum(1))
    args = [a.data, b, x, np.full((m, 16), np.nan), a.indptr, a.indices, rows, indices.reshape(-1)]
    return [*args, m, n, a.nnz, len(rows)], 3, want


CASES = {
    "spmm": Case(SPMM, make_spmm),
    "csc": Case(CSC, make_csc),
    "ragged": Case(RAGGED, make_ragged),
    "ell": Case(ELL, make_ell),
    "padded": Case(PADDED, make_padded),
    "dcsr": Case(DCSR, make_dcsr),
    "coo": Case(COO, make_coo),
    "bsr": Case(BSR, make_bsr),
    "mttkrp": Case(CSF, make_mttkrp),
    "sddmm": Case(SDDMM, make_sddmm),
    "sddmm by rows": Case(SDDMM.replace("T.sp.fuse(I, J), K", "I, J, K"), make_sddmm),
    "sddmm of 3 columns": Case(SDDMM.replace("dense_fixed(k)", "dense_fixed(3)"), make_sddmm),
    "sddmm of 3 columns by rows": Case(
        SDDMM.replace("T.sp.fuse(I, J), K", "I, J, K").replace("dense_fixed(k)", "dense_fixed(3)"), make_sddmm
    ),
    "dense reads": Case(DENSE_READS, make_dense_reads),
    "masked": Case(MASKED.replace("SORTED", "True"), make_masked),
    "masked, unsorted": Case(
        MASKED.replace("SORTED", "False"), lambda rng, structure: make_masked(rng, structure, ascending=False)
    ),
    "attached": Case(ATTACHED, make_attached),
    "softmax": Case(SOFTMAX, make_softmax),
    "shifted": Case(SHIFTED, make_shifted),
    "parts": Case(PARTS, make_parts),
}
