"""Lesson 9: compile and tune a program without writing a schedule: a matmul with bias and ReLU.

python examples/09_tune_without_a_space.py [TRIALS]

`schedule="by rules"` selects the heuristic schedule without measuring. `tw.tune` starts from that schedule, varies its
sampling decisions, measures, and keeps the fastest correct candidate. The database keeps all measurements: a second
run measures nothing, and other programs compile from it.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import tilewright as tw
from tilewright import te

N = 256

a = te.placeholder((N, N), name="A")
b = te.placeholder((N, N), name="B")
bias = te.placeholder((N,), name="bias")
k = te.reduce_axis((0, N), "k")
product = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product")
relu = te.compute((N, N), lambda i, j: te.max(product[i, j] + bias[j], 0.0), name="relu")
program = te.create_prim_func([a, b, bias, relu])


def main(trials: int) -> None:
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("float32") for shape in ((N, N), (N, N), N)]
    expected = np.maximum(arrays[0] @ arrays[1] + arrays[2], 0)

    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.db"
        result = tw.tune(program, trials=trials, database=records)
        # Later, in another process: the fastest schedule on record.
        recorded = tw.compile(program, database=records)
    kernels = {
        "as written": tw.compile(program, schedule="as written"),
        "by rules": tw.compile(program),
        "tuned": recorded,
    }

    print(result.schedule.trace)
    for name, kernel in kernels.items():
        np.testing.assert_allclose(kernel(*arrays), expected, rtol=1e-4, atol=1e-3)
        print(f"{name:12}{kernel.benchmark(*arrays)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
