"""Products of a sparse matrix in CSR and a dense one (SpMM) against a kernel in intrinsics, SciPy, PyTorch and MKL.

    python benchmarks/spmm.py                                  all structures, K = 32 and 128, on one thread
    python benchmarks/spmm.py mdual rmat16 --columns 32 --dtypes float64 --threads 2

Each line: what the kernel in intrinsics (spmm_by_hand.cc, compiled here by g++) reaches at its best prefetch distance,
which share of the machine's limit that is, and how many times its time each of the others takes: libraries, our program
without a schedule, and with one made of primitives, also at its best distance. The limit counts each element of the
operands once. The last lines are geometric means over the structures.

MKL takes part where build/mkl holds it: `python -m venv build/mkl && build/mkl/bin/pip install --no-deps mkl`.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import itertools
import math
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from structures import MAKERS, structures

import tilewright as tw
from tilewright import timing
from tilewright.script import tir as T
from tilewright.task.arguments import aligned

HERE = Path(__file__).resolve().parent
MKL = HERE.parent / "build" / "mkl"
DISTANCES = (0, 4, 8, 16)
#: the program without a schedule
HEURISTIC = "by heuristic"
#: bits of a vector: what g++ and the target need
EXTENSIONS = {512: ("-mavx512f", "avx512f"), 256: ("-mavx2", "avx2")}

Calls = dict[str, Callable[[], object]]


def hand_kernels() -> dict[int, ctypes.CDLL]:
    """Compile the kernel in intrinsics for each vector size that this machine has."""
    features = tw.Target("native").features
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for bits, (flag, feature) in EXTENSIONS.items():
            if feature not in features:
                continue
            file = Path(folder) / f"spmm{bits}.so"
            options = ["-std=c++20", "-O3", "-fopenmp", flag, "-mfma", f"-DVECTOR_BITS={bits}", "-shared", "-fPIC"]
            subprocess.run(["g++", *options, "-o", file, HERE / "spmm_by_hand.cc"], check=True)
            made[bits] = ctypes.CDLL(str(file))
    return made


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Product:
    """C = A @ B, and everybody's way to compute it."""

    def __init__(self, matrix: csr_array, columns: int, dtype: str, threads: int) -> None:
        self.matrix = csr_array((aligned(matrix.data.astype(dtype)), matrix.indices, matrix.indptr), matrix.shape)
        self.columns, self.dtype, self.threads = columns, dtype, threads
        random = np.random.default_rng(1)
        self.b = aligned(random.uniform(-1, 1, (matrix.shape[1], columns)).astype(dtype))
        self.c = aligned(np.zeros((matrix.shape[0], columns), dtype))
        self.want = self.matrix @ self.b

    def work(self) -> timing.Work:
        """Operations, and bytes of the operands, of B only the rows that are multiplied."""
        a, size = self.matrix, np.dtype(self.dtype).itemsize
        rows = len(np.unique(a.indices)) + a.shape[0]
        moved = 4 * (len(a.indptr) + a.nnz) + size * (a.nnz + rows * self.columns)
        return timing.Work(2.0 * a.nnz * self.columns, float(moved), self.dtype)

    def by_hand(self, libraries: dict[int, ctypes.CDLL]) -> Calls:
        a = self.matrix
        calls: Calls = {}
        for (bits, library), distance in itertools.product(libraries.items(), DISTANCES):
            function = getattr(library, f"spmm_{self.dtype}")
            arrays = [pointer(array) for array in (a.indptr, a.indices, a.data, self.b, self.c)]
            args = [self.columns, distance, self.threads, ctypes.c_int64(a.shape[0]), *arrays]
            calls[f"{bits} bits, distance {distance}"] = lambda function=function, args=args: function(*args)
        return calls

    def scipy(self) -> Calls:
        return {"SciPy": lambda: self.matrix @ self.b}

    def pytorch(self) -> Calls:
        if not importlib.util.find_spec("torch"):
            return {}
        import torch

        a = self.matrix
        parts = (torch.from_numpy(part) for part in (a.indptr, a.indices, a.data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CSR is a beta feature of PyTorch
            sparse = torch.sparse_csr_tensor(*parts, size=a.shape, check_invariants=False)
        b, c = torch.from_numpy(self.b), torch.from_numpy(self.c)
        torch.set_num_threads(self.threads)
        return {"PyTorch": lambda: torch.mm(sparse, b, out=c)}

    def mkl(self) -> Calls:
        """The inspector-executor interface, which was told of the calls to come."""
        files = sorted(MKL.rglob("libmkl_rt.so*"))
        if not files:
            return {}
        library = ctypes.CDLL(str(files[0]), mode=ctypes.RTLD_GLOBAL)
        library.MKL_Set_Threading_Layer(3)  # GNU's OpenMP, as the kernel in intrinsics
        library.MKL_Set_Num_Threads(self.threads)
        letter, real = ("s", ctypes.c_float) if self.dtype == "float32" else ("d", ctypes.c_double)
        a = self.matrix
        handle = ctypes.c_void_p()
        starts = a.indptr.ctypes.data
        pointers = [ctypes.c_void_p(starts), ctypes.c_void_p(starts + 4), pointer(a.indices), pointer(a.data)]
        create = getattr(library, f"mkl_sparse_{letter}_create_csr")
        general = (ctypes.c_int * 3)(20, 0, 0)  # SPARSE_MATRIX_TYPE_GENERAL
        description = _Description(*general)
        plain, row_major = 10, 101  # SPARSE_OPERATION_NON_TRANSPOSE, SPARSE_LAYOUT_ROW_MAJOR
        steps = [
            create(ctypes.byref(handle), 0, *map(ctypes.c_int, a.shape), *pointers),
            library.mkl_sparse_set_mm_hint(handle, plain, description, row_major, self.columns, 1000),
            library.mkl_sparse_optimize(handle),
        ]
        if any(steps):
            raise SystemExit(f"MKL refuses the matrix: statuses {steps}")
        multiply = getattr(library, f"mkl_sparse_{letter}_mm")
        b, c = pointer(self.b), pointer(self.c)
        args = [plain, real(1), handle, description, row_major, b, self.columns, self.columns, real(0), c, self.columns]
        return {"MKL": lambda: multiply(*args)}

    def ours(self, kernels: dict[str, tw.Kernel]) -> Calls:
        a = self.matrix
        args = (a.indptr, a.indices, a.data, self.b, self.c)
        return {name: timing.KernelCalls(kernel, args) for name, kernel in kernels.items()}

    def check(self, who: str, call: Callable[[], object]) -> None:
        """Refuse to time a wrong result."""
        self.c[...] = np.nan
        result = call()
        got = result if who == "SciPy" else self.c
        limit = 1e-4 if self.dtype == "float32" else 1e-10
        np.testing.assert_allclose(got, self.want, rtol=limit, atol=limit, err_msg=f"{who} is wrong")


class _Description(ctypes.Structure):
    """MKL's struct matrix_descr."""

    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


def program(columns: int, dtype: str) -> tw.ir.PrimFunc:
    """SpMM over CSR with open sizes."""

    @T.prim_func
    def spmm(indptr: T.handle, indices: T.handle, values: T.handle, b: T.handle, c: T.handle):
        m, n, nnz = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
        P = T.match_buffer(indptr, (m + 1,), "int32")
        I = T.match_buffer(indices, (nnz,), "int32")
        A = T.match_buffer(values, (nnz,), dtype)
        B = T.match_buffer(b, (n, columns), dtype)
        C = T.match_buffer(c, (m, columns), dtype)
        T.assume_buffer_domain(P, [0, nnz + 1], order="nondecreasing")
        T.assume_buffer_domain(I, [0, n], order="increasing", segments=P)
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
                        C[vi, vj] += A[P[vi] + vp] * B[I[P[vi] + vp], vj]

    return spmm


def scheduled(columns: int, dtype: str, distance: int) -> tw.Schedule:
    """Schedule the program by hand: the columns in vector accumulators, prefetch, and chunks of equal work."""
    schedule = tw.Schedule(program(columns, dtype))
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


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


Kernels = dict[str, tw.Kernel]


def run(name: str, product: Product, libraries: dict[int, ctypes.CDLL], kernels: Kernels) -> dict[str, float]:
    """Choose the kernel in intrinsics, and the distance of the schedule; print and return how many times the time of
    the former each of the others takes."""
    others = product.scipy() | product.pytorch() | product.mkl()
    by_hand, ours = product.by_hand(libraries), product.ours(kernels)
    for who, call in (by_hand | ours | others).items():
        product.check(who, call)
    first = timing.compare(by_hand | ours, product.work(), threads=product.threads, rounds=5)
    best = min(by_hand, key=lambda variant: first[variant].median)
    schedules = [who for who in ours if who != HEURISTIC]
    others |= {HEURISTIC: ours[HEURISTIC]}
    others["by schedule"] = ours[min(schedules, key=lambda variant: first[variant].median)]
    times = timing.compare({best: by_hand[best]} | others, product.work(), threads=product.threads)
    ratios = {who: times[who].median / times[best].median for who in others}
    hand = times[best]
    share = f"{hand.fraction:4.0%} of {hand.roof.name:12}"
    shown = "   ".join(f"{who} {ratio:5.2f}" for who, ratio in ratios.items())
    print(f"{name:10} {hand.gflops:6.1f} GFLOP/s ({best:22}) {share} {shown}", flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *MAKERS], help="structures; all by default")
    parser.add_argument("--columns", nargs="*", type=int, choices=(32, 128), default=[32, 128])
    parser.add_argument("--dtypes", nargs="*", choices=("float32", "float64"), default=["float32", "float64"])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    libraries = hand_kernels()
    made = list(structures(options.names))
    for columns, dtype in itertools.product(options.columns, options.dtypes):
        print(f"K = {columns}, {dtype}, threads: {options.threads}; times as multiples of the kernel in intrinsics")
        kernels = {HEURISTIC: tw.compile(program(columns, dtype))}
        kernels |= {f"distance {d}": tw.compile(scheduled(columns, dtype, d)) for d in DISTANCES}
        products = ((name, Product(matrix, columns, dtype, options.threads)) for name, matrix in made)
        ratios = [run(name, product, libraries, kernels) for name, product in products]
        means = "   ".join(f"{who} {geometric_mean([each[who] for each in ratios]):5.2f}" for who in ratios[0])
        print(f"{'geometric mean':68} {means}\n", flush=True)


if __name__ == "__main__":
    main()
