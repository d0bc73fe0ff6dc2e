"""Products of a sparse matrix in CSR and a dense one (SpMM) against a kernel in intrinsics, and libraries.

The libraries are SciPy, PyTorch, MKL and loops of MLIR's sparsifier.

    python benchmarks/spmm.py                                  all structures, K = 32 and 128, on one thread
    python benchmarks/spmm.py mdual rmat16 --columns 32 --dtypes float64 --threads 2

Each line: what the kernel in intrinsics (spmm_by_hand.cc, compiled here by g++) reaches at its best prefetch distance,
which share of the machine's limit that is, and how many times its time each of the others takes: libraries, our program
without a schedule, with one made of primitives, also at its best distance, and tw.sparse.spmm as Python calls it. The
limit counts each element of the operands once. The last lines are geometric means over the structures.
"""

from __future__ import annotations

import ctypes
import itertools

import mlir_sparsifier
import numpy as np
from scipy.sparse import csr_array
from sparse_products import (
    Calls,
    Libraries,
    MklMatrix,
    Product,
    contest,
    fastest,
    hand_kernels,
    pointer,
    print_means,
    random_operand,
    run,
)

import tilewright as tw
from tilewright import timing
from tilewright.task.arguments import aligned

DISTANCES = (0, 4, 8, 16)


class Spmm(Product):
    """C = A @ B."""

    def __init__(self, matrix: csr_array, columns: int, dtype: str, threads: int) -> None:
        super().__init__(matrix, dtype, threads)
        self.columns = columns
        self.b = random_operand(1, (matrix.shape[1], columns), dtype)
        self.out = aligned(np.zeros((matrix.shape[0], columns), dtype))
        self.want = self.matrix @ self.b

    def work(self) -> timing.Work:
        a, size = self.matrix, np.dtype(self.dtype).itemsize
        rows = len(np.unique(a.indices)) + a.shape[0]
        moved = 4 * (len(a.indptr) + a.nnz) + size * (a.nnz + rows * self.columns)
        return timing.Work(2.0 * a.nnz * self.columns, float(moved), self.dtype)

    def by_hand(self, libraries: Libraries) -> Calls:
        a = self.matrix
        calls: Calls = {}
        for (bits, library), distance in itertools.product(libraries.items(), DISTANCES):
            function = getattr(library, f"spmm_{self.dtype}")
            arrays = [pointer(array) for array in (a.indptr, a.indices, a.data, self.b, self.out)]
            args = [self.columns, distance, self.threads, ctypes.c_int64(a.shape[0]), *arrays]
            calls[f"{bits} bits, distance {distance}"] = lambda function=function, args=args: function(*args)
        return calls

    def peers(self) -> Calls:
        calls: Calls = {"SciPy": lambda: self.matrix @ self.b}
        if (sparse := self.torch_matrix()) is not None:
            import torch

            b, c = torch.from_numpy(self.b), torch.from_numpy(self.out)
            calls["PyTorch"] = lambda: torch.mm(sparse, b, out=c)

        def hint(m: MklMatrix) -> int:
            set_hint = m.library.mkl_sparse_set_mm_hint
            return int(set_hint(m.handle, m.plain, m.description, m.row_major, self.columns, m.calls))

        def multiply(m: MklMatrix) -> int:
            sizes, b, c = self.columns, pointer(self.b), pointer(self.out)
            args = [m.plain, m.real(1), m.handle, m.description, m.row_major, b, sizes, sizes, m.real(0), c, sizes]
            return int(m.function("mm")(*args))

        return calls | self.mlir(mlir_sparsifier.product, self.b) | self.mkl(hint, multiply)

    def ours(self, kernels: dict[str, tw.Kernel]) -> Calls:
        a = self.matrix
        args = (a.indptr, a.indices, a.data, self.b, self.out)
        return {name: timing.KernelCalls(kernel, args) for name, kernel in kernels.items()}

    def from_python(self) -> Calls:
        a = tw.sparse.from_scipy(self.matrix)
        return {"tw.sparse.spmm": lambda: tw.sparse.spmm(a, self.b, self.out)}


def scheduled(columns: int, dtype: str, distance: int) -> tw.Schedule:
    """Schedule the program by hand: the columns in vector accumulators, prefetch, and chunks of equal work."""
    schedule = tw.Schedule(tw.sparse.programs.spmm(columns, dtype))
    lanes = tw.Target("native").vector_bits // (8 * np.dtype(dtype).itemsize)
    for name in ("zero", "sum"):
        outer, vector = schedule.split(schedule.get_loops(name)[-1], [None, lanes])
        schedule.unroll(outer)
        schedule.vectorize(vector)
    if distance:
        schedule.prefetch_indirect(schedule.get_loops("sum")[0], "sum", "B", distance)
    rows = schedule.get_loops("row")[0]
    schedule.parallel(rows)
    schedule.balance(rows, "row", "P")
    return schedule


def table(made: list[tuple[str, csr_array]], columns: int, dtype: str, threads: int) -> None:
    print(f"K = {columns}, {dtype}, threads: {threads}; times as multiples of the kernel in intrinsics")
    libraries = hand_kernels("spmm_by_hand.cc")
    heuristic = tw.compile(tw.sparse.programs.spmm(columns, dtype))
    schedules = {f"distance {d}": tw.compile(scheduled(columns, dtype, d)) for d in DISTANCES}
    ratios = []
    for name, matrix in made:
        product = Spmm(matrix, columns, dtype, threads)
        by_hand, ours = product.by_hand(libraries), product.ours(schedules)
        for who, call in (by_hand | ours).items():
            product.check(who, call)
        best = fastest(product, by_hand)
        others = product.peers() | product.ours({"by heuristic": heuristic})
        others["by schedule"] = ours[fastest(product, ours)]
        ratios.append(contest(name, product, {best: by_hand[best]}, others | product.from_python()))
    print_means(ratios)


if __name__ == "__main__":
    run(__doc__, (32, 128), table)
