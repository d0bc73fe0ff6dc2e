"""The matrix products of the GMM family against NumPy (and PyTorch where it is installed), on one thread.

    python benchmarks/gemm.py [--trials 64] [--seeds 3] [--sizes 512,512,512 1024,1024,1024]

Each shape is tuned over the space of examples/01_matmul.py, once per seed; then the best kernel and the peers are timed
in turn in one run. Printed: time, GFLOP/s, the fraction of the measured peak, and the ratio to each peer: the median
over the rounds and their middle half.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
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
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.tiles


def contestants(kernel: tw.Kernel, n: int, m: int, k: int) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype("float32") for shape in [(n, k), (k, m)])
    c = np.empty((n, m), np.float32)
    functions: dict[str, Callable[[], object]] = {
        "tilewright": lambda: kernel(a, b, c),
        "NumPy": lambda: np.matmul(a, b, out=c),
    }
    if importlib.util.find_spec("torch"):
        import torch

        ta, tb, tc = (torch.from_numpy(x) for x in (a, b, c))
        functions["PyTorch"] = lambda: torch.matmul(ta, tb, out=tc)
    return functions


def run(shape: tuple[int, int, int], space: tw.Space, trials: int, seed: int) -> None:
    start = time.perf_counter()
    result = tw.tune(product(*shape), space=space.function, trials=trials, seed=seed, progress=None)
    spent = time.perf_counter() - start
    size = " x ".join(map(str, shape))
    print(
        f"{size}, seed {seed}: {result.progress.trials} candidates in {spent:.1f} s, "
        f"{result.progress.rate:.1f} a second, {result.progress.median_build_seconds * 1e3:.0f} ms a build"
    )
    times = timing.compare(contestants(result.kernel, *shape), result.task.work, threads=1, rounds=25)
    ours = times.pop("tilewright")
    print(f"  tilewright {ours}")
    for name, theirs in times.items():
        middle, low, high = timing.ratio(theirs.seconds, ours.seconds)
        print(f"  {name:10} {theirs}; tilewright is {middle:.2f}x as fast ({low:.2f} to {high:.2f})")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3, help="how many searches per shape")
    parser.add_argument("--sizes", nargs="*", help="N,M,K of each product; the GMM family by default")
    options = parser.parse_args()
    shapes = [tuple(map(int, size.split(","))) for size in options.sizes] if options.sizes else SHAPES
    for n, m, k in shapes:
        for seed in range(options.seeds):
            run((n, m, k), space_of_example(), options.trials, seed)


if __name__ == "__main__":
    main()
