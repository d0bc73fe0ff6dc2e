"""Sampled dense-dense products (SDDMM) over a structure in CSR, against PyTorch, NumPy and MLIR's sparsifier.

    python benchmarks/sddmm.py                                 all structures, K = 32 and 128, on one thread
    python benchmarks/sddmm.py mdual rmat16 --columns 32 --dtypes float64 --threads 2

Each line: what our program without a schedule reaches, which share of the machine's limit that is, and how many times
its time each of the others takes: PyTorch's sampled_addmm, NumPy on gathered rows, loops of MLIR's sparsifier, and
tw.sparse.sddmm as Python calls it. MKL has no such function. The limit counts each element of the operands once. The
last lines are geometric means over the structures.
"""

from __future__ import annotations

import mlir_sparsifier
import numpy as np
from scipy.sparse import csr_array
from sparse_products import Calls, Product, contest, print_means, random_operand, run

import tilewright as tw
from tilewright import timing
from tilewright.task.arguments import aligned


class Sddmm(Product):
    """For each nonzero (i, j): the product of row i of X and row j of Y."""

    def __init__(self, matrix: csr_array, columns: int, dtype: str, threads: int) -> None:
        super().__init__(matrix, dtype, threads)
        self.columns = columns
        self.x, self.y = (random_operand(seed, (rows, columns), dtype) for seed, rows in enumerate(matrix.shape))
        self.out = aligned(np.zeros(matrix.nnz, dtype))
        self.rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        self.want = self.gathered()

    def gathered(self) -> np.ndarray:
        return np.einsum("pk,pk->p", self.x[self.rows], self.y[self.matrix.indices])

    def work(self) -> timing.Work:
        a, size = self.matrix, np.dtype(self.dtype).itemsize
        rows = len(np.unique(a.indices)) + len(np.unique(self.rows))
        moved = 4 * (len(a.indptr) + a.nnz) + size * (a.nnz + rows * self.columns)
        return timing.Work(2.0 * a.nnz * self.columns, float(moved), self.dtype)

    def peers(self) -> Calls:
        calls: Calls = {"NumPy": self.gathered}
        if (sparse := self.torch_matrix()) is not None:
            import torch

            x, y = torch.from_numpy(self.x), torch.from_numpy(self.y).T
            product = lambda: torch.sparse.sampled_addmm(sparse, x, y, beta=0.0)  # noqa: E731
            calls["PyTorch"] = lambda: product().values().numpy()
        return calls | self.mlir(mlir_sparsifier.sampled_product, self.x, self.y)

    def from_python(self) -> Calls:
        a = tw.sparse.from_scipy(self.matrix)
        return {"tw.sparse.sddmm": lambda: tw.sparse.sddmm(a, self.x, self.y).values}


def table(made: list[tuple[str, csr_array]], columns: int, dtype: str, threads: int) -> None:
    print(f"K = {columns}, {dtype}, threads: {threads}; times as multiples of our program by heuristic")
    kernel = tw.compile(tw.sparse.programs.sddmm(columns, dtype))
    ratios = []
    for name, matrix in made:
        product = Sddmm(matrix, columns, dtype, threads)
        a = product.matrix
        args = (a.indptr, a.indices, product.x, product.y, product.out)
        ours: Calls = {"by heuristic": timing.KernelCalls(kernel, args)}
        ratios.append(contest(name, product, ours, product.peers() | product.from_python()))
    print_means(ratios)


if __name__ == "__main__":
    run(__doc__, (32, 128), table)
