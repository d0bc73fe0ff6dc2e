"""Costs of converting a CSR matrix to other formats (tw.sparse.convert_structure and convert_values).

    python benchmarks/conversions.py                           all structures, on one thread
    python benchmarks/conversions.py mdual rmat16 --threads 2

Each line: for each format the time of structure and values, in products of the matrix in CSR with a vector (SpMVs), and
which share of the memory bandwidth that is if columns and values are read and written once. The bandwidth is that of a
copy of 64 MiB, timed before each structure; what fits into a cache may exceed it. Kernels exist before. On one thread,
times are those of the processor in this process: others that run meanwhile do not count.
The last line is the geometric mean over the structures.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array
from sparse_products import geometric_mean, run

import tilewright as tw
from tilewright.script import tir as T
from tilewright.sparse import formats
from tilewright.sparse.conversion import convert_validated

FORMATS = {
    "ELL": lambda m, n, longest: formats.ell(m, n, longest),
    "padded CSR": lambda m, n, longest: formats.padded_csr(m, n, 4),
    "SELL": lambda m, n, longest: formats.sell(m, n, 16),
    "hyb": lambda m, n, longest: formats.hyb(m, n, 1, 3),
    "CSC": lambda m, n, longest: formats.csc(m, n),
    "BSR": lambda m, n, longest: formats.bsr(m, n, 4),
    "DBSR": lambda m, n, longest: formats.dbsr(m, n, 4),
    "COO": lambda m, n, longest: formats.coo(m, n),
    "CSF": lambda m, n, longest: formats.csf(m, n),
    "SR-BCRS": lambda m, n, longest: formats.sr_bcrs(m, n, 4, 8),
}
#: of a format that stores this many times the nonzeros nothing can be expected
MOST_PADDING = 20


#: how often everything is timed; the least time counts
ROUNDS = 6


def least(call: Callable[[], object], threads: int) -> float:
    """The least time of a few calls."""
    clock = time.process_time if threads == 1 else time.perf_counter
    times = []
    for _ in range(ROUNDS):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


COPIED = 1 << 24


@T.prim_func
def copy(A: T.Buffer((COPIED,), "float32"), B: T.Buffer((COPIED,), "float32")):
    for c in T.parallel(COPIED // 4096):
        for i in range(64):
            for e in T.vectorized(64):
                B[c * 4096 + i * 64 + e] = A[c * 4096 + i * 64 + e]


def bandwidth_of_copy(threads: int) -> float:
    """Bytes per second that a copy reads and writes."""
    kernel = tw.compile(copy, schedule="as written")
    source, copied = np.ones(COPIED, "float32"), np.zeros(COPIED, "float32")
    return 2 * source.nbytes / least(lambda: kernel(source, copied), threads)


def seconds(matrix: csr_array, rules: list[tw.sparse.FormatRewriteRule], threads: int) -> tuple[float, int]:
    """The time of a conversion, and how many elements are stored."""
    coordinates = matrix.tocoo().coords

    def convert() -> tw.sparse.ConvertedStructure:
        converted = convert_validated(rules, matrix.shape, coordinates, matrix.indptr, time.perf_counter())
        converted.convert_values(matrix.data)
        return converted

    stored = sum(len(part.source) for part in convert().parts)
    return least(convert, threads), stored


def table(made: list[tuple[str, csr_array]], _: int, dtype: str, threads: int) -> None:
    print(f"{dtype}, threads: {threads}; SpMVs, and the share of the memory bandwidth")
    kernel = tw.compile(tw.sparse.programs.spmv(dtype))
    costs: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    for name, double in made:
        bandwidth = bandwidth_of_copy(threads)
        matrix = csr_array((double.data.astype(dtype), double.indices, double.indptr), double.shape)
        x, y = (np.ones(extent, dtype) for extent in reversed(matrix.shape))
        args = (matrix.indptr, matrix.indices, matrix.data, x, y)
        product = least(lambda args=args: [kernel(*args) for _ in range(ROUNDS)], threads) / ROUNDS
        longest, shown = int(np.diff(matrix.indptr).max()), []
        for other, rules_of in FORMATS.items():
            if other == "ELL" and longest * matrix.shape[0] > MOST_PADDING * matrix.nnz:
                continue
            taken, stored = seconds(matrix, rules_of(*matrix.shape, longest), threads)
            share = (matrix.nnz + stored) * (4 + matrix.data.itemsize) / bandwidth / taken
            costs.setdefault(other, []).append(taken / product)
            shares.setdefault(other, []).append(share)
            shown.append(f"{other} {taken / product:5.1f} ({share:4.0%})")
        print(f"{name:10} {'   '.join(shown)}", flush=True)
    means = "   ".join(f"{o} {geometric_mean(costs[o]):5.1f} ({geometric_mean(shares[o]):4.0%})" for o in costs)
    print(f"{'geometric mean':14} {means}\n", flush=True)


if __name__ == "__main__":
    run(__doc__, (1,), table)
