"""The matrix products of the GMM family against NumPy (and PyTorch where it is installed), on one thread.

    python benchmarks/gemm.py [--trials 64] [--seeds 1]

Each shape is tuned over the space of examples/01_matmul.py; then the best kernel and the peers are timed in turn in one
run. Printed: time, GFLOP/s, the fraction of the measured peak, and the ratio to each peer with its middle half.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np

import tilewright as tw
from tilewright import timing
from tilewright.ir import PrimFunc
from tilewright.script import tir as T

#: (N, M, K) of X[N, K] @ Y[K, M]
SHAPES = [(128, 128, 128), (512, 32, 512), (512, 512, 512), (1024, 1024, 1024)]


def product(n: int, m: int, k: int) -> PrimFunc:
    @T.prim_func
    def matmul(A: T.Buffer((n, k), "float32"), B: T.Buffer((k, m), "float32"), C: T.Buffer((n, m), "float32")):
        for i, j, l in T.grid(n, m, k):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    return matmul


def space_of_example() -> tw.Space:
    file = Path(__file__).resolve().parents[1] / "examples" / "01_matmul.py"
    spec = importlib.util.spec_from_file_location("example_matmul", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.tiles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    space = space_of_example()
    for n, m, k in SHAPES:
        for seed in range(options.seeds):
            start = time.perf_counter()
            result = tw.tune(product(n, m, k), space=space.function, trials=options.trials, seed=seed, progress=None)
            spent = time.perf_counter() - start
            arrays = np.random.default_rng(0).random((max(n, m, k),) * 2, dtype=np.float32)
            a = np.ascontiguousarray(arrays[:n, :k])
            b = np.ascontiguousarray(arrays[:k, :m])
            c = np.empty((n, m), np.float32)
            kernel = result.kernel
            functions = {"tilewright": lambda: kernel(a, b, c), "NumPy": lambda: np.matmul(a, b, out=c)}
            try:
                import torch

                ta, tb, tc = (torch.from_numpy(x) for x in (a, b, c))
                functions["PyTorch"] = lambda: torch.matmul(ta, tb, out=tc)
            except ImportError:
                pass
            times = timing.compare(functions, result.task.work, threads=1, rounds=25)
            rate = result.progress.rate
            build = result.progress.median_build_seconds * 1e3
            print(
                f"{n} x {m} x {k}, seed {seed}: {options.trials} trials in {spent:.1f} s, {rate:.1f} candidates/s, {build:.0f} ms a build"
            )
            for name, timed in times.items():
                ratio = ""
                if name != "tilewright":
                    middle, low, high = timing.paired_ratio(timed.seconds, times["tilewright"].seconds)
                    ratio = f"; tilewright is {middle:.2f}x as fast ({low:.2f} to {high:.2f})"
                print(f"  {name:10} {timed}{ratio}")


if __name__ == "__main__":
    main()
