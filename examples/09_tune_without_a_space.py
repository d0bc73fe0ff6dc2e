"""Lesson 9: a fast kernel without a schedule. A convolution with bias and relu, by rules and by search.

python examples/09_tune_without_a_space.py [TRIALS]

Nobody says here how loops run. `schedule="by rules"` lets the compiler choose from what is known of the processor, in
milliseconds. `tw.tune` starts from that schedule, varies its choices, measures, and keeps the fastest that is correct.
A database keeps what was measured: a second run measures nothing, and other programs compile from it.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import tilewright as tw
from tilewright import te

SIZE, CHANNELS, FILTERS = 28, 32, 64

x = te.placeholder((SIZE + 2, SIZE + 2, CHANNELS), name="X")
w = te.placeholder((3, 3, CHANNELS, FILTERS), name="W")
bias = te.placeholder((FILTERS,), name="bias")
rh, rw, rc = te.reduce_axis((0, 3), "rh"), te.reduce_axis((0, 3), "rw"), te.reduce_axis((0, CHANNELS), "rc")
conv = te.compute(
    (SIZE, SIZE, FILTERS),
    lambda h, v, c: te.sum(x[h + rh, v + rw, rc] * w[rh, rw, rc, c], axis=[rh, rw, rc]),
    name="conv",
)
relu = te.compute(conv.shape, lambda h, v, c: te.max(conv[h, v, c] + bias[c], 0.0), name="relu")
program = te.create_prim_func([x, w, bias, relu])


def numpy_way(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(0, 1))
    return np.maximum(np.tensordot(windows, w, axes=([2, 3, 4], [2, 0, 1])) + bias, 0)


def main(trials: int) -> None:
    random = np.random.default_rng(0)
    arrays = [
        random.standard_normal(shape).astype("float32")
        for shape in ((SIZE + 2, SIZE + 2, CHANNELS), (3, 3, CHANNELS, FILTERS), FILTERS)
    ]
    expected = numpy_way(*arrays)

    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.db"
        result = tw.tune(program, trials=trials, database=records)
        # Another day, another process: the fastest schedule on record.
        recorded = tw.compile(program, database=records)
    kernels = {
        "as written": tw.compile(program, schedule="as written"),
        "by rules": tw.compile(program),
        "tuned": recorded,
    }

    print(result.schedule.trace)
    for name, kernel in kernels.items():
        np.testing.assert_allclose(kernel(*arrays), expected, rtol=1e-4, atol=1e-4)
        print(f"{name:12}{kernel.benchmark(*arrays)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
