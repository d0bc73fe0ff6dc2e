"""Shared parts of benchmarks of sparse products: peers, kernels in intrinsics, and the comparison of times.

MKL takes part where build/mkl holds it: `python -m venv build/mkl && build/mkl/bin/pip install --no-deps mkl`. MLIR's
sparsifier takes part where its tools are installed: `apt-get install mlir-19-tools llvm-19`.
"""

from __future__ import annotations

import abc
import argparse
import ctypes
import importlib.util
import itertools
import math
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from structures import MAKERS, structures

import tilewright as tw
from tilewright import timing
from tilewright.task.arguments import aligned

HERE = Path(__file__).resolve().parent
MKL = HERE.parent / "build" / "mkl"
#: bits of a vector: what g++ and the target need
EXTENSIONS = {512: ("-mavx512f", "avx512f"), 256: ("-mavx2", "avx2")}

Calls = dict[str, Callable[[], object]]
Libraries = dict[int, ctypes.CDLL]


def hand_kernels(source: str) -> Libraries:
    """Compile a file of kernels in intrinsics for each vector size that this machine has."""
    features = tw.Target("native").features
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for bits, (flag, feature) in EXTENSIONS.items():
            if feature not in features:
                continue
            file = Path(folder) / f"{source}{bits}.so"
            options = ["-std=c++20", "-O3", "-fopenmp", flag, "-mfma", f"-DVECTOR_BITS={bits}", "-shared", "-fPIC"]
            subprocess.run(["g++", *options, "-o", file, HERE / source], check=True)
            made[bits] = ctypes.CDLL(str(file))
    return made


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def random_operand(seed: int, shape: Sequence[int], dtype: str) -> np.ndarray:
    return aligned(np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype))


