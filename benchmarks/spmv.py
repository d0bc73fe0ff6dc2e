"""Products of a sparse matrix and a vector (SpMV) against a kernel in intrinsics over SELL-16, and libraries.

The libraries are SciPy, PyTorch, MKL and loops of MLIR's sparsifier.

    python benchmarks/spmv.py                                  all structures, on one thread
    python benchmarks/spmv.py mdual rmat16 --dtypes float64 --threads 2

Each line: what the kernel in intrinsics (spmv_by_hand.cc, compiled here by g++) reaches, which share of the machine's
limit that is, and how many times its time each of the others takes: libraries, and tw.sparse.spmv as Python calls it,
in CSR and in the format that it converts to. Behind them: what the conversion costs, in products of that matrix. The
limit counts each element of the operands once. The last lines are geometric means over the structures.
"""

from __future__ import annotations

import ctypes

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

ROWS = 16


class Spmv(Product):
    """y = A @ x."""

    def __init__(self, matrix: csr_array, dtype: str, threads: int) -> None:
        super().__init__(matrix, dtype, threads)
        self.x = random_operand(1, (matrix.shape[1],), dtype)
        self.out = aligned(np.zeros(matrix.shape[0], dtype))
        self.want = self.matrix @ self.x

    def work(self) -> timing.Work:
        a, size = self.matrix, np.dtype(self.dtype).itemsize
        rows = len(np.unique(a.indices)) + a.shape[0]
        return timing.Work(2.0 * a.nnz, float(4 * (len(a.indptr) + a.nnz) + size * (a.nnz + rows)), self.dtype)

    def by_hand(self, libraries: Libraries) -> Calls:
        """SELL-16, made of rows sorted by their lengths."""
        a = self.matrix
        lengths = np.diff(a.indptr)
        order = np.argsort(-lengths, kind="stable").astype("int32")
        slices = -(-len(order) // ROWS)
        widths = np.append(lengths[order], np.zeros(slices * ROWS - len(order), "int32")).reshape(-1, ROWS)[:, 0]
        starts = np.concatenate([[0], np.cumsum(widths)]).astype("int32")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        own = np.repeat(rank, lengths)
        at = (starts[own // ROWS] + np.arange(a.nnz) - np.repeat(a.indptr[:-1], lengths)) * ROWS + own % ROWS
        indices, values = (aligned(np.zeros(starts[-1] * ROWS, dtype)) for dtype in ("int32", self.dtype))
        indices[at], values[at] = a.indices, a.data
        self.kept = (starts, indices, values, order)
        arrays = [pointer(array) for array in (*self.kept, self.x, self.out)]
        args = [self.threads, ctypes.c_int64(len(order)), *arrays]
        functions = {f"{bits} bits": getattr(library, f"spmv_{self.dtype}") for bits, library in libraries.items()}
        return {bits: lambda function=function: function(*args) for bits, function in functions.items()}

    def peers(self) -> Calls:
        calls: Calls = {"SciPy": lambda: self.matrix @ self.x}
        if (sparse := self.torch_matrix()) is not None:
            import torch

            x, y = torch.from_numpy(self.x), torch.from_numpy(self.out)
            calls["PyTorch"] = lambda: torch.mv(sparse, x, out=y)

        def hint(m: MklMatrix) -> int:
            return int(m.library.mkl_sparse_set_mv_hint(m.handle, m.plain, m.description, m.calls))

        def multiply(m: MklMatrix) -> int:
            x, y = pointer(self.x), pointer(self.out)
            return int(m.function("mv")(m.plain, m.real(1), m.handle, m.description, x, m.real(0), y))

        return calls | self.mlir(mlir_sparsifier.product, self.x) | self.mkl(hint, multiply)


def table(made: list[tuple[str, csr_array]], _: int, dtype: str, threads: int) -> None:
    print(f"{dtype}, threads: {threads}; times as multiples of the kernel in intrinsics over SELL-16")
    libraries = hand_kernels("spmv_by_hand.cc")
    ratios = []
    for name, matrix in made:
        product = Spmv(matrix, dtype, threads)
        by_hand = product.by_hand(libraries)
        best = fastest(product, by_hand)
        rows, kept = tw.sparse.from_scipy(product.matrix), tw.sparse.from_scipy(product.matrix)
        conversion = tw.sparse.prepare_spmv(kept)
        ours: Calls = {
            "CSR": lambda a=rows, p=product: tw.sparse.spmv(a, p.x, p.out),
            "tw.sparse.spmv": lambda a=kept, p=product: tw.sparse.spmv(a, p.x, p.out),
        }
        ratios.append(contest(name, product, {best: by_hand[best]}, product.peers() | ours))
        print(f"{'':10} converted {conversion}")
    print_means(ratios)


if __name__ == "__main__":
    run(__doc__, (1,), table)
