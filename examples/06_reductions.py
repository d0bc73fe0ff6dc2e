"""Lesson 6: vectorize sums and maxima, in a softmax and a layer normalization.

python examples/06_reductions.py

The sum of a row is a chain: each addition waits for the previous one. A vectorized reduction loop keeps several
vector accumulators and combines their lanes at the end of the row. This reorders additions of floats, so the compiler
does it only on request: `vectorize()` is that request. The order does not matter for a maximum.
"""

import importlib.util

import numpy as np

import tilewright as tw
from tilewright import timing
from tilewright.script import tir as T

M, N = 512, 1000


@T.prim_func
def softmax(X: T.Buffer((M, N), "float32"), Y: T.Buffer((M, N), "float32")):
    largest = T.alloc_buffer((M,), "float32")
    power = T.alloc_buffer((M, N), "float32")
    total = T.alloc_buffer((M,), "float32")
    for i, j in T.grid(M, N):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], X[vi, vj])
    for i, j in T.grid(M, N):
        with T.block("power"):
            vi, vj = T.axis.remap("SS", [i, j])
            power[vi, vj] = T.exp(X[vi, vj] - largest[vi])
    for i, j in T.grid(M, N):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + power[vi, vj]
    for i, j in T.grid(M, N):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = power[vi, vj] / total[vi]


@T.prim_func
def layer_norm(
    X: T.Buffer((M, N), "float32"),
    scale: T.Buffer((N,), "float32"),
    shift: T.Buffer((N,), "float32"),
    Y: T.Buffer((M, N), "float32"),
):
    mean = T.alloc_buffer((M,), "float32")
    squares = T.alloc_buffer((M,), "float32")
    for i, j in T.grid(M, N):
        with T.block("mean"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                mean[vi] = T.float32(0)
            mean[vi] = mean[vi] + X[vi, vj] * T.float32(1 / N)
    for i, j in T.grid(M, N):
        with T.block("squares"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                squares[vi] = T.float32(0)
            squares[vi] = squares[vi] + (X[vi, vj] - mean[vi]) * (X[vi, vj] - mean[vi])
    for i, j in T.grid(M, N):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            root = T.rsqrt(squares[vi] * T.float32(1 / N) + T.float32(1e-5))
            Y[vi, vj] = (X[vi, vj] - mean[vi]) * root * scale[vj] + shift[vj]


def row_by_row(program: object) -> tw.Schedule:
    """Fuse all steps of a row, so that it stays in L1, and vectorize each of them."""
    sch = tw.Schedule(program)
    (last,) = sch.get_output_blocks(sch.get_block("root"))
    row = sch.get_loops(last)[0]
    steps = sch.get_child_blocks(sch.get_block("root"))
    for block in reversed(steps[:-1]):
        sch.compute_at(block, row)
    for block in steps:
        sch.vectorize(sch.get_loops(block)[-1])
    return sch


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    power = np.exp(x - x.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def numpy_layer_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    centered = x - x.mean(axis=1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5) * scale + shift


def table(name: str, program: object, reference: object, inputs: list, peer: object) -> None:
    """Time the unscheduled program, the scheduled one and other libraries alternately, on one thread."""
    sch = row_by_row(program)
    written, scheduled = tw.compile(program, schedule="as written"), tw.compile(sch)
    result = np.empty((M, N), "float32")
    for kernel in (written, scheduled):
        result.fill(np.nan)
        kernel(*inputs, result)
        np.testing.assert_allclose(result, reference(*inputs), rtol=1e-4, atol=1e-5)
    calls = {
        "as written": lambda: written(*inputs, result),
        "scheduled": lambda: scheduled(*inputs, result),
        "NumPy": lambda: reference(*inputs),
    }
    if peer is not None:
        calls["PyTorch"] = lambda: peer(*inputs)
    with timing.limit_threads(1):
        times = {who: float(np.median(samples)) for who, samples in timing.time_interleaved(calls).items()}
    print(f"{name}, {M} rows of {N}")
    for who, seconds in times.items():
        print(f"  {who:12}{timing.format_seconds(seconds):>10}  {times['NumPy'] / seconds:5.1f} x NumPy's speed")


def main() -> None:
    random = np.random.default_rng(0)
    x, scale, shift = (random.standard_normal(shape).astype("float32") for shape in [(M, N), N, N])
    torch_softmax = torch_layer_norm = None
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        x_there, scale_there, shift_there = map(torch.from_numpy, (x, scale, shift))
        torch_softmax = lambda *_: torch.softmax(x_there, 1)  # noqa: E731
        torch_layer_norm = lambda *_: torch.layer_norm(x_there, (N,), scale_there, shift_there)  # noqa: E731

    print(row_by_row(softmax).trace)
    table("softmax", softmax, numpy_softmax, [x], torch_softmax)
    table("layer normalization", layer_norm, numpy_layer_norm, [x, scale, shift], torch_layer_norm)


if __name__ == "__main__":
    main()