class Product(abc.ABC):
    """A product with a sparse matrix in CSR, and the implementations that are compared; each writes to `out`."""

    def __init__(self, matrix: csr_array, dtype: str, threads: int) -> None:
        self.matrix = csr_array((aligned(matrix.data.astype(dtype)), matrix.indices, matrix.indptr), matrix.shape)
        self.dtype, self.threads = dtype, threads
        self.out = np.zeros(0, dtype)
        self.want = np.zeros(0, dtype)

    @abc.abstractmethod
    def work(self) -> timing.Work:
        """Operations, and bytes of the operands, of dense ones only the rows that are used."""

    @abc.abstractmethod
    def peers(self) -> Calls:
        """The libraries."""

    def check(self, who: str, call: Callable[[], Any]) -> None:
        """Refuse to time a wrong result: what the call returns, else what it has left in `out`."""
        self.out[...] = np.nan
        result = call()
        got = result if isinstance(result, np.ndarray) else self.out
        limit = 1e-4 if self.dtype == "float32" else 1e-10
        np.testing.assert_allclose(got, self.want, rtol=limit, atol=limit, err_msg=f"{who} is wrong")

    def torch_matrix(self) -> Any:
        """The matrix as a tensor of PyTorch; None where PyTorch is not installed."""
        if not importlib.util.find_spec("torch"):
            return None
        import torch

        torch.set_num_threads(self.threads)
        parts = (torch.from_numpy(part) for part in (self.matrix.indptr, self.matrix.indices, self.matrix.data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CSR is a beta feature of PyTorch
            return torch.sparse_csr_tensor(*parts, size=self.matrix.shape, check_invariants=False)

    def mlir(self, product: Callable[..., Calls], *operands: np.ndarray) -> Calls:
        """The loops of MLIR's sparsifier, scalar or with vectors, whichever are faster; on one thread."""
        calls = product(self.matrix, *operands, self.out) if self.threads == 1 else {}
        for who, call in calls.items():
            self.check(who, call)
        return {"MLIR": calls[fastest(self, calls)]} if calls else {}

    def mkl(self, hint: Callable[[MklMatrix], int], call: Callable[[MklMatrix], int]) -> Calls:
        """MKL's inspector-executor interface, with hints about the number and kind of the calls."""
        files = sorted(MKL.rglob("libmkl_rt.so*"))
        if not files:
            return {}
        library = ctypes.CDLL(str(files[0]), mode=ctypes.RTLD_GLOBAL)
        library.MKL_Set_Threading_Layer(3)  # GNU's OpenMP, as the kernels in intrinsics
        library.MKL_Set_Num_Threads(self.threads)
        matrix = MklMatrix(library, self.matrix)
        if (status := hint(matrix)) or (status := library.mkl_sparse_optimize(matrix.handle)):
            raise SystemExit(f"MKL refuses the matrix: status {status}")
        return {"MKL": lambda: call(matrix)}


class _Description(ctypes.Structure):
    """MKL's struct matrix_descr."""

    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


class MklMatrix:
    """A handle of MKL, and what its functions take beside it."""

    plain, row_major, calls = 10, 101, 1000  # SPARSE_OPERATION_NON_TRANSPOSE, SPARSE_LAYOUT_ROW_MAJOR

    def __init__(self, library: ctypes.CDLL, a: csr_array) -> None:
        self.library = library
        self.letter, self.real = ("s", ctypes.c_float) if a.dtype == np.float32 else ("d", ctypes.c_double)
        self.description = _Description(20, 0, 0)  # SPARSE_MATRIX_TYPE_GENERAL
        self.handle = ctypes.c_void_p()
        starts = a.indptr.ctypes.data
        pointers = [ctypes.c_void_p(starts), ctypes.c_void_p(starts + 4), pointer(a.indices), pointer(a.data)]
        create = self.function("create_csr")
        if status := create(ctypes.byref(self.handle), 0, *map(ctypes.c_int, a.shape), *pointers):
            raise SystemExit(f"MKL refuses the matrix: status {status}")

    def function(self, name: str) -> Any:
        """Return the function of MKL of this name for the type of the values."""
        return getattr(self.library, f"mkl_sparse_{self.letter}_{name}")


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def fastest(product: Product, calls: Calls) -> str:
    """The name of the fastest of a few variants."""
    if len(calls) == 1:
        return next(iter(calls))
    times = timing.compare(calls, product.work(), threads=product.threads, rounds=5)
    return min(times, key=lambda variant: times[variant].median)


def contest(name: str, product: Product, base: Calls, others: Calls) -> dict[str, float]:
    """Print and return how many times the time of the base, one call, each of the others takes."""
    for who, call in (base | others).items():
        product.check(who, call)
    times = timing.compare(base | others, product.work(), threads=product.threads)
    (best,) = base
    ratios = {who: times[who].median / times[best].median for who in others}
    reached = times[best]
    share = f"{reached.fraction:4.0%} of {reached.roof.name:12}"
    shown = "   ".join(f"{who} {ratio:5.2f}" for who, ratio in ratios.items())
    print(f"{name:10} {reached.gflops:6.1f} GFLOP/s ({best:22}) {share} {shown}", flush=True)
    return ratios


def print_means(ratios: list[dict[str, float]]) -> None:
    """The last line of a table."""
    means = "   ".join(f"{who} {geometric_mean([each[who] for each in ratios]):5.2f}" for who in ratios[0])
    print(f"{'geometric mean':68} {means}\n", flush=True)


def run(
    description: str,
    columns: Iterable[int],
    table: Callable[[list[tuple[str, csr_array]], int, str, int], None],
) -> None:
    """Read the options of a benchmark, and print one table for each type and number of columns."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *MAKERS], help="structures; all by default")
    parser.add_argument("--dtypes", nargs="*", choices=("float32", "float64"), default=["float32", "float64"])
    parser.add_argument("--threads", type=int, default=1)
    columns = list(columns)
    if len(columns) > 1:
        parser.add_argument("--columns", nargs="*", type=int, choices=columns, default=columns)
    options = parser.parse_args()
    made = list(structures(options.names))
    tw.set_num_threads(options.threads)
    for count, dtype in itertools.product(getattr(options, "columns", columns), options.dtypes):
        table(made, count, dtype, options.threads)
